// Budgets whose terms need not be examples: two become one between them. The definitions are in onkel/merging.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "budgets.hpp"
#include "span.hpp"

namespace onkel {

// Over budget, the smallest term and the one that suits it best become one term between them.
class Merge final : public BudgetFor<Merge> {
public:
    Merge(std::size_t budget, const std::string& search) : budget_(budget), by_table_(search == "table") {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);

private:
    template <class T>
    void merge(Expansion<T>& f, const Offer<T>& offer);
    // The best term to merge m with; n if there is none.
    template <class T>
    std::size_t partner(const Expansion<T>& f, std::size_t m, const T* kappa);
    // WD of each of the others.
    void search(double mm);

    std::size_t budget_;
    bool by_table_;
    std::vector<double> size_;            // |a_i|^2 of all terms
    std::vector<double> harm_;            // WD of all of them, or of those that may be merged with m:
    std::vector<std::size_t> others_;     // these
    std::vector<double> nn_, mn_, born_;  // what is known of them
    std::vector<double> kappa_, distance_, h_, r_;
};

// weighted_svm of onkel/merging.py
struct WeightedSvm {
    double solve(const Square& K, bool bias, double precision);

    std::vector<double> low, high, v;

private:
    void balance();
    double settled(std::size_t i, double value) const;
    double next_end(std::size_t i, bool rises) const;
    void move(const Square& K, std::size_t i, double change);

    std::vector<double> corner_, F_, up_, down_, pull_, gain_;
};

// The terms are twins, points that stand for examples of both labels, and f is the SVM on them.
class TwinVectors final : public BudgetFor<TwinVectors> {
public:
    TwinVectors(std::size_t budget, double C, double admit, double drop, bool bias, double precision, bool by_margin)
        : budget_(budget),
          C_(C),
          admit_(admit),
          drop_(drop),
          bias_(bias),
          precision_(precision),
          by_margin_(by_margin) {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);
    bool watches() const override { return true; }
    std::vector<std::string> columns() const override { return {"positive", "negative"}; }
    bool intercept() const override { return bias_; }
    void widen(std::size_t columns) override;
    void load(const Store& store, std::size_t columns, bool sparse, bool single) override;

private:
    template <class T>
    void merge(Expansion<T>& f, const Offer<T>& offer);
    std::pair<std::size_t, std::size_t> nearest_pair(std::span<const double> born) const;
    template <class T>
    void solve(Expansion<T>& f);

    // What is known of pairs of terms: nothing that the terms would not tell again.
    template <class T>
    void note(const Expansion<T>& f);
    template <class T>
    std::vector<double> squares_to(const Expansion<T>& f, std::size_t i) const;
    void forget(std::size_t i);
    template <class T>
    void remember(const Expansion<T>& f);
    void forget_all();

    std::size_t budget_;
    double C_;
    double admit_;
    double drop_;
    bool bias_;
    double precision_;
    bool by_margin_;
    Doubles doubles_;
    Square kernel_;            // k(x_i, x_j)
    Square squares_;           // |x_i - x_j|^2
    std::size_t version_ = 0;  // of the terms when all kernel values were computed
    WeightedSvm svm_;
};

}  // namespace onkel
