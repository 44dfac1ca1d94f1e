// The Walsh-Hadamard transform: `hadamard`.
#pragma once

#include "core/simd/vector.hpp"

namespace onkel::ONKEL_NAMESPACE {
namespace {

// Steps shorter than a vector: the compiler finds their shuffles if the distance is a constant.
template <size_t half, class T>
INLINE void hadamard_step(T* __restrict v, size_t n) {
    for (size_t i = 0; i < n; i += 2 * half) {
        UNROLL for (size_t k = i; k < i + half; ++k) {
            const T a = v[k], b = v[k + half];
            v[k] = a + b;
            v[k + half] = a - b;
        }
    }
}

template <class T>
void hadamard(T* v, size_t n) {
    if (n > 1) hadamard_step<1>(v, n);
    if (n > 2) hadamard_step<2>(v, n);
    if (n > 4) hadamard_step<4>(v, n);
    if (n > 8) hadamard_step<8>(v, n);
    for (size_t half = 16; half < n; half *= 2) {
        for (size_t i = 0; i < n; i += 2 * half) {
            T* __restrict left = v + i;
            T* __restrict right = v + i + half;
            for (size_t k = 0; k < half; ++k) {
                const T a = left[k], b = right[k];
                left[k] = a + b;
                right[k] = a - b;
            }
        }
    }
}

}  // namespace
}  // namespace onkel::ONKEL_NAMESPACE
