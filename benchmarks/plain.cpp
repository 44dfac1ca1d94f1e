// The plain twin: kernel online gradient descent as the research toolboxes write it. Support vectors in rows
// one after the other, scalar loops, exp from the C library, everything in the type of the data.
#include "plain.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/random.hpp"  // the draws of onkel, so that both drop the same terms

namespace {

// Both kinds of support vectors answer: read example i; its squared distance from term s, its product with it; enter
// it as a new term; put the last term in the place of term s.

template <class T>
class Dense {
public:
    Dense(const T* X, std::size_t columns) : X_(X), columns_(columns) {}

    void read(std::size_t i) { x_ = X_ + i * columns_; }

    T norm() const {
        T total = 0;
        for (std::size_t j = 0; j < columns_; ++j) total += x_[j] * x_[j];
        return total;
    }

    T distance(std::size_t s) const {
        const T* z = &rows_[s * columns_];
        T total = 0;
        for (std::size_t j = 0; j < columns_; ++j) {
            const T difference = x_[j] - z[j];
            total += difference * difference;
        }
        return total;
    }

    T product(std::size_t s) const {
        const T* z = &rows_[s * columns_];
        T total = 0;
        for (std::size_t j = 0; j < columns_; ++j) total += x_[j] * z[j];
        return total;
    }

    void append() { rows_.insert(rows_.end(), x_, x_ + columns_); }

    void remove(std::size_t s) {
        const std::size_t last = rows_.size() - columns_;
        for (std::size_t j = 0; j < columns_; ++j) rows_[s * columns_ + j] = rows_[last + j];
        rows_.resize(last);
    }

private:
    const T* X_;
    std::size_t columns_;
    const T* x_ = nullptr;
    std::vector<T> rows_;
};

template <class T>
class Sparse {
public:
    Sparse(const T* values, const std::int32_t* indices, const std::int64_t* starts, std::size_t n, std::size_t columns)
        : values_(values), indices_(indices), starts_(starts), x_(columns) {
        for (std::size_t i = 0; i < n; ++i) width_ = std::max(width_, starts[i + 1] - starts[i]);
    }

    void read(std::size_t i) {  // spread out, for products with the non-zeros of the terms
        for (std::int64_t e = begin_; e < end_; ++e) x_[indices_[e]] = 0;
        begin_ = starts_[i];
        end_ = starts_[i + 1];
        norm_ = 0;
        for (std::int64_t e = begin_; e < end_; ++e) {
            x_[indices_[e]] = values_[e];
            norm_ += values_[e] * values_[e];
        }
    }

    T norm() const { return norm_; }

    T distance(std::size_t s) const { return norm_ + norms_[s] - 2 * product(s); }

    T product(std::size_t s) const {
        const std::int32_t* index = &index_[s * width_];
        const T* z = &rows_[s * width_];
        T total = 0;
        for (std::int64_t e = 0; e < counts_[s]; ++e) total += x_[index[e]] * z[e];
        return total;
    }

    void append() {
        index_.insert(index_.end(), indices_ + begin_, indices_ + end_);
        rows_.insert(rows_.end(), values_ + begin_, values_ + end_);
        counts_.push_back(end_ - begin_);
        norms_.push_back(norm_);
        index_.resize(counts_.size() * width_);
        rows_.resize(counts_.size() * width_);
    }

    void remove(std::size_t s) {
        const std::size_t last = counts_.size() - 1;
        for (std::int64_t e = 0; e < width_; ++e) {
            index_[s * width_ + e] = index_[last * width_ + e];
            rows_[s * width_ + e] = rows_[last * width_ + e];
        }
        counts_[s] = counts_[last];
        norms_[s] = norms_[last];
        index_.resize(last * width_);
        rows_.resize(last * width_);
        counts_.pop_back();
        norms_.pop_back();
    }

private:
    const T* values_;
    const std::int32_t* indices_;
    const std::int64_t* starts_;
    std::vector<T> x_;
    T norm_ = 0;
    std::int64_t begin_ = 0, end_ = 0;
    std::int64_t width_ = 1;  // room for the longest row of the stream
    std::vector<std::int32_t> index_;
    std::vector<T> rows_;
    std::vector<std::int64_t> counts_;
    std::vector<T> norms_;
};

// f <- f + eta y k(x, .) where y f(x) < 1; a term drawn at random leaves a full f. A budget of 0 has no
// limit.
template <class T, class Terms>
Counts descend(Terms terms, std::size_t n, const double* y, T eta, T gamma, std::size_t budget, std::uint64_t seed) {
    Counts counts;
    std::vector<T> coef;
    onkel::Random random(seed, "removal");
    for (std::size_t i = 0; i < n; ++i) {
        terms.read(i);
        T score = 0;
        for (std::size_t s = 0; s < coef.size(); ++s) score += coef[s] * std::exp(-gamma * terms.distance(s));
        counts.evaluations += static_cast<std::int64_t>(coef.size());
        counts.mistakes += (score >= 0) != (y[i] > 0);
        if (static_cast<T>(y[i]) * score >= 1) continue;
        ++counts.steps;
        if (budget > 0 && coef.size() == budget) {
            const std::size_t leaves = random.below(budget);
            terms.remove(leaves);
            coef[leaves] = coef.back();
            coef.pop_back();
        }
        terms.append();
        coef.push_back(eta * static_cast<T>(y[i]));
    }
    counts.terms = static_cast<std::int64_t>(coef.size());
    return counts;
}

// SPA-OMKL: a sparse passive-aggressive learner for each kernel, (x.z)^p where the degree is not 0, and a weighted
// vote. alpha is 1. Every kernel has its own support vectors.
template <class T, class Terms>
Counts pool(const Terms& empty, std::size_t n, const double* y, std::size_t m, const T* gamma, const T* degree,
            const T* seeds, T eta, T beta, T discount, T smoothing) {
    Counts counts;
    std::vector<Terms> terms(m, empty);
    std::vector<std::vector<T>> coef(m);
    std::vector<T> weight(m, 1), score(m), kxx(m);
    std::vector<onkel::Random> random;
    for (std::size_t k = 0; k < m; ++k) random.emplace_back(static_cast<std::uint64_t>(seeds[k]), "sampling");
    for (std::size_t i = 0; i < n; ++i) {
        const T target = static_cast<T>(y[i]);
        T vote = 0;
        for (std::size_t k = 0; k < m; ++k) {
            terms[k].read(i);
            score[k] = 0;
            for (std::size_t s = 0; s < coef[k].size(); ++s) {
                const T value = degree[k] > 0 ? std::pow(terms[k].product(s), degree[k])
                                              : std::exp(-gamma[k] * terms[k].distance(s));
                score[k] += coef[k][s] * value;
            }
            kxx[k] = degree[k] > 0 ? std::pow(terms[k].norm(), degree[k]) : 1;
            counts.evaluations += static_cast<std::int64_t>(coef[k].size());
            vote += score[k] >= 0 ? weight[k] : -weight[k];
        }
        counts.mistakes += (vote >= 0) != (y[i] > 0);
        const T most = *std::max_element(weight.begin(), weight.end());
        T total = 0;
        for (std::size_t k = 0; k < m; ++k) {
            const T loss = std::max(T(0), 1 - target * score[k]);
            const T rho = std::min(T(1), loss) / beta;
            const T chance = (1 - smoothing) * weight[k] / most + smoothing;
            if (random[k].uniform() < rho * chance && kxx[k] > 0) {
                terms[k].append();
                coef[k].push_back(std::min(eta / rho, loss / kxx[k]) * target);
                ++counts.steps;
            }
            if (target * score[k] <= 0) weight[k] *= discount;
            total += weight[k];
        }
        for (T& w : weight) w /= total;
    }
    counts.terms = counts.steps;
    return counts;
}

template <class T>
Counts pool(const void* X, const std::int32_t* indices, const std::int64_t* starts, std::size_t n, std::size_t columns,
            const double* y, std::size_t m, const void* gamma, const void* degree, const void* seeds, double eta,
            double beta, double discount, double smoothing) {
    const T* values = static_cast<const T*>(X);
    const auto run = [&](const auto& empty) {
        return pool<T>(empty, n, y, m, static_cast<const T*>(gamma), static_cast<const T*>(degree),
                       static_cast<const T*>(seeds), static_cast<T>(eta), static_cast<T>(beta),
                       static_cast<T>(discount), static_cast<T>(smoothing));
    };
    if (!indices) return run(Dense<T>(values, columns));
    return run(Sparse<T>(values, indices, starts, n, columns));
}

template <class T>
Counts descend(const void* X, const std::int32_t* indices, const std::int64_t* starts, std::size_t n,
               std::size_t columns, const double* y, double eta, double gamma, std::size_t budget, std::uint64_t seed) {
    const T* values = static_cast<const T*>(X);
    const T step = static_cast<T>(eta);
    const T width = static_cast<T>(gamma);
    if (!indices) return descend<T>(Dense<T>(values, columns), n, y, step, width, budget, seed);
    return descend<T>(Sparse<T>(values, indices, starts, n, columns), n, y, step, width, budget, seed);
}

}  // namespace

// `values`, `indices` and `starts` are a CSR matrix; without `indices`, `values` is a row-major array.
extern "C" void plain_ogd(int single, const void* values, const std::int32_t* indices, const std::int64_t* starts,
                          std::size_t n, std::size_t columns, const double* y, Counts* out, double eta, double gamma,
                          std::size_t budget, std::uint64_t seed) {
    *out =
        (single ? descend<float> : descend<double>)(values, indices, starts, n, columns, y, eta, gamma, budget, seed);
}

// Only in double: seeds come as numbers of the type of the data.
extern "C" void plain_pool(int, const void* values, const std::int32_t* indices, const std::int64_t* starts,
                           std::size_t n, std::size_t columns, const double* y, Counts* out, const void* gamma,
                           std::size_t m, const void* degree, const void* seeds, double eta, double beta,
                           double discount, double smoothing) {
    *out =
        pool<double>(values, indices, starts, n, columns, y, m, gamma, degree, seeds, eta, beta, discount, smoothing);
}
