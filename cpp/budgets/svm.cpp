#include "budgets/svm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/errors.hpp"
#include "core/simd.hpp"

namespace onkel {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr double tiny = std::numeric_limits<double>::min();
constexpr int laps = 1000;          // bounds the time of a round; hard problems take fifty
constexpr double settled = 1e-13;   // as SETTLED in onkel/budgets/svm.py
constexpr double balanced = 1e-12;  // as BALANCED

// Where the largest value is; of those equal up to rounding the first.
std::size_t first_of_largest(const std::vector<double>& values, double slack) {
    const double limit = *std::max_element(values.begin(), values.end()) - slack;
    const auto found = std::find_if(values.begin(), values.end(), [=](double value) { return value >= limit; });
    return found == values.end() ? 0 : static_cast<std::size_t>(found - values.begin());
}

}  // namespace

double WeightedSvm::solve(const Square& K, bool bias, double precision) {
    const auto none = [](const std::vector<double>& values) {
        return std::all_of(values.begin(), values.end(), [](double value) { return value == 0; });
    };
    if (bias && (none(low) || none(high))) {  // one label only
        std::fill(v.begin(), v.end(), 0.0);
        return 0;
    }
    bias_ = bias;
    precision_ = precision;
    const std::size_t n = v.size();
    for (auto* values : {&corner_, &F_, &up_, &down_, &pull_, &gain_}) values->resize(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = std::min(std::max(v[i], low[i]), high[i]);
    if (bias) balance();
    diagonal_ = size_ = 0;
    for (std::size_t i = 0; i < n; ++i) {
        corner_[i] = low[i] + high[i];
        size_ = std::max(size_, std::abs(v[i]));
        diagonal_ = std::max(diagonal_, K[i][i]);
    }
    compute_products(K);
    for (int lap = 0; lap < laps; ++lap) {
        take_steps(K);
        if (is_solved()) break;
        solve_free(K);
    }
    for (const double value : F_) {
        if (!sane(value)) throw Diverged("the score of a term is", value);
    }
    return bias ? constant() : 0;
}

// Positive and negative parts of v must cancel; they do not where a twin has left.
void WeightedSvm::balance() {
    double rise = 0;
    double fall = 0;
    for (const double value : v) (value > 0 ? rise : fall) += std::abs(value);
    const double most = std::max(rise, fall);
    if (std::abs(rise - fall) <= balanced * most) return;
    for (double& value : v) value *= (value > 0 ? fall : rise) / most;
}

void WeightedSvm::compute_products(const Square& K) {
    for (std::size_t i = 0; i < v.size(); ++i) F_[i] = simd<double>().dot(v.data(), K[i], v.size());
}

void WeightedSvm::take_steps(const Square& K) {
    const std::size_t n = v.size();
    const double floor = std::max(1e-12 * diagonal_, tiny);
    for (std::size_t step = 0; step < n && !is_solved(); ++step) {
        const std::size_t i = bias_ ? first_of_largest(up_, 1e-6 * precision_) : n;
        const auto curvature = [&](std::size_t k) {
            const double own = K[k][k];
            return std::max(bias_ ? K[i][i] + own - 2 * K[i][k] : own, floor);
        };
        double best = 0;
        for (std::size_t k = 0; k < n; ++k) {
            pull_[k] = std::max(bias_ ? up_[i] - down_[k] : std::max(up_[k], -down_[k]), 0.0);
            gain_[k] = pull_[k] * pull_[k] / curvature(k);
            best = std::max(best, gain_[k]);
        }
        const std::size_t j = first_of_largest(gain_, 1e-9 * best);
        const double sign = bias_ || up_[j] <= 0 ? -1 : 1;
        double length = std::min(pull_[j] / curvature(j), room(j, sign));
        if (bias_) length = std::min(length, room(i, 1));
        if (bias_) {
            move(i, length);
            simd<double>().axpy(F_.data(), length, K[i], n);
        }
        move(j, sign * length);
        simd<double>().axpy(F_.data(), sign * length, K[j], n);
    }
}

void WeightedSvm::solve_free(const Square& K) {
    for (std::size_t turn = 0; turn <= v.size(); ++turn) {  // every turn but the last fixes a weight
        free_.clear();
        for (std::size_t i = 0; i < v.size(); ++i) {
            if (low[i] < v[i] && v[i] < high[i] && v[i] != corner_[i]) free_.push_back(i);
        }
        if (free_.size() <= (bias_ ? 1 : 0)) return;  // with a bias no weight moves alone
        if (!(newton(K) > 0)) return;
        double too_far = 0;
        for (std::size_t e = 0; e < free_.size(); ++e) {
            too_far = std::max(too_far, std::abs(change_[e]) / room(free_[e], change_[e]));
        }
        const double part = std::max(too_far, 1.0);
        for (std::size_t e = 0; e < free_.size(); ++e) move(free_[e], change_[e] / part);
        compute_products(K);
        if (too_far <= 1) return;
    }
}

bool WeightedSvm::is_solved() {
    double most = -infinity;
    double least = infinity;
    for (std::size_t i = 0; i < v.size(); ++i) {  // v_i wants to rise if b < up_i, to fall if b > down_i
        up_[i] = v[i] < high[i] ? (v[i] < corner_[i] ? 1 : -1) - F_[i] : -infinity;
        down_[i] = v[i] > low[i] ? (v[i] > corner_[i] ? -1 : 1) - F_[i] : infinity;
        most = std::max(most, up_[i]);
        least = std::min(least, down_[i]);
    }
    const double missed = bias_ ? most - least : std::max(most, -least);
    if (!(missed > precision_)) return true;
    double total = 0;
    for (const double value : v) total += std::abs(value);
    return !(missed > static_cast<double>(v.size()) * epsilon * diagonal_ * total);
}

// The middle of all b of least loss: a weighted median, which rounding moves no further than it moves F.
double WeightedSvm::constant() {
    at_.clear();
    double slope = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
        if (high[i] > 0) at_.emplace_back(1 - F_[i], high[i]);
        if (low[i] < 0) at_.emplace_back(-1 - F_[i], -low[i]);
        slope -= high[i];
    }
    std::sort(at_.begin(), at_.end());
    const double nothing = -balanced * slope;
    double first = infinity;
    for (const auto& [b, rise] : at_) {
        slope += rise;
        if (slope >= -nothing) first = std::min(first, b);
        if (slope > nothing) return (first + b) / 2;
    }
    return first;
}

// Where v_i, changing so, next meets a corner or a bound.
double WeightedSvm::end(std::size_t i, double change) const {
    if (change > 0) return v[i] < corner_[i] ? corner_[i] : high[i];
    return v[i] > corner_[i] ? corner_[i] : low[i];
}

double WeightedSvm::room(std::size_t i, double change) const { return std::abs(end(i, change) - v[i]); }

void WeightedSvm::move(std::size_t i, double change) {
    const double to = end(i, change);
    v[i] += change;
    size_ = std::max(size_, std::abs(v[i]));
    if (std::abs(to - v[i]) <= settled * size_) v[i] = to;
}

// The step to the optimum of the free weights, the others as they are; returns by how much f gains at first.
double WeightedSvm::newton(const Square& K) {
    const std::size_t m = free_.size();
    const std::size_t n = bias_ ? m - 1 : m;  // the last one pays for all where their sum is fixed
    const std::size_t last = free_[m - 1];
    double trace = 0;
    for (const std::size_t i : free_) trace += K[i][i];
    matrix_.resize(n * n);
    change_.resize(m);
    pull_.resize(v.size());
    for (std::size_t e = 0; e < m; ++e) {
        const std::size_t i = free_[e];
        pull_[e] = (v[i] < corner_[i] ? 1 : -1) - F_[i];
    }
    for (std::size_t e = 0; e < n; ++e) {
        const double* row = K[free_[e]];
        if (bias_) pull_[e] -= pull_[m - 1];
        for (std::size_t g = 0; g <= e; ++g) {
            const double own = row[free_[g]];
            matrix_[e * n + g] = bias_ ? own - row[last] - K[last][free_[g]] + K[last][last] : own;
        }
    }
    double ridge = std::max(static_cast<double>(m) * epsilon * trace, tiny);
    while (!factorise(ridge, n)) {
        if (!(ridge < infinity)) return 0;
        ridge *= 10;  // this one, of the size of rounding, leaves the matrix without a factor
    }
    std::copy_n(pull_.data(), n, change_.data());
    simd<double>().forward(factor_.data(), n, n, change_.data());
    simd<double>().backward(factor_.data(), n, n, change_.data());
    double gain = 0;
    double sum = 0;
    for (std::size_t e = 0; e < n; ++e) {
        gain += pull_[e] * change_[e];
        sum += change_[e];
    }
    if (bias_) change_[m - 1] = -sum;
    return gain;
}

// The factor of matrix + ridge, if it has one.
bool WeightedSvm::factorise(double ridge, std::size_t n) {
    factor_.resize(n * n);
    for (std::size_t i = 0; i < n; ++i) {  // row i of L, which is kept by columns
        std::copy_n(matrix_.data() + i * n, i, change_.data());
        simd<double>().forward(factor_.data(), n, i, change_.data());
        const double square = matrix_[i * n + i] + ridge - simd<double>().dot(change_.data(), change_.data(), i);
        if (!(square > 0)) return false;
        for (std::size_t j = 0; j < i; ++j) factor_[j * n + i] = change_[j];
        factor_[i * n + i] = std::sqrt(square);
    }
    return true;
}

}  // namespace onkel
