// Kernels: k(x, z) = shape( sum_j pair(x_j, z_j) ); sums and products of such.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "core/basis.hpp"

namespace onkel {

class Kernel {
public:
    virtual ~Kernel() = default;

    // k[q * stride + i] = k(x_i, x_q) for the rows i of the range, up to whole tiles.
    virtual void rows(const Basis<float>&, const Rows<float>& X, Range, Workspace<float>&, float* k,
                      std::size_t stride) const = 0;
    virtual void rows(const Basis<double>&, const Rows<double>& X, Range, Workspace<double>&, double* k,
                      std::size_t stride) const = 0;
    // k(x, x)
    virtual double diagonal(Row<float> x) const = 0;
    virtual double diagonal(Row<double> x) const = 0;
    // Is k(x, x) = 1 for every x?
    virtual bool unit() const { return false; }
    // Tell the table which comparisons are coming.
    virtual void prepare(Basis<float>&) const = 0;
    virtual void prepare(Basis<double>&) const = 0;
};

using KernelPointer = std::shared_ptr<const Kernel>;

// Writes the overloads for float and double from one template each of the derived class.
template <class Self>
class KernelFor : public Kernel {
public:
    void rows(const Basis<float>& b, const Rows<float>& X, Range range, Workspace<float>& w, float* k,
              std::size_t stride) const final {
        self().fill(b, X, range, w, k, stride);
    }
    void rows(const Basis<double>& b, const Rows<double>& X, Range range, Workspace<double>& w, double* k,
              std::size_t stride) const final {
        self().fill(b, X, range, w, k, stride);
    }
    double diagonal(Row<float> x) const final { return self().on_diagonal(x); }
    double diagonal(Row<double> x) const final { return self().on_diagonal(x); }
    void prepare(Basis<float>& b) const final { self().prepare_for(b); }
    void prepare(Basis<double>& b) const final { self().prepare_for(b); }

private:
    const Self& self() const { return static_cast<const Self&>(*this); }
};

// Kernels with one comparison and a shape.
template <class Self>
class Shaped : public KernelFor<Self> {
public:
    template <class T>
    void fill(const Basis<T>& b, const Rows<T>& X, Range range, Workspace<T>& w, T* k, std::size_t stride) const {
        constexpr std::size_t step = 2048;  // so that sums are still in the cache when they are shaped
        if ((range.last - range.first) * X.n > 16 * table_size && b.can_look_up(self().pair(), X)) {
            T table[table_size];
            for (std::size_t sum = 0; sum < table_size; ++sum) table[sum] = static_cast<T>(sum);
            self().shape(table, table_size, 1, table_size);
            return b.look_up(self().pair(), X, range, table, k, stride);
        }
        for (std::size_t i = range.first; i < range.last; i += step) {
            const Range part{i, std::min(i + step, range.last)};
            b.sums(self().pair(), X, part, w, k, stride);
            const std::size_t count = b.padded(part.last) - part.first;
            self().shape(k + i, count, X.n, stride);
        }
    }

    template <class T>
    double on_diagonal(Row<T> x) const {
        double total = 0;
        if (self().pair().kind == PairKind::product) {  // every other comparison of x with itself is zero
            for (std::size_t e = 0; e < x.count; ++e) total += static_cast<double>(x.values[e]) * x.values[e];
        }
        return self().at(total);
    }

    template <class T>
    void prepare_for(Basis<T>& b) const {
        b.prepare(self().pair());
    }

    template <class T>
    void shape(T* v, std::size_t n, std::size_t rows, std::size_t stride) const {
        for (std::size_t q = 0; q < rows; ++q, v += stride) {
            for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<T>(self().at(v[i]));
        }
    }

private:
    const Self& self() const { return static_cast<const Self&>(*this); }
};

class Linear : public Shaped<Linear> {
public:
    Pair pair() const { return {PairKind::product}; }
    double at(double total) const { return total; }
    template <class T>
    void shape(T*, std::size_t, std::size_t, std::size_t) const {}
};

class Polynomial : public Shaped<Polynomial> {
public:
    Polynomial(int degree, double coef0) : degree_(degree), coef0_(coef0) {}
    Pair pair() const { return {PairKind::product}; }
    double at(double total) const {
        double power = 1;
        double square = total + coef0_;
        for (int p = degree_; p > 0; p /= 2, square *= square) power *= p % 2 ? square : 1;
        return power;
    }
    // The usual degrees without a loop in the loop, in the order of `at`.
    template <class T>
    void shape(T* v, std::size_t n, std::size_t rows, std::size_t stride) const {
        const auto each = [=, this](auto power) {
            for (std::size_t q = 0; q < rows; ++q) {
                T* row = v + q * stride;
                for (std::size_t i = 0; i < n; ++i) row[i] = static_cast<T>(power(row[i] + coef0_));
            }
        };
        if (degree_ == 1) return each([](double total) { return total; });
        if (degree_ == 2) return each([](double total) { return total * total; });
        if (degree_ == 3) return each([](double total) { return total * (total * total); });
        Shaped<Polynomial>::shape(v, n, rows, stride);
    }

private:
    int degree_;
    double coef0_;
};

class Sigmoid : public Shaped<Sigmoid> {
public:
    Sigmoid(double gamma, double coef0) : gamma_(gamma), coef0_(coef0) {}
    Pair pair() const { return {PairKind::product}; }
    double at(double total) const { return std::tanh(gamma_ * total + coef0_); }

private:
    double gamma_;
    double coef0_;
};

// exp(-gamma * sum); what is summed makes the kernel.
template <PairKind kind>
class Decay : public Shaped<Decay<kind>> {
public:
    explicit Decay(double gamma) : gamma_(gamma) {}
    Pair pair() const { return {kind, kind == PairKind::cauchy ? gamma_ : 0, gamma_}; }
    double at(double) const { return 1; }  // only ever asked for x itself
    bool unit() const override { return true; }
    template <class T>
    void shape(T* v, std::size_t n, std::size_t rows, std::size_t stride) const {
        simd<T>().decay(v, n, rows, stride, static_cast<T>(kind == PairKind::cauchy ? 1.0 : gamma_));
    }

private:
    double gamma_;
};

using Gaussian = Decay<PairKind::square>;
using Laplacian = Decay<PairKind::absolute>;
using Cauchy = Decay<PairKind::cauchy>;

class Constant : public KernelFor<Constant> {
public:
    explicit Constant(double value) : value_(value) {}
    bool unit() const override { return value_ == 1; }
    template <class T>
    void fill(const Basis<T>&, const Rows<T>& X, Range range, Workspace<T>&, T* k, std::size_t stride) const {
        for (std::size_t q = 0; q < X.n; ++q) {
            std::fill(k + q * stride + range.first, k + q * stride + range.last, static_cast<T>(value_));
        }
    }
    template <class T>
    double on_diagonal(Row<T>) const {
        return value_;
    }
    template <class T>
    void prepare_for(Basis<T>&) const {}

private:
    double value_;
};

// Several kernels combined value by value: a sum or a product.
template <bool sum>
class Combination : public KernelFor<Combination<sum>> {
public:
    explicit Combination(std::vector<KernelPointer> kernels) : kernels_(std::move(kernels)) {}

    bool unit() const override {
        return !sum && std::all_of(kernels_.begin(), kernels_.end(), [](const auto& kernel) { return kernel->unit(); });
    }

    template <class T>
    void fill(const Basis<T>& b, const Rows<T>& X, Range range, Workspace<T>& w, T* k, std::size_t stride) const {
        kernels_[0]->rows(b, X, range, w, k, stride);
        const std::size_t width = b.padded(range.last);
        std::vector<T> other(X.n * width);
        for (std::size_t term = 1; term < kernels_.size(); ++term) {
            kernels_[term]->rows(b, X, range, w, other.data(), width);
            for (std::size_t q = 0; q < X.n; ++q) {
                T* to = k + q * stride;
                const T* from = other.data() + q * width;
                for (std::size_t i = range.first; i < range.last; ++i) {
                    to[i] = sum ? to[i] + from[i] : to[i] * from[i];
                }
            }
        }
    }

    template <class T>
    double on_diagonal(Row<T> x) const {
        double total = kernels_[0]->diagonal(x);
        for (std::size_t term = 1; term < kernels_.size(); ++term) {
            const double other = kernels_[term]->diagonal(x);
            total = sum ? total + other : total * other;
        }
        return total;
    }

    template <class T>
    void prepare_for(Basis<T>& b) const {
        for (const KernelPointer& kernel : kernels_) kernel->prepare(b);
    }

private:
    std::vector<KernelPointer> kernels_;
};

using Sum = Combination<true>;
using Product = Combination<false>;

}  // namespace onkel
