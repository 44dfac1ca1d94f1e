// The plain twin: kernel online gradient descent as the research toolboxes write it. Support vectors in rows
// one after the other, scalar loops, exp from the C library, everything in the type of the data.
#include "plain.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "random.hpp"  // the draws of onkel, so that both drop the same terms

namespace {

// Both kinds of support vectors answer: read example i; its squared distance from term s; enter it as a new
// term; put the last term in the place of term s.

template <class T>
class Dense {
public:
    Dense(const T* X, std::size_t columns) : X_(X), columns_(columns) {}

    void read(std::size_t i) { x_ = X_ + i * columns_; }

    T distance(std::size_t s) const {
        const T* z = &rows_[s * columns_];
        T total = 0;
        for (std::size_t j = 0; j < columns_; ++j) {
            const T difference = x_[j] - z[j];
            total += difference * difference;
        }
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

    T distance(std::size_t s) const {
        const std::int32_t* index = &index_[s * width_];
        const T* z = &rows_[s * width_];
        T product = 0;
        for (std::int64_t e = 0; e < counts_[s]; ++e) product += x_[index[e]] * z[e];
        return norm_ + norms_[s] - 2 * product;
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
