// Expansion: f(x) = scale * sum_i coef_i k(x_i, x), and the average of its past selves.
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "basis.hpp"
#include "kernels.hpp"
#include "store.hpp"

namespace onkel {

enum class Average { none, live, all };

template <class T>
class Expansion {
  public:
    using Column = typename Basis<T>::Column;

    Expansion(KernelPointer kernel, std::size_t width, std::size_t columns, bool sparse, Average average,
              bool keep_scores)
        : outputs(width), basis(columns, sparse), dead(columns, sparse), coef(basis.declare("coef", width)),
          born(basis.declare("born", 1).values[0]), diagonal(basis.declare("diagonal", 1, false).values[0]),
          base(average == Average::none ? nullptr : &basis.declare("base", width)),
          score(keep_scores ? &basis.declare("score", width) : nullptr), kernel_(std::move(kernel)), average_(average),
          dead_coef_(dead.declare("coef", width)), dead_born_(dead.declare("born", 1)) {
        kernel_->prepare(basis);
        kernel_->prepare(dead);
    }
    Expansion(const Expansion&) = delete;
    Expansion& operator=(const Expansion&) = delete;

    std::size_t n() const { return basis.n(); }
    bool averages() const { return average_ != Average::none; }

    // -- scoring

    void row(Row<T> x, Workspace<T>& work, std::vector<T>& k) const {
        k.resize(basis.padded());
        kernel_->row(basis, x, work, k.data());
    }
    double diagonal_of(Row<T> x) const { return kernel_->diagonal(x); }

    // sum_i coef_i k_i, without scale
    double inner_score(const T* k, std::size_t output) const {
        return simd<T>().dot(coef.values[output].data(), k, n());
    }
    void scores(const T* k, double* s) const {
        for (std::size_t o = 0; o < outputs; ++o) s[o] = scale * inner_score(k, o);
    }
    // The average of the models of rounds 1..t; `inner` are the scores without scale.
    void average_scores(Row<T> x, const T* k, double t, Workspace<T>& work, double* s) const {
        std::vector<T> k_dead;
        if (dead.n()) {
            k_dead.resize(dead.padded());
            kernel_->row(dead, x, work, k_dead.data());
        }
        for (std::size_t o = 0; o < outputs; ++o) {
            double total = cumulative * inner_score(k, o) + simd<T>().dot(base->values[o].data(), k, n());
            if (dead.n()) total += simd<T>().dot(dead_coef_.values[o].data(), k_dead.data(), dead.n());
            s[o] = total / std::max(t, 1.0);
        }
    }
    // Scores of many examples, written row by row.
    void predict(Rows<T> X, bool averaged, double t, double* out) const {
        constexpr std::size_t block = 8;
        Workspace<T> work;
        const std::size_t stride = basis.padded();
        std::vector<T> k(block * stride + 1);
        for (std::size_t i = 0; i < X.n; i += block) {
            const std::size_t count = std::min(block, X.n - i);
            if (n()) {
                if (X.indices) {
                    for (std::size_t q = 0; q < count; ++q) kernel_->row(basis, X[i + q], work, k.data() + q * stride);
                } else {
                    kernel_->rows(basis, {X[i].values, nullptr, nullptr, count, X.columns}, work, k.data(), stride);
                }
            }
            for (std::size_t q = 0; q < count; ++q) {
                const T* kq = k.data() + q * stride;
                double* s = out + (i + q) * outputs;
                averaged ? average_scores(X[i + q], kq, t, work, s) : scores(kq, s);
            }
        }
    }

    // -- moving

    // A round begins: the model as it is enters the average.
    void count() { cumulative += scale; }

    void shrink(double factor) {
        if (n() == 0) return;
        scale *= factor;
        if (scale > 1e-3 && scale < 1e3) return;  // far from 1 the average would lose digits
        for (std::size_t o = 0; o < outputs; ++o) {
            for (std::size_t i = 0; i < n(); ++i) {
                if (base) base->values[o][i] += cumulative * coef.values[o][i];
                coef.values[o][i] *= scale;
            }
        }
        scale = 1;
        cumulative = 0;
    }

    void append(Row<T> x, double t, double kxx, const double* c) {
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
    }

    void widen(std::size_t columns) {
        basis.widen(columns);
        dead.widen(columns);
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
    KernelPointer kernel_;
    Average average_;
    Column& dead_coef_;
    Column& dead_born_;
};

}  // namespace onkel
