// Searching the terms: `minimum` of their values, and what merging with each of them would give (`interpolated`).
#pragma once

#include "core/simd/vector.hpp"

namespace onkel::ONKEL_NAMESPACE {
namespace {

double minimum(const double* v, size_t n) {
    constexpr size_t step = width<double>, chains = 4;
    double found = v[0];
    size_t i = 0;
    if (n >= chains * step) {
        Wide<double> part[chains];
        UNROLL for (size_t k = 0; k < chains; ++k) part[k] = load<Wide<double>>(v + k * step);
        for (i = chains * step; i + chains * step <= n; i += chains * step) {
            UNROLL for (size_t k = 0; k < chains; ++k) {
                const auto next = load<Wide<double>>(v + i + k * step);
                part[k] = next < part[k] ? next : part[k];
            }
        }
        double all[chains * step];
        UNROLL for (size_t k = 0; k < chains; ++k) store(all + k * step, part[k]);
        for (const double value : all) found = value < found ? value : found;
    }
    for (; i < n; ++i) found = v[i] < found ? v[i] : found;
    return found;
}

template <class T>
void interpolated(const double* __restrict nodes, size_t size, double a, const double* __restrict b,
                  const T* __restrict k, size_t n, double* __restrict out) {
    const double last = static_cast<double>(size - 1);
    const int row = static_cast<int>(size), most = row - 2;
    for (size_t i = 0; i < n; ++i) {
        const double both = a + b[i];
        double x = 2 * last * a / both, y = last * static_cast<double>(k[i]);
        x = x < last ? x : last;  // >= 0 if the signs are equal; for other signs it is not used
        x = x > 0 ? x : 0;
        y = y < last ? y : last;
        int p = static_cast<int>(x), q = static_cast<int>(y);
        p = p < most ? p : most;
        q = q < most ? q : most;
        const double right = x - p, up = y - q;
        const int at = p * row + q;
        const double near = nodes[at] + up * (nodes[at + 1] - nodes[at]);
        const double far = nodes[at + row] + up * (nodes[at + row + 1] - nodes[at + row]);
        const double g = near + right * (far - near);
        out[i] = a * b[i] > 0 ? both * both * g : __builtin_inf();
    }
}

}  // namespace
}  // namespace onkel::ONKEL_NAMESPACE
