// Sine and cosine: `sincos`.
#pragma once

#include "core/simd/vector.hpp"

namespace onkel::ONKEL_NAMESPACE {
namespace {

// Argument reduction by pi / 2: q = k pi / 2 + r with an integer k and |r| least.
template <class T>
struct Quarters;

template <>
struct Quarters<float> {
    // sin r = r (1 + r^2 (...)), cos r = 1 + r^2 (...) for |r| <= 0.79: error 2e-9
    static constexpr float sine[] = {-1.94944427e-4f, 8.33197497e-3f, -0.166666508f};
    static constexpr float cosine[] = {2.44312032e-5f, -1.38873036e-3f, 4.16666456e-2f, -0.5f};
    // pi / 2 in pieces: k times any but the last is exact while |k| <= 2^most_bits, with and without fma
    static constexpr float pieces[] = {1.5703125f, 4.84466553e-4f, -6.39757838e-7f};
    static constexpr int most_bits = 16;
};

template <>
struct Quarters<double> {
    // error 2e-18
    static constexpr double sine[] = {1.5886712267436005e-10, -2.5050567153454555e-8, 2.7557312326362555e-6,
                                      -1.9841269825273484e-4, 8.3333333333155939e-3,  -0.16666666666666596};
    static constexpr double cosine[] = {-1.1358401030517145e-11,
                                        2.0875699980510877e-9,
                                        -2.7557314187317554e-7,
                                        2.4801587288935306e-5,
                                        -1.3888888888873292e-3,
                                        4.1666666666666595e-2,
                                        -0.5};
    static constexpr double pieces[] = {1.5707963276654482, -8.7055156955041661e-10};
    static constexpr int most_bits = 23;
};

template <class T>
constexpr typename Number<T>::Bits most_quarters = typename Number<T>::Bits(1) << Quarters<T>::most_bits;

// Adding it rounds to an integer k and leaves k + most_quarters, which has the two low bits of k, in the low bits.
template <class T>
constexpr T quarter_rounder = T(3) * (typename Number<T>::Bits(1) << (Number<T>::fraction_bits - 1)) + most_quarters<T>;

template <class T>
INLINE Wide<T> round_quarters(Wide<T> q) {
    constexpr Wide<T> zero = {};
    return multiply_add(q, T(0.6366197723675814) - zero, quarter_rounder<T> - zero);
}

template <class T>
constexpr typename Number<T>::Bits far_mask = -2 * most_quarters<T>;

// Has bits of far_mask unless -most_quarters <= k < most_quarters; infinity and NaN have some too.
template <class T>
INLINE WideBits<T> far_bits(Wide<T> rounded) {
    using N = Number<T>;
    using Bits = typename N::Bits;
    constexpr Bits first = Bits(N::bias + N::fraction_bits) << N::fraction_bits;
    return (WideBits<T>)rounded ^ (first | Bits(1) << (N::fraction_bits - 1));
}

// Overwrites, in one vector, the results for which |k| is too large for the argument reduction.
template <class T>
NOT_INLINE void sincos_far(const T* q, T scale, T* cos, T* sin) {
    const WideBits<T> far = far_bits<T>(round_quarters<T>(load<Wide<T>>(q))) & far_mask<T>;
    for (size_t i = 0; i < width<T>; ++i) {
        if (far[i] == 0) continue;
        cos[i] = static_cast<T>(scale * __builtin_cos(q[i]));
        sin[i] = static_cast<T>(scale * __builtin_sin(q[i]));
    }
}

// The series times scale: cheaper than multiplying every result, and rounded once less.
template <class T>
struct Waves {
    using Q = Quarters<T>;
    static constexpr size_t sines = sizeof Q::sine / sizeof(T), cosines = sizeof Q::cosine / sizeof(T);
    T scale, sine[sines], cosine[cosines];

    explicit Waves(T factor) : scale(factor) {
        for (size_t i = 0; i < sines; ++i) sine[i] = factor * Q::sine[i];
        for (size_t i = 0; i < cosines; ++i) cosine[i] = factor * Q::cosine[i];
    }
};

// Sine and cosine of r change places for odd k; the sign follows from the second bit of k and of k + 1.
template <size_t vectors, class T>
INLINE void sincos_block(const T* q, const Waves<T>& waves, T* cos, T* sin) {
    using Bits = typename Number<T>::Bits;
    constexpr int sign_bit = sizeof(T) * 8 - 1;
    constexpr Bits sign = Bits(1) << sign_bit;
    constexpr Wide<T> zero = {};
    const Wide<T> scale = waves.scale - zero;
    Wide<T> r[vectors], square[vectors], s[vectors], c[vectors];
    WideBits<T> bits[vectors], far = {};
    UNROLL for (size_t i = 0; i < vectors; ++i) {
        r[i] = load<Wide<T>>(q + i * width<T>);
        const Wide<T> rounded = round_quarters<T>(r[i]), k = rounded - quarter_rounder<T>;
        UNROLL for (T piece : Quarters<T>::pieces) r[i] = multiply_add(k, -piece - zero, r[i]);
        bits[i] = (WideBits<T>)rounded;
        far |= far_bits<T>(rounded);
        square[i] = r[i] * r[i];
        s[i] = waves.sine[0] - zero;
        c[i] = waves.cosine[0] - zero;
    }
    UNROLL for (size_t power = 1; power < Waves<T>::sines; ++power) {
        UNROLL for (size_t i = 0; i < vectors; ++i) s[i] = s[i] * square[i] + waves.sine[power];
    }
    UNROLL for (size_t power = 1; power < Waves<T>::cosines; ++power) {
        UNROLL for (size_t i = 0; i < vectors; ++i) c[i] = c[i] * square[i] + waves.cosine[power];
    }
    UNROLL for (size_t i = 0; i < vectors; ++i) {
        s[i] = (s[i] * square[i] + scale) * r[i];
        c[i] = c[i] * square[i] + scale;
        const auto even = (bits[i] & 1) == 0;
        const WideBits<T> sin_sign = bits[i] << (sign_bit - 1), cos_sign = sin_sign ^ bits[i] << sign_bit;
        store(cos + i * width<T>, (WideBits<T>)(even ? c[i] : s[i]) ^ (cos_sign & sign));
        store(sin + i * width<T>, (WideBits<T>)(even ? s[i] : c[i]) ^ (sin_sign & sign));
    }
    if (any<T>(far & far_mask<T>)) [[unlikely]] {
        for (size_t i = 0; i < vectors * width<T>; i += width<T>) sincos_far(q + i, waves.scale, cos + i, sin + i);
    }
}

template <class T>
void sincos(const T* __restrict q, size_t n, T scale, T* __restrict cos, T* __restrict sin) {
    constexpr size_t vectors = 4;
    const Waves<T> waves(scale);
    size_t i = 0;
    for (; i + vectors * width<T> <= n; i += vectors * width<T>) sincos_block<vectors>(q + i, waves, cos + i, sin + i);
    if (n < width<T>) {
        T last[3][width<T>] = {};
        for (size_t k = 0; k < n; ++k) last[0][k] = q[k];
        sincos_block<1>(last[0], waves, last[1], last[2]);
        for (size_t k = 0; k < n; ++k) cos[k] = last[1][k], sin[k] = last[2][k];
        return;
    }
    for (; i < n; i += width<T>) {
        const size_t at = i + width<T> <= n ? i : n - width<T>;  // some once more: the same comes out
        sincos_block<1>(q + at, waves, cos + at, sin + at);
    }
}

}  // namespace
}  // namespace onkel::ONKEL_NAMESPACE
