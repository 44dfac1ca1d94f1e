// Kernels: k(x, z) = shape( sum_j compare(x_j, z_j) ); sums and products of such.
#pragma once

#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "basis.hpp"

namespace onkel {

class Kernel {
  public:
    virtual ~Kernel() = default;

    // k[i] = k(x_i, x) for all stored rows; writes basis.padded() elements.
    virtual void row(const Basis<float>&, Row<float> x, Workspace<float>&, float* k) const = 0;
    virtual void row(const Basis<double>&, Row<double> x, Workspace<double>&, double* k) const = 0;
    // The same for several dense examples at once, k[q * stride + i].
    virtual void rows(const Basis<float>&, Rows<float> x, Workspace<float>&, float* k, std::size_t stride) const = 0;
    virtual void rows(const Basis<double>&, Rows<double> x, Workspace<double>&, double* k,
                      std::size_t stride) const = 0;
    // k(x, x)
    virtual double diagonal(Row<float> x) const = 0;
    virtual double diagonal(Row<double> x) const = 0;
    // Tell the table which comparisons are coming.
    virtual void prepare(Basis<float>&) const = 0;
    virtual void prepare(Basis<double>&) const = 0;
};

using KernelPointer = std::shared_ptr<const Kernel>;

// Writes the overloads for float and double from one template each of the derived class.
template <class Self>
class KernelFor : public Kernel {
  public:
    void row(const Basis<float>& b, Row<float> x, Workspace<float>& w, float* k) const final { self().fill(b, x, w, k); }
    void row(const Basis<double>& b, Row<double> x, Workspace<double>& w, double* k) const final {
        self().fill(b, x, w, k);
    }
    void rows(const Basis<float>& b, Rows<float> x, Workspace<float>& w, float* k, std::size_t stride) const final {
        self().fill_many(b, x, w, k, stride);
    }
    void rows(const Basis<double>& b, Rows<double> x, Workspace<double>& w, double* k, std::size_t stride) const final {
        self().fill_many(b, x, w, k, stride);
    }
    double diagonal(Row<float> x) const final { return self().at_itself(x); }
    double diagonal(Row<double> x) const final { return self().at_itself(x); }
    void prepare(Basis<float>& b) const final { self().announce(b); }
    void prepare(Basis<double>& b) const final { self().announce(b); }

    template <class T>
    void fill_many(const Basis<T>& b, Rows<T> x, Workspace<T>& w, T* k, std::size_t stride) const {
        for (std::size_t q = 0; q < x.n; ++q) self().fill(b, x[q], w, k + q * stride);
    }

  private:
    const Self& self() const { return static_cast<const Self&>(*this); }
};

// Kernels with one comparison and a shape.
template <class Self>
class Shaped : public KernelFor<Self> {
  public:
    template <class T>
    void fill(const Basis<T>& b, Row<T> x, Workspace<T>& w, T* k) const {
        b.sums(self().compare(), x, w, k);
        self().shape(k, b.n());
    }

    template <class T>
    void fill_many(const Basis<T>& b, Rows<T> x, Workspace<T>& w, T* k, std::size_t stride) const {
        if (!b.tiled() || x.indices || self().compare().kind == Compare::cauchy) {
            KernelFor<Self>::fill_many(b, x, w, k, stride);
            return;
        }
        b.sums(self().compare(), x.values, x.n, k, stride);
        for (std::size_t q = 0; q < x.n; ++q) self().shape(k + q * stride, b.n());
    }

    template <class T>
    double at_itself(Row<T> x) const {
        double total = 0;
        if (self().compare().kind == Compare::product) {  // every other comparison of x with itself is zero
            for (std::size_t e = 0; e < x.count; ++e) total += static_cast<double>(x.values[e]) * x.values[e];
        }
        self().shape(&total, 1);
        return total;
    }

    template <class T>
    void announce(Basis<T>& b) const {
        b.prepare(self().compare());
    }

  private:
    const Self& self() const { return static_cast<const Self&>(*this); }
};

class Linear : public Shaped<Linear> {
  public:
    Compare compare() const { return {Compare::product}; }
    template <class T>
    void shape(T*, std::size_t) const {}
};

class Polynomial : public Shaped<Polynomial> {
  public:
    Polynomial(int degree, double coef0) : degree_(degree), coef0_(coef0) {}
    Compare compare() const { return {Compare::product}; }
    template <class T>
    void shape(T* v, std::size_t n) const {
        for (std::size_t i = 0; i < n; ++i) {
            const T base = v[i] + static_cast<T>(coef0_);
            T power = base;
            for (int p = 1; p < degree_; ++p) power *= base;
            v[i] = power;
        }
    }

  private:
    int degree_;
    double coef0_;
};

class Sigmoid : public Shaped<Sigmoid> {
  public:
    Sigmoid(double gamma, double coef0) : gamma_(gamma), coef0_(coef0) {}
    Compare compare() const { return {Compare::product}; }
    template <class T>
    void shape(T* v, std::size_t n) const {
        for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<T>(std::tanh(gamma_ * v[i] + coef0_));
    }

  private:
    double gamma_;
    double coef0_;
};

// exp(-gamma * sum); what is summed makes the kernel.
template <Compare::Kind kind>
class Decay : public Shaped<Decay<kind>> {
  public:
    explicit Decay(double gamma) : gamma_(gamma) {}
    Compare compare() const { return {kind, kind == Compare::cauchy ? gamma_ : 0}; }
    template <class T>
    void shape(T* v, std::size_t n) const {
        simd<T>().exp(v, n, static_cast<T>(kind == Compare::cauchy ? -1.0 : -gamma_));
    }

  private:
    double gamma_;
};

using Gaussian = Decay<Compare::square>;
using Laplacian = Decay<Compare::absolute>;
using Cauchy = Decay<Compare::cauchy>;

class Constant : public KernelFor<Constant> {
  public:
    explicit Constant(double value) : value_(value) {}
    template <class T>
    void fill(const Basis<T>& b, Row<T>, Workspace<T>&, T* k) const {
        for (std::size_t i = 0; i < b.n(); ++i) k[i] = static_cast<T>(value_);
    }
    template <class T>
    double at_itself(Row<T>) const {
        return value_;
    }
    template <class T>
    void announce(Basis<T>&) const {}

  private:
    double value_;
};

// Several kernels combined value by value: a sum or a product.
template <bool sum>
class Combination : public KernelFor<Combination<sum>> {
  public:
    explicit Combination(std::vector<KernelPointer> kernels) : kernels_(std::move(kernels)) {}

    template <class T>
    void fill(const Basis<T>& b, Row<T> x, Workspace<T>& w, T* k) const {
        kernels_[0]->row(b, x, w, k);
        std::vector<T> other(b.padded());
        for (std::size_t term = 1; term < kernels_.size(); ++term) {
            kernels_[term]->row(b, x, w, other.data());
            for (std::size_t i = 0; i < b.n(); ++i) k[i] = sum ? k[i] + other[i] : k[i] * other[i];
        }
    }

    template <class T>
    double at_itself(Row<T> x) const {
        double total = kernels_[0]->diagonal(x);
        for (std::size_t term = 1; term < kernels_.size(); ++term) {
            const double other = kernels_[term]->diagonal(x);
            total = sum ? total + other : total * other;
        }
        return total;
    }

    template <class T>
    void announce(Basis<T>& b) const {
        for (const KernelPointer& kernel : kernels_) kernel->prepare(b);
    }

  private:
    std::vector<KernelPointer> kernels_;
};

using Sum = Combination<true>;
using Product = Combination<false>;

}  // namespace onkel
