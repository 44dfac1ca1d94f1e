// Vectors of the compiler, ONKEL_VECTOR_BYTES long, and what every loop does with them.
//
// table.cpp includes these files once per instruction set, each time in another ONKEL_NAMESPACE. All they define is in
// anonymous namespaces, and they call no std function: an inline function compiled for AVX-512 must not become the copy
// that the linker keeps for the whole program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/row.hpp"

#ifdef __AVX__
#include <immintrin.h>
#endif

#define INLINE inline __attribute__((always_inline))
#define INLINE_LAMBDA __attribute__((always_inline))
#define NOT_INLINE __attribute__((noinline))
#define UNROLL _Pragma("GCC unroll 16")  // gcc keeps an array in registers only if the loops over it vanish

namespace onkel::ONKEL_NAMESPACE {
namespace {

using std::size_t;

template <class T, size_t N>
struct VectorOf {
    typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, size_t N>
using Vector = typename VectorOf<T, N>::type;

template <class T>
constexpr size_t width = ONKEL_VECTOR_BYTES / sizeof(T);
template <class T>
using Wide = Vector<T, width<T>>;

template <class V, class T>
INLINE V load(const T* from) {
    V v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
}

template <class V, class T>
INLINE V load_aligned(const T* from) {
    return load<V>(static_cast<const T*>(__builtin_assume_aligned(from, sizeof(V))));
}

template <class V, class T>
INLINE void store(T* to, V v) {
    __builtin_memcpy(to, &v, sizeof v);
}

template <size_t N, class T>
INLINE Vector<double, N> load_doubles(const T* from) {
#ifdef __AVX__
    // gcc 12 would convert two floats at a time
    if constexpr (N == 4 && sizeof(T) == 4) return (Vector<double, 4>)_mm256_cvtps_pd(_mm_loadu_ps(from));
#endif
#if ONKEL_VECTOR_BYTES == 64
    if constexpr (N == 8 && sizeof(T) == 4)
        return (Vector<double, 8>)_mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(from));
#endif
    return __builtin_convertvector(load<Vector<T, N>>(from), Vector<double, N>);
}

// a b + c, rounded once if the processor can: gcc contracts the expression, clang not always.
template <class V>
INLINE V multiply_add(V a, V b, V c) {
#if (defined(__FMA__) || defined(__ARM_FEATURE_FMA)) && __has_builtin(__builtin_elementwise_fma)
    return __builtin_elementwise_fma(a, b, c);
#else
    return a * b + c;
#endif
}

template <class T>
struct Number;

template <>
struct Number<float> {
    using Bits = std::int32_t;
    static constexpr Bits magnitude = 0x7fffffff;
    static constexpr int fraction_bits = 23, bias = 127;
};

template <>
struct Number<double> {
    using Bits = std::int64_t;
    static constexpr Bits magnitude = 0x7fffffffffffffff;
    static constexpr int fraction_bits = 52, bias = 1023;
};

template <class T>
using WideBits = Vector<typename Number<T>::Bits, width<T>>;

template <class T>
INLINE Wide<T> absolute(Wide<T> v) {
    return (Wide<T>)((WideBits<T>)v & Number<T>::magnitude);
}

template <class T>
INLINE bool any(WideBits<T> bits) {
#if ONKEL_VECTOR_BYTES == 64
    return _mm512_test_epi64_mask((__m512i)bits, (__m512i)bits) != 0;
#elif ONKEL_VECTOR_BYTES == 32
    return !_mm256_testz_si256((__m256i)bits, (__m256i)bits);
#else
    const auto halves = (Vector<std::int64_t, 2>)bits;
    return (halves[0] | halves[1]) != 0;
#endif
}

template <class T>
using WideWord = Vector<Word<T>, width<T>>;

}  // namespace
}  // namespace onkel::ONKEL_NAMESPACE
