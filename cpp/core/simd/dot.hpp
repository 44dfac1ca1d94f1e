// Two vectors: `dot` and `axpy`, `inner` and `add_scaled`.
#pragma once

#include "core/simd/vector.hpp"

namespace onkel::ONKEL_NAMESPACE {
namespace {

// Halves `count` vectors until `left` remain.
template <size_t left, class V>
INLINE void fold(V* sum, size_t count) {
    UNROLL for (size_t half = count / 2; half >= left; half /= 2) {
        UNROLL for (size_t k = 0; k < half; ++k) sum[k] += sum[k + half];
    }
}

// Vectors of two or four numbers; the order is the same.
template <size_t count, class V>
INLINE double add_up(V* sum) {
    fold<1>(sum, count);
    const V all = sum[0];
    constexpr size_t n = sizeof all / sizeof all[0];
    return n == 4 ? (all[0] + all[2 % n]) + (all[1] + all[3 % n]) : all[0] + all[1];
}

// Element i joins partial sum i % 32 whatever the vector width, and the last n % 4 their total: the order
// depends on n alone.
template <class T>
double dot(const double* a, const T* b, size_t n) {
    constexpr size_t chains = 32, step = width<double> < 4 ? width<double> : 4;
    using Sum = Vector<double, step>;
    Wide<double> wide[chains / width<double>];
    UNROLL for (auto& v : wide) v = Wide<double>{};
    size_t i = 0;
    for (; i + chains <= n; i += chains) {
        UNROLL for (size_t k = 0; k < chains; k += width<double>) {
            wide[k / width<double>] += load<Wide<double>>(a + i + k) * load_doubles<width<double>>(b + i + k);
        }
    }
    Sum sum[chains / step];
    __builtin_memcpy(sum, wide, sizeof sum);
    UNROLL for (size_t k = 0; k < chains; k += step) {
        if (i + k < n / 4 * 4) sum[k / step] += load<Sum>(a + i + k) * load_doubles<step>(b + i + k);
    }
    double total = add_up<chains / step>(sum);
    UNROLL for (size_t k = n / 4 * 4, e = 0; e < 3; ++e) {
        if (k + e < n) total += a[k + e] * b[k + e];
    }
    return total;
}

template <class T>
void axpy(double* __restrict y, double a, const T* __restrict x, size_t n) {
    for (size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

// Element i joins partial sum i % 64, and one of 16 others behind the last whole 64: again an order that depends on n
// alone.
double inner(const float* a, const float* b, size_t n) {
    constexpr size_t chains = 64, step = width<float>, tails = 16, few = 4, pair = width<double> < 4 ? 2 : 4;
    using Sum = Wide<float>;
    using Few = Vector<float, few>;
    Sum sum[chains / step];
    Few tail[tails / few];
    UNROLL for (size_t k = 0; k < chains / step; ++k) sum[k] = Sum{};
    UNROLL for (size_t k = 0; k < tails / few; ++k) tail[k] = Few{};
    size_t i = 0;
    for (; i + chains <= n; i += chains) {
        UNROLL for (size_t k = 0; k < chains; k += step) sum[k / step] += load<Sum>(a + i + k) * load<Sum>(b + i + k);
    }
    const auto add_tail = [&](size_t k) INLINE_LAMBDA { tail[k / few] += load<Few>(a + i + k) * load<Few>(b + i + k); };
    for (; i + tails <= n; i += tails) {
        UNROLL for (size_t k = 0; k < tails; k += few) add_tail(k);
    }
    UNROLL for (size_t k = 0; k < tails - few; k += few) {
        if (i + k + few <= n) add_tail(k);
    }
    fold<tails / step>(sum, chains / step);
    float part[tails], tail_part[tails];
    UNROLL for (size_t k = 0; k < tails; k += step) store(part + k, sum[k / step]);
    UNROLL for (size_t k = 0; k < tails; k += few) store(tail_part + k, tail[k / few]);
    Vector<double, pair> wide[tails / pair];
    UNROLL for (size_t k = 0; k < tails; k += pair) {
        wide[k / pair] = load_doubles<pair>(part + k) + load_doubles<pair>(tail_part + k);
    }
    double total = add_up<tails / pair>(wide);
    UNROLL for (size_t k = n / few * few, e = 0; e < few - 1; ++e) {
        if (k + e < n) total += static_cast<double>(a[k + e]) * b[k + e];
    }
    return total;
}

double inner(const double* a, const double* b, size_t n) { return dot(a, b, n); }

template <class T>
void add_scaled(T* __restrict y, T a, const T* __restrict x, size_t n) {
    for (size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

}  // namespace
}  // namespace onkel::ONKEL_NAMESPACE
