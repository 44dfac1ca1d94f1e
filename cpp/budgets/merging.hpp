// Budgets whose terms need not be examples: two become one between them. The definitions are in
// onkel/budgets/merging.py.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "budgets/base.hpp"
#include "budgets/span.hpp"
#include "budgets/svm.hpp"

namespace onkel {

// Over budget, the smallest term and the one that suits it best become one term between them.
class Merge final : public Budget {
public:
    // Scratch arrays for the search of a partner.
    struct Partners : PartMemory {
        using PartMemory::PartMemory;
        // WD of each of the others.
        void search(double mm);

        std::vector<double> size;          // |a_i|^2 of all terms
        std::vector<double> both;          // |a_m + a_n|^2, as for `harm`
        std::vector<double> harm;          // WD of all of them, or of those that may be merged with m:
        std::vector<std::size_t> others;   // these
        std::vector<double> nn, mn, born;  // what is known of them
        std::vector<double> kappa, distance, h, r;
    };
    template <class T>
    using Memory = Partners;

    Merge(std::size_t budget, const std::string& search) : budget_(budget), by_table_(search == "table") {}
    Started<RunningBudget> start(const Run& run) const override;
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, Partners& memory) const;

private:
    template <class T>
    void merge(Terms<T>& f, const Proposal<T>& proposal, Partners& memory) const;
    // The best term to merge m with; n if there is none.
    template <class T>
    std::size_t partner(const Terms<T>& f, std::size_t m, const T* kappa, Partners& memory) const;

    std::size_t budget_;
    bool by_table_;
};

// The terms are twins, points that stand for examples of both labels, and f is the SVM on them.
class TwinVectors final : public Budget {
public:
    // Kernel values and squared distances of pairs of terms: a cache that can be computed again from the terms.
    template <class T>
    struct Memory : PartMemory {
        using PartMemory::PartMemory;
        void widen(std::size_t columns);
        void load(const Store& store, std::size_t terms);

        void append(const Terms<T>& f);
        void remove(std::size_t i);
        void compute(const Terms<T>& f);
        void clear();
        std::pair<std::size_t, std::size_t> nearest_pair(std::span<const double> born) const;

        Doubles<T> doubles;
        Square kernel;            // k(x_i, x_j)
        Square squares;           // |x_i - x_j|^2
        std::size_t version = 0;  // of the terms when all kernel values were computed
        WeightedSvm svm;
    };

    TwinVectors(std::size_t budget, double C, double admit, double drop, bool bias, double precision, bool by_margin)
        : budget_(budget),
          C_(C),
          admit_(admit),
          drop_(drop),
          bias_(bias),
          precision_(precision),
          by_margin_(by_margin) {}
    Started<RunningBudget> start(const Run& run) const override;
    BudgetTraits traits() const override { return {.every_round = true, .intercept = bias_}; }
    std::vector<BudgetColumn> columns() const override {
        return {{"positive", BudgetColumn::weight}, {"negative", BudgetColumn::weight}};
    }
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const;

private:
    template <class T>
    void merge(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const;
    template <class T>
    void solve(Terms<T>& f, Memory<T>& memory) const;

    std::size_t budget_;
    double C_;
    double admit_;
    double drop_;
    bool bias_;
    double precision_;
    bool by_margin_;
};

}  // namespace onkel
