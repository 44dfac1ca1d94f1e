// Expansion: f(x) = scale * sum_i coef_i k(x_i, x), and the average of its past selves.
//
// It looks ahead: the kernel rows of the next few examples are computed together, which costs little more than
// one of them when the table is large, and kept right while terms come and go. Every number comes out as if
// the examples had been met one by one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "basis.hpp"
#include "kernels.hpp"
#include "store.hpp"
#include "updates.hpp"

namespace onkel {

enum class Average { none, live, all };

template <class T>
class Expansion {
public:
    using Column = typename Basis<T>::Column;

    Expansion(KernelPointer kernel, std::size_t width, std::size_t columns, bool sparse, Average average,
              bool keep_scores)
        : outputs(width),
          basis(columns, sparse),
          dead(columns, sparse),
          coef(basis.declare("coef", width)),
          born(basis.declare("born", 1).values[0]),
          diagonal(basis.declare("diagonal", 1, false).values[0]),
          base(average == Average::none ? nullptr : &basis.declare("base", width)),
          score(keep_scores ? &basis.declare("score", width) : nullptr),
          kernel_(std::move(kernel)),
          average_(average),
          dead_coef_(dead.declare("coef", width)),
          dead_born_(dead.declare("born", 1)),
          ahead_(columns, sparse) {
        for (Basis<T>* table : {&basis, &dead, &ahead_}) kernel_->prepare(*table);
    }
    Expansion(const Expansion&) = delete;
    Expansion& operator=(const Expansion&) = delete;

    std::size_t n() const { return basis.n(); }
    bool averages() const { return average_ != Average::none; }

    // -- kernel rows

    double diagonal_of(Row<T> x) const { return kernel_->diagonal(x); }

    // The kernel row of example i of X, which is about to be learned from: k(x_j, x) for the terms j.
    T* row(const Rows<T>& X, std::size_t i, Workspace<T>& work) {
        if (i >= block_end_) look_ahead(X, i, work);
        now_ = i;
        return k_.data() + (i - block_begin_) * stride_;
    }
    // The examples looked at are gone.
    void look_away() { block_begin_ = block_end_ = now_ = 0; }

    // The kernel row of a stored example, in work.k.
    const T* row_of(Row<T> x, Workspace<T>& work) const {
        work.k.resize(basis.padded(n()));
        row(basis, x, work, work.k.data());
        return work.k.data();
    }

    // -- scoring

    // sum_i coef_i k_i, without scale
    double inner_score(const T* k, std::size_t output) const {
        return simd<T>().dot(coef.values[output].data(), k, n());
    }
    void scores(const T* k, double* s) const {
        for (std::size_t o = 0; o < outputs; ++o) s[o] = scale * inner_score(k, o);
    }
    // The average of the models of rounds 1..t.
    void average_scores(Row<T> x, const T* k, double t, Workspace<T>& work, double* s) const {
        if (dead.n()) {
            work.k.resize(dead.padded(dead.n()));
            row(dead, x, work, work.k.data());
        }
        for (std::size_t o = 0; o < outputs; ++o) {
            double total = cumulative * inner_score(k, o) + simd<T>().dot(base->values[o].data(), k, n());
            total += simd<T>().dot(dead_coef_.values[o].data(), work.k.data(), dead.n());
            s[o] = total / std::max(t, 1.0);
        }
    }
    // Scores of many examples, written row by row.
    void predict(const Rows<T>& X, bool averaged, double t, double* out) const {
        static thread_local Workspace<T> work;
        const std::size_t stride = basis.padded(n());
        std::vector<T> k(most_ahead * stride);
        for (std::size_t i = 0; i < X.n; i += most_ahead) {
            const Rows<T> part = X.slice(i, std::min(most_ahead, X.n - i));
            if (n()) kernel_->rows(basis, part, basis.all(), work, k.data(), stride);
            for (std::size_t q = 0; q < part.n; ++q) {
                const T* kq = k.data() + q * stride;
                double* s = out + (i + q) * outputs;
                averaged ? average_scores(part[q], kq, t, work, s) : scores(kq, s);
            }
        }
    }

    // -- moving

    // A round begins: the model as it is enters the average.
    void count() { cumulative += scale; }

    // Refuse a factor that would take coefficients out of range.
    void foresee(double factor) const {
        if (n() == 0 || !far(scale * factor)) return;
        for (const auto& values : coef.values) {
            for (const double c : values) {
                if (!sane(c * scale * factor)) throw Diverged(beyond("a coefficient becomes ", c * scale * factor));
            }
        }
    }

    void shrink(double factor) {
        if (n() == 0) return;
        foresee(factor);
        scale *= factor;
        if (!far(scale)) return;
        for (std::size_t o = 0; o < outputs; ++o) {
            for (std::size_t i = 0; i < n(); ++i) {
                if (base) base->values[o][i] += cumulative * coef.values[o][i];
                coef.values[o][i] *= scale;
                if (score) score->values[o][i] *= scale;
            }
        }
        scale = 1;
        cumulative = 0;
    }

    void append(Row<T> x, double t, double kxx, const double* c, Workspace<T>& work) {
        if (n() == 0) {  // nothing refers to them: begin afresh
            scale = 1;
            cumulative = 0;
        }
        basis.append(x);
        for (std::size_t o = 0; o < outputs; ++o) {
            coef.values[o].back() = c[o] / scale;
            if (base) base->values[o].back() = -cumulative * coef.values[o].back();
        }
        born.back() = t;
        diagonal.back() = kxx;
        if (now_ + 1 < block_end_) meet_those_ahead(x, work);
    }

    // Give term i the coefficient c (still without scale).
    void change(std::size_t i, std::size_t output, double c) {
        double& own = coef.values[output][i];
        if (base) base->values[output][i] += cumulative * (own - c);
        own = c;
    }

    void remove(std::size_t i, Workspace<T>& work) {
        if (average_ == Average::all) {
            dead.append(basis.row(i, work));
            for (std::size_t o = 0; o < outputs; ++o) {
                dead_coef_.values[o].back() = cumulative * coef.values[o][i] + base->values[o][i];
            }
            dead_born_.values[0].back() = born[i];
        }
        basis.remove(i);
        for (std::size_t q = now_; q < block_end_; ++q) {
            T* k = k_.data() + (q - block_begin_) * stride_;
            k[i] = k[n()];
        }
    }

    void widen(std::size_t columns) {
        for (Basis<T>* table : {&basis, &dead, &ahead_}) table->widen(columns);
    }

    // -- state

    void save(Store& store) const {
        basis.save(store, "basis");
        store.put("scale", scale);
        if (averages()) store.put("cumulative", cumulative);
        if (average_ == Average::all) dead.save(store, "dead");
    }

    void load(const Store& store) {
        basis.load(store, "basis");
        Workspace<T> work;
        for (std::size_t i = 0; i < n(); ++i) diagonal[i] = diagonal_of(basis.row(i, work));
        scale = store.get<double>("scale");
        if (averages()) cumulative = store.get<double>("cumulative");
        if (average_ == Average::all) dead.load(store, "dead");
    }

    const std::size_t outputs;
    Basis<T> basis;
    Basis<T> dead;  // Average::all: terms that once lived
    Column& coef;   // without scale
    std::vector<double>& born;
    std::vector<double>& diagonal;  // k(x_i, x_i)
    Column* base;                   // with averages: sum of the past coefficients less coef * cumulative
    Column* score;                  // for budgets that ask for it: f(x_i) / scale
    double scale = 1;
    double cumulative = 0;  // sum of scale over the rounds

private:
    static constexpr std::size_t most_ahead = 16;

    // Far from 1 the average would lose digits: then the coefficients take the scale over.
    static bool far(double s) { return !(s > 1e-3 && s < 1e3); }

    void row(const Basis<T>& table, Row<T> x, Workspace<T>& work, T* k) const {
        work.starts[0] = 0;
        work.starts[1] = static_cast<std::int64_t>(x.count);
        kernel_->rows(table, {x.values, x.index, x.index ? work.starts : nullptr, 1, x.count}, table.all(), work, k, 0);
    }

    // How many examples from i on are worth looking at together: the more terms there are, and only where a
    // new term meets those ahead with the very numbers it would meet them with later.
    std::size_t reach(const Rows<T>& X, std::size_t i) const {
        const std::size_t wanted = std::min(n() / 32 + 1, most_ahead);
        const std::size_t count = std::min(wanted < 4 ? wanted : wanted / 4 * 4, X.n - i);  // the vector code's step
        if (!basis.tiled() || !kernel_->symmetric(X.indices != nullptr)) return 1;
        for (std::size_t q = 0; X.indices && q < count; ++q) {
            if (!basis.truly_sparse(X[i + q], kernel_->sharpness())) return std::max(q, std::size_t{1});
        }
        return count;
    }

    void look_ahead(const Rows<T>& X, std::size_t i, Workspace<T>& work) {
        block_begin_ = i;
        block_end_ = i + reach(X, i);
        block_ = X.slice(i, block_end_ - i);
        stride_ = basis.padded(n() + block_.n + 1);
        k_.resize(std::max(k_.size(), block_.n * stride_));
        if (n()) kernel_->rows(basis, block_, basis.all(), work, k_.data(), stride_);
        ahead_.clear();
    }

    // The term that has just entered at the end meets the examples ahead.
    void meet_those_ahead(Row<T> x, Workspace<T>& work) {
        if (ahead_.n() == 0) {
            for (std::size_t q = 0; q < block_.n; ++q) ahead_.append(block_[q]);
            k_ahead_.resize(ahead_.padded(block_.n));
        }
        row(ahead_, x, work, k_ahead_.data());
        for (std::size_t q = now_ + 1 - block_begin_; q < block_.n; ++q) k_[q * stride_ + n() - 1] = k_ahead_[q];
    }

    KernelPointer kernel_;
    Average average_;
    Column& dead_coef_;
    Column& dead_born_;

    Rows<T> block_;  // the examples looked at: block_begin_ .. block_end_ - 1 of those being learned from
    std::size_t block_begin_ = 0;
    std::size_t block_end_ = 0;
    std::size_t now_ = 0;
    std::vector<T> k_;  // their kernel rows
    std::size_t stride_ = 0;
    Basis<T> ahead_;  // the same examples as a table, made when a term enters
    std::vector<T> k_ahead_;
};

}  // namespace onkel
