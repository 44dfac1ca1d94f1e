// exp(-rate v): `decay`.
#pragma once

#include "core/simd/blocks.hpp"
#include "core/simd/vector.hpp"

namespace onkel::ONKEL_NAMESPACE {
namespace {

// The result is 2^(n + j / 2^root_bits) 2^f with integers n and j. `series` are the coefficients in the minimax series
// 2^f = 1 + f (...), highest power first. With AVX-512 one instruction looks up 2^(j / 16): |f| is smaller, and the
// series shorter.
template <class T>
struct Powers;

#if ONKEL_VECTOR_BYTES == 64

constexpr int root_bits = 4;

// For each j, what added to the bits of 2^n (1 + j / 16) gives those of 2^(n + j / 16).
template <class T>
struct Roots {
    using N = Number<T>;
    using Bits = typename N::Bits;
    alignas(64) Bits bits[1 << root_bits];

    consteval explicit Roots(const T (&roots)[1 << root_bits]) {
        for (size_t j = 0; j < 1 << root_bits; ++j) {
            const Bits one = Bits(N::bias) << N::fraction_bits;
            bits[j] = __builtin_bit_cast(Bits, roots[j]) - one - (Bits(j) << (N::fraction_bits - root_bits));
        }
    }
};

template <>
struct Powers<float> {
    // |f| <= 1/32: relative error 2e-9
    static constexpr float series[] = {5.55023737e-2f, 0.240234286f, 0.693147182f};
    static constexpr Roots<float> roots{{1.0f, 1.04427378f, 1.09050773f, 1.13878863f, 1.18920712f, 1.24185781f,
                                         1.29683955f, 1.35425555f, 1.41421356f, 1.47682615f, 1.54221083f, 1.61049033f,
                                         1.68179283f, 1.75625216f, 1.83400809f, 1.91520656f}};

    static INLINE WideBits<float> root(WideBits<float> j) {
        return (WideBits<float>)_mm512_maskz_permutexvar_epi32(0xffff, (__m512i)j,
                                                               (__m512i)load<WideBits<float>>(roots.bits));
    }
};

template <>
struct Powers<double> {
    // relative error 7e-18
    static constexpr double series[] = {1.5403350675795773e-4, 1.3333818287301698e-3, 9.6181291121523165e-3,
                                        5.5504108652166477e-2, 0.24022650695909908,   0.69314718055994684};
    // clang-format off
    static constexpr Roots<double> roots{{
        1.0,                 1.04427378242741384, 1.09050773266525766, 1.13878863475669165,
        1.18920711500272107, 1.24185781207348405, 1.29683955465100967, 1.35425554693689273,
        1.41421356237309505, 1.47682614593949931, 1.54221082540794082, 1.61049033194925431,
        1.68179283050742909, 1.7562521603732995,  1.83400808640934246, 1.9152065613971473}};
    // clang-format on

    static INLINE WideBits<double> root(WideBits<double> j) {
        return (WideBits<double>)_mm512_permutex2var_epi64((__m512i)load<WideBits<double>>(roots.bits), (__m512i)j,
                                                           (__m512i)load<WideBits<double>>(roots.bits + 8));
    }
};

#else

constexpr int root_bits = 0;

template <>
struct Powers<float> {
    // |f| <= 1/2: relative error 3e-9
    static constexpr float series[] = {1.53292684e-4f, 1.33909716e-3f, 9.6184993e-3f,
                                       5.55035955e-2f, 0.240226478f,   0.69314718f};
    static INLINE WideBits<float> root(WideBits<float>) { return WideBits<float>{}; }
};

template <>
struct Powers<double> {
    // relative error 4e-18
    static constexpr double series[] = {4.4388499715526871e-10, 7.0732341068321395e-9, 1.0178160131540680e-7,
                                        1.3215438830024132e-6,  1.5252733633781104e-5, 1.5403530449046809e-4,
                                        1.3333558146546465e-3,  9.6181291076015990e-3, 5.5504108664821720e-2,
                                        0.24022650695910109,    0.69314718055994530};
    static INLINE WideBits<double> root(WideBits<double>) { return WideBits<double>{}; }
};

#endif

// exp(-rate x) = 2^k with k = factor x = n + j / 2^root_bits + f, |f| least.
template <class T>
struct Exponent {
    static constexpr int least = 7 - Number<T>::bias;  // of n; there the power becomes 0
    T factor, most;

    explicit Exponent(T rate)
        : factor(static_cast<T>(-1.4426950408889634 * rate)), most(-least * T(0.6931471805599453) / rate) {}
};

// Several vectors at once hide the latency of the series.
template <size_t vectors, class T>
INLINE void decay_block(T* v, size_t stride, Exponent<T> exponent) {
    using N = Number<T>;
    using P = Powers<T>;
    using Bits = typename N::Bits;
    // Adding it rounds to a multiple of 2^-root_bits and leaves n + bias, followed by j, in the low bits.
    constexpr T rounder = T(3) * (Bits(1) << (N::fraction_bits - root_bits - 1)) + N::bias;
    constexpr T smallest = __builtin_bit_cast(T, Bits(N::bias + Exponent<T>::least) << N::fraction_bits);
    constexpr Wide<T> zero = {};  // x - zero is x in every lane
    const Wide<T> factor = exponent.factor - zero, most = exponent.most - zero;
    Wide<T> f[vectors], y[vectors], power[vectors];
    UNROLL for (size_t i = 0; i < vectors; ++i) {
        auto x = load<Wide<T>>(v + i * stride);
        x = most < x ? most : x;  // this way round NaN stays
        const Wide<T> shifted = multiply_add(factor, x, rounder - zero);
        f[i] = multiply_add(factor, x, rounder - shifted);
        y[i] = P::series[0] - zero;
        const auto bits = (WideBits<T>)shifted;
        power[i] = (Wide<T>)((bits << (N::fraction_bits - root_bits)) + P::root(bits)) - smallest;
    }
    UNROLL for (size_t term = 1; term < sizeof P::series / sizeof(T); ++term) {
        UNROLL for (size_t i = 0; i < vectors; ++i) y[i] = y[i] * f[i] + P::series[term];
    }
    UNROLL for (size_t i = 0; i < vectors; ++i) store(v + i * stride, y[i] * f[i] * power[i] + power[i]);
}

template <class T>
void decay(T* v, size_t n, size_t rows, size_t stride, T rate) {
    const Exponent<T> exponent(rate);
    const size_t whole = n / width<T> * width<T>;
    in_blocks<4>(rows, [=]<size_t R>(size_t r) INLINE_LAMBDA {
        for (size_t i = 0; i < whole; i += width<T>) decay_block<R>(v + r * stride + i, stride, exponent);
    });
    for (size_t r = 0; r < rows && whole < n; ++r) {
        T last[width<T>] = {};
        T* rest = v + r * stride + whole;
        for (size_t k = 0; k < n - whole; ++k) last[k] = rest[k];
        decay_block<1>(last, 0, exponent);
        for (size_t k = 0; k < n - whole; ++k) rest[k] = last[k];
    }
}

}  // namespace
}  // namespace onkel::ONKEL_NAMESPACE
