// The support vector machine on weighted points that twin vectors (TVM) solve in every round. The definitions are in
// onkel/budgets/svm.py.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/linalg.hpp"

namespace onkel {

class WeightedSvm {
public:
    // Moves v from its current value to the optimum; returns b.
    double solve(const Square& K, bool bias, double precision);

    std::vector<double> low, high, v;

private:
    void balance();
    void compute_products(const Square& K);
    void take_steps(const Square& K);
    void solve_free(const Square& K);
    double constant();
    // Is no KKT condition violated by more than the tolerance? Computes up and down.
    bool is_solved();
    double end(std::size_t i, double change) const;
    double room(std::size_t i, double change) const;
    void move(std::size_t i, double change);
    double newton(const Square& K);
    bool factorise(double ridge, std::size_t n);

    bool bias_ = false;
    double precision_ = 0;
    double diagonal_ = 0;  // the largest element of K's
    double size_ = 0;      // the largest weight there has been
    std::vector<double> corner_, F_, up_, down_, pull_, gain_;
    std::vector<std::size_t> free_;
    std::vector<double> matrix_, factor_, change_;  // of the free weights
    std::vector<std::pair<double, double>> at_;     // where the slope of the loss changes, and by how much
};

}  // namespace onkel
