// Budgets that project: what a term would have added, or leaves behind, goes to the terms that stay. The definitions
// are in onkel/budgets/projection.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "budgets/base.hpp"
#include "budgets/span.hpp"

namespace onkel {

// Budgets with a span.
class Spanned : public Budget {
public:
    template <class T>
    struct Memory : PartMemory {
        Memory(const Spanned& budget, const Run&) : span(budget.inverse_) {}
        void make_room_for_term() { span.factor.make_room(); }
        void widen(std::size_t) { span.widen(); }
        void save(Store& store) const { span.save(store); }
        void load(const Store& store, std::size_t terms) { span.load(store, terms); }

        // Adds a term, or if it is in the span of the terms, projects it on them. Returns whether a term was added.
        bool append_or_project(Terms<T>& f, const Proposal<T>& proposal);
        // Term i leaves; its projection on the others stays.
        void remove_and_project(Terms<T>& f, std::size_t i, Workspace<T>& work);

        Span<T> span;
        std::vector<double> d;  // coefficients of a projection
    };

protected:
    explicit Spanned(bool inverse) : inverse_(inverse) {}

private:
    bool inverse_;
};

class Project final : public Spanned {
public:
    Project(std::optional<std::size_t> budget, double tolerance, bool squared, const std::optional<std::string>& rule,
            std::optional<double> U, bool strict_sign);
    Started<RunningBudget> start(const Run& run) const override;
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const;

private:
    bool near(double distance2) const;
    double margin_step(const Round& round, double distance2) const;

    std::optional<std::size_t> budget_;
    double tolerance_;
    bool squared_;
    bool icml_;
    bool jmlr_;
    double U_;
    bool strict_sign_;
};

class ProjectSmallest final : public Spanned {
public:
    explicit ProjectSmallest(std::size_t budget) : Spanned(false), budget_(budget) {}
    Started<RunningBudget> start(const Run& run) const override;
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const;

private:
    std::size_t budget_;
};

// The nearest of every term, by slot.
template <class T>
class Neighbours {
public:
    static constexpr std::int64_t none = -1;

    std::int64_t nearest(std::size_t i) const { return nearest_[i]; }
    // The kernel value of term i and its nearest.
    double affinity(std::size_t i) const { return affinity_[i]; }

    // The kernel values of the proposed example and the terms, valid until the next call.
    const double* row(const Terms<T>& f, const Proposal<T>& proposal) { return terms_.row(f, proposal); }
    // The newest term, whose row is k, finds its nearest, and may be nearer to others than theirs.
    void append(const Terms<T>& f, Row<T> x, const std::vector<double>& k);
    // Term i has left: those it was nearest to find another.
    void remove(const Terms<T>& f, std::size_t i);

    void widen() { terms_.widen(); }
    void save(Store& store) const;
    void load(const Store& store, std::size_t terms);

private:
    void find_nearest(const Terms<T>& f, std::size_t i, const double* k);

    Doubles<T> terms_;
    std::vector<std::int64_t> nearest_;
    std::vector<double> affinity_;
};

class Refit final : public Spanned {
public:
    template <class T>
    struct Memory : Spanned::Memory<T> {
        Memory(const Refit& budget, const Run& run) : Spanned::Memory<T>(budget, run), part(budget) {}
        void widen(std::size_t columns);
        void save(Store& store) const;
        void load(const Store& store, std::size_t terms);

        const Refit& part;
        Neighbours<T> neighbours;
        std::vector<double> k;  // the row of the new example, itself included
    };

    Refit(std::size_t budget, const std::string& variant, double C)
        : Spanned(true),
          budget_(budget),
          near_(variant == "nearest"),
          projects_(variant == "projecting"),
          plain_(variant == "plain"),
          C_(C) {}
    Started<RunningBudget> start(const Run& run) const override;
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const;

private:
    template <class T>
    static std::size_t cheapest(const Terms<T>& f, const std::vector<double>& residual);
    template <class T>
    std::size_t redistribute(Terms<T>& f, const Memory<T>& memory) const;
    template <class T>
    std::size_t dispensable(const Terms<T>& f, const Round& round, const std::vector<double>& k) const;

    std::size_t budget_;
    bool near_;
    bool projects_;
    bool plain_;
    double C_;
};

}  // namespace onkel
