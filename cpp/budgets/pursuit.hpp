// Budgets of dictionary learners: which examples are worth a term, and which terms can go. The definitions are in
// onkel/budgets/pursuit.py.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "budgets/projection.hpp"
#include "core/random.hpp"

namespace onkel {

// What leaves, and what it costs: the squared norm of the change of f when the other terms make up for it.
class Compressor : public Spanned {
public:
    Compressor() : Spanned(true) {}
    BudgetTraits traits() const override { return {.every_round = true}; }

protected:
    // Of removing each term alone.
    template <class T>
    static std::vector<double> costs(const Terms<T>& f, const Memory<T>& memory);
    // Of removing the first, the first two, ... of these together.
    template <class T>
    static std::vector<double> joint_costs(const Terms<T>& f, const Memory<T>& memory,
                                           const std::vector<std::size_t>& slots);
    template <class T>
    static void remove_together(Terms<T>& f, Memory<T>& memory, std::vector<std::size_t> slots, Workspace<T>& work);
    // Destructive matching pursuit (KOMP): the cheapest term leaves, while all costs add up to at most `allowed`.
    template <class T>
    static void pursue(Terms<T>& f, Memory<T>& memory, double allowed, Workspace<T>& work);
};

// Every term enters, then some may leave at a cost that follows the schedule of the steps. `Self` has `compress`.
template <class Self>
class Compress : public Compressor {
public:
    Compress(double error, const std::string& schedule) : error_(error), schedule_(schedule) {}
    Started<RunningBudget> start(const Run& run) const override;
    template <class T, class Remembered>
    void insert(Terms<T>& f, const Proposal<T>& proposal, Remembered& memory) const;

private:
    double error_;
    Schedule schedule_;
};

class Pursue final : public Compress<Pursue> {
public:
    using Compress<Pursue>::Compress;
    template <class T>
    void compress(Terms<T>& f, Memory<T>& memory, double allowed, Workspace<T>& work) const;
};

class PursueTogether final : public Compress<PursueTogether> {
public:
    template <class T>
    struct Memory : Spanned::Memory<T> {
        Memory(const PursueTogether& budget, const Run& run);
        void save(Store& store) const;
        void load(const Store& store, std::size_t terms);

        std::optional<Random> random;  // where terms are put back at random
    };

    PursueTogether(double error, const std::string& schedule, const std::string& put_back)
        : Compress<PursueTogether>(error, schedule), draws_(put_back == "random") {}
    template <class T>
    void compress(Terms<T>& f, Memory<T>& memory, double allowed, Workspace<T>& work) const;

private:
    bool draws_;
};

class SelectSubset final : public Compress<SelectSubset> {
public:
    SelectSubset(double error, const std::string& schedule, std::size_t candidates)
        : Compress<SelectSubset>(error, schedule), candidates_(candidates) {}
    template <class T>
    void compress(Terms<T>& f, Memory<T>& memory, double allowed, Workspace<T>& work) const;

private:
    std::size_t candidates_;
};

class InsertRemove final : public Compressor {
public:
    InsertRemove(double insert_error, double remove_error)
        : insert_cost_(insert_error * insert_error), remove_cost_(remove_error * remove_error) {}
    Started<RunningBudget> start(const Run& run) const override;
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const;

private:
    double insert_cost_;
    double remove_cost_;
};

class Dissimilarity final : public Spanned {
public:
    explicit Dissimilarity(double threshold) : Spanned(false), threshold_(threshold) {}
    Started<RunningBudget> start(const Run& run) const override;
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const;

private:
    double threshold_;
};

class Quantise final : public Budget {
public:
    explicit Quantise(double radius) : radius_(radius) {}
    Started<RunningBudget> start(const Run& run) const override;
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const;

private:
    double radius_;
};

class Novelty final : public Budget {
public:
    Novelty(double distance, double surprise, const std::string& rejected)
        : distance_(distance), surprise_(surprise), moves_all_(rejected == "lms") {}
    Started<RunningBudget> start(const Run& run) const override;
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const;

private:
    double distance_;
    double surprise_;
    bool moves_all_;
};

class Coherence final : public Budget {
public:
    Coherence(double coherence, double ridge) : coherence_(coherence), ridge_(ridge) {}
    Started<RunningBudget> start(const Run& run) const override;
    BudgetTraits traits() const override { return {.every_round = true}; }
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const;

private:
    double coherence_;
    double ridge_;
};

class AlmostLinearDependence final : public Spanned {
public:
    template <class T>
    struct Memory : Spanned::Memory<T> {
        using Spanned::Memory<T>::Memory;
        void save(Store& store) const;
        void load(const Store& store, std::size_t terms);

        std::vector<double> covariance;  // n x n
    };

    AlmostLinearDependence(double nu, std::optional<std::size_t> budget) : Spanned(false), nu_(nu), budget_(budget) {}
    Started<RunningBudget> start(const Run& run) const override;
    BudgetTraits traits() const override { return {.every_round = true}; }
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const;

private:
    double nu_;
    std::optional<std::size_t> budget_;
};

}  // namespace onkel
