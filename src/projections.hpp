// Budgets that project: what a term would have added, or leaves behind, goes to the terms that stay. The definitions
// are in onkel/projections.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "budgets.hpp"
#include "span.hpp"

namespace onkel {

// Budgets with a span.
class Spanned : public Budget {
public:
    explicit Spanned(bool inverse) : span_(inverse) {}
    void widen(std::size_t columns) override { span_.widen(columns); }
    void save(Store& store) const override { span_.save(store); }
    void load(const Store& store, std::size_t, bool, bool) override { span_.load(store); }

protected:
    // A new term, unless it depends on those there are: then its step goes to them. Is there a new one?
    template <class T>
    bool join(Expansion<T>& f, const Offer<T>& offer);
    // Term i leaves; its projection on the others stays.
    template <class T>
    void part_with(Expansion<T>& f, std::size_t i, Workspace<T>& work);

    Span span_;
    std::vector<double> d_;  // coefficients of a projection
};

class Project final : public BudgetFor<Project, Spanned> {
public:
    Project(std::optional<std::size_t> budget, double tolerance, bool squared, const std::optional<std::string>& rule,
            std::optional<double> U, bool strict_sign);
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);

private:
    bool near(double distance2) const;
    bool mistaken(const Round& round) const;
    double margin_step(const Round& round, double distance2) const;

    std::optional<std::size_t> budget_;
    double tolerance_;
    bool squared_;
    bool icml_;
    bool jmlr_;
    double U_;
    bool strict_sign_;
};

class ProjectSmallest final : public BudgetFor<ProjectSmallest, Spanned> {
public:
    explicit ProjectSmallest(std::size_t budget) : BudgetFor<ProjectSmallest, Spanned>(false), budget_(budget) {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);

private:
    std::size_t budget_;
};

// The nearest of every term, by slot.
class Neighbours {
public:
    static constexpr std::int64_t none = -1;

    std::int64_t nearest(std::size_t i) const { return nearest_[i]; }
    // The kernel value of term i and its nearest.
    double affinity(std::size_t i) const { return affinity_[i]; }

    // The kernel values of the offered example and the terms, valid until the next call.
    template <class T>
    const double* row(const Expansion<T>& f, const Offer<T>& offer) {
        return terms_.row(f, offer);
    }
    // The newest term, whose row is k, finds its nearest, and may be nearer to others than theirs.
    template <class T>
    void meet(const Expansion<T>& f, Row<T> x, const std::vector<double>& k);
    // Term i has left: those it was nearest to find another.
    template <class T>
    void miss(const Expansion<T>& f, std::size_t i);

    void widen(std::size_t columns) { terms_.widen(columns); }
    void save(Store& store) const;
    void load(const Store& store);

private:
    template <class T>
    void seek(const Expansion<T>& f, std::size_t i, const double* k);

    Doubles terms_;
    std::vector<std::int64_t> nearest_;
    std::vector<double> affinity_;
};

class Refit final : public BudgetFor<Refit, Spanned> {
public:
    Refit(std::size_t budget, const std::string& variant, double C)
        : BudgetFor<Refit, Spanned>(true),
          budget_(budget),
          near_(variant == "nearest"),
          projects_(variant == "projecting"),
          plain_(variant == "plain"),
          C_(C) {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);
    void widen(std::size_t columns) override;
    void save(Store& store) const override;
    void load(const Store& store, std::size_t columns, bool sparse, bool single) override;

private:
    template <class T>
    std::size_t cheapest(const Expansion<T>& f, const std::vector<double>& residual) const;
    template <class T>
    std::size_t hand_over(Expansion<T>& f);
    template <class T>
    std::size_t dispensable(const Expansion<T>& f, const Round& round) const;

    std::size_t budget_;
    bool near_;
    bool projects_;
    bool plain_;
    double C_;
    Neighbours neighbours_;
    std::vector<double> k_;  // the row of the new example, itself included
};

}  // namespace onkel
