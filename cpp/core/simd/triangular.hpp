// Triangular matrices: solving (`forward`, `backward`) and turning two of their columns (`rotate`).
#pragma once

#include "core/simd/vector.hpp"

namespace onkel::ONKEL_NAMESPACE {
namespace {

// A few columns at a time: y is read and written once for all of them, and they come from memory together.
constexpr size_t columns_at_once = 4;

void forward(const double* __restrict L, size_t stride, size_t n, double* __restrict y) {
    size_t j = 0;
    for (; j + columns_at_once <= n; j += columns_at_once, L += columns_at_once * stride) {
        double by[columns_at_once];
        UNROLL for (size_t c = 0; c < columns_at_once; ++c) {
            by[c] = y[j + c];
            UNROLL for (size_t b = 0; b < c; ++b) by[c] -= L[b * stride + j + c] * by[b];
            y[j + c] = by[c] /= L[c * stride + j + c];
        }
        size_t i = j + columns_at_once;
        for (; i + width<double> <= n; i += width<double>) {
            auto v = load<Wide<double>>(y + i);
            UNROLL for (size_t c = 0; c < columns_at_once; ++c) v -= by[c] * load<Wide<double>>(L + c * stride + i);
            store(y + i, v);
        }
        for (; i < n; ++i) {
            UNROLL for (size_t c = 0; c < columns_at_once; ++c) y[i] -= by[c] * L[c * stride + i];
        }
    }
    for (; j < n; ++j, L += stride) {
        y[j] /= L[j];
        for (size_t i = j + 1; i < n; ++i) y[i] -= y[j] * L[i];
    }
}

void backward(const double* __restrict L, size_t stride, size_t n, double* __restrict y) {
    L += n * stride;
    size_t j = n;
    while (j % columns_at_once != 0) {
        --j, L -= stride;
        for (size_t i = j + 1; i < n; ++i) y[j] -= L[i] * y[i];
        y[j] /= L[j];
    }
    while (j > 0) {
        j -= columns_at_once, L -= columns_at_once * stride;
        Wide<double> sum[columns_at_once];
        UNROLL for (size_t c = 0; c < columns_at_once; ++c) sum[c] = Wide<double>{};
        size_t i = j + columns_at_once;
        for (; i + width<double> <= n; i += width<double>) {
            const auto v = load<Wide<double>>(y + i);
            UNROLL for (size_t c = 0; c < columns_at_once; ++c) sum[c] += v * load<Wide<double>>(L + c * stride + i);
        }
        UNROLL for (size_t c = columns_at_once; c-- > 0;) {
            double total = 0;
            UNROLL for (size_t k = 0; k < width<double>; ++k) total += sum[c][k];
            for (size_t k = i; k < n; ++k) total += L[c * stride + k] * y[k];
            UNROLL for (size_t b = c + 1; b < columns_at_once; ++b) total += L[c * stride + j + b] * y[j + b];
            y[j + c] = (y[j + c] - total) / L[c * stride + j + c];
        }
    }
}

void rotate(double c, double s, const double* from, double* other, double* to, size_t n) {
    const auto turn = [=]<class V>(size_t i, V) INLINE_LAMBDA {
        const auto a = load<V>(from + i), b = load<V>(other + i);
        store(to + i, c * a + s * b);
        store(other + i, c * b - s * a);
    };
    size_t i = 0;
    for (; i + width<double> <= n; i += width<double>) turn(i, Wide<double>{});
    for (; i < n; ++i) turn(i, double{});
}

}  // namespace
}  // namespace onkel::ONKEL_NAMESPACE
