// Budgets of dictionary learners: which examples are worth a term, and which terms can go. The definitions are in
// onkel/pursuit.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "projections.hpp"
#include "random.hpp"

namespace onkel {

// What leaves, and what it costs: the squared norm of the change of f when the other terms make up for it.
class Compressor : public Spanned {
public:
    Compressor() : Spanned(true) {}

protected:
    // Of removing each term alone.
    template <class T>
    std::vector<double> costs(const Expansion<T>& f) const;
    // Of removing the first, the first two, ... of these together.
    template <class T>
    std::vector<double> joint_costs(const Expansion<T>& f, const std::vector<std::size_t>& slots) const;
    template <class T>
    void remove_together(Expansion<T>& f, std::vector<std::size_t> slots, Workspace<T>& work);
    // Destructive matching pursuit (KOMP): the cheapest term leaves, while all costs add up to at most `allowed`.
    template <class T>
    void pursue(Expansion<T>& f, double allowed, Workspace<T>& work);
};

// Every term enters, then some may leave at a cost that follows the schedule of the steps. `Self` has `compress`.
template <class Self>
class Compress : public BudgetFor<Compress<Self>, Compressor> {
public:
    Compress(double error, const std::string& schedule)
        : error_(error), square_(schedule == "1/t"), constant_(schedule == "constant") {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);
    bool watches() const override { return true; }

private:
    double error_;
    bool square_;
    bool constant_;
};

class Pursue final : public Compress<Pursue> {
public:
    using Compress<Pursue>::Compress;
    template <class T>
    void compress(Expansion<T>& f, double allowed, Workspace<T>& work) {
        pursue(f, allowed, work);
    }
};

class PursueTogether final : public Compress<PursueTogether> {
public:
    PursueTogether(double error, const std::string& schedule, const std::string& put_back)
        : Compress<PursueTogether>(error, schedule), draws_(put_back == "random") {}
    template <class T>
    void compress(Expansion<T>& f, double allowed, Workspace<T>& work);
    void start(std::uint64_t seed) override { random_ = Random(seed, "put back"); }
    void save(Store& store) const override;
    void load(const Store& store, std::size_t columns, bool sparse, bool single) override;

private:
    bool draws_;
    Random random_;
};

class SelectSubset final : public Compress<SelectSubset> {
public:
    SelectSubset(double error, const std::string& schedule, std::size_t candidates)
        : Compress<SelectSubset>(error, schedule), candidates_(candidates) {}
    template <class T>
    void compress(Expansion<T>& f, double allowed, Workspace<T>& work);

private:
    std::size_t candidates_;
};

class InsertRemove final : public BudgetFor<InsertRemove, Compressor> {
public:
    InsertRemove(double insert_error, double remove_error)
        : insert_cost_(insert_error * insert_error), remove_cost_(remove_error * remove_error) {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);
    bool watches() const override { return true; }

private:
    double insert_cost_;
    double remove_cost_;
};

class Dissimilarity final : public BudgetFor<Dissimilarity, Spanned> {
public:
    explicit Dissimilarity(double threshold) : BudgetFor<Dissimilarity, Spanned>(false), threshold_(threshold) {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);

private:
    double threshold_;
};

class Quantise final : public BudgetFor<Quantise> {
public:
    explicit Quantise(double radius) : radius_(radius) {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);

private:
    double radius_;
};

class Novelty final : public BudgetFor<Novelty> {
public:
    Novelty(double distance, double surprise, const std::string& rejected)
        : distance_(distance), surprise_(surprise), moves_all_(rejected == "lms") {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);

private:
    double distance_;
    double surprise_;
    bool moves_all_;
};

class Coherence final : public BudgetFor<Coherence> {
public:
    Coherence(double coherence, double ridge) : coherence_(coherence), ridge_(ridge) {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);
    bool watches() const override { return true; }

private:
    double coherence_;
    double ridge_;
};

class AlmostLinearDependence final : public BudgetFor<AlmostLinearDependence, Spanned> {
public:
    AlmostLinearDependence(double nu, std::optional<std::size_t> budget)
        : BudgetFor<AlmostLinearDependence, Spanned>(false), nu_(nu), budget_(budget) {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);
    bool watches() const override { return true; }
    void save(Store& store) const override;
    void load(const Store& store, std::size_t columns, bool sparse, bool single) override;

private:
    double nu_;
    std::optional<std::size_t> budget_;
    std::vector<double> covariance_;  // n x n
};

}  // namespace onkel
