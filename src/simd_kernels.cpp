// The hot loops, compiled once per instruction set with its own ONKEL_NAMESPACE and ONKEL_VECTOR_BYTES.
//
// Everything but the two tables at the end is in an anonymous namespace and no std function is used: an
// inline function compiled here for AVX-512 must not become the copy the linker keeps for the whole program.
#include "simd.hpp"

#ifdef __AVX__
#include <immintrin.h>
#endif

#define INLINE inline __attribute__((always_inline))
#define INLINE_LAMBDA __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")  // gcc keeps an array in registers only if the loops over it vanish

namespace onkel::ONKEL_NAMESPACE {
namespace {

using std::size_t;

// ---- vectors ----

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

// Lanes of a double vector that meets T: Zen 4 converts two 32-byte vectors faster than one of 64.
template <class T>
constexpr size_t meeting_width = sizeof(T) < 8 && ONKEL_VECTOR_BYTES > 32 ? 4 : width<double>;

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
    // 2 * 2^f = 2 + f (...) for |f| <= 1/2, highest power first: minimax, relative error 3e-9
    static constexpr float series[] = {3.06585367e-4f, 2.67819432e-3f, 1.92369986e-2f,
                                       0.111007191f,   0.480452955f,   1.38629436f};
};

template <>
struct Number<double> {
    using Bits = std::int64_t;
    static constexpr Bits magnitude = 0x7fffffffffffffff;
    static constexpr int fraction_bits = 52, bias = 1023;
    // relative error 4e-18
    static constexpr double series[] = {8.8776999431053742e-10, 1.4146468213664279e-8, 2.0356320263081360e-7,
                                        2.6430877660048264e-6,  3.0505467267562208e-5, 3.0807060898093618e-4,
                                        2.6667116293092930e-3,  1.9236258215203198e-2, 0.11100821732964344,
                                        0.48045301391820217,    1.3862943611198906};
};

template <class T>
using WideBits = Vector<typename Number<T>::Bits, width<T>>;

template <class T>
INLINE Wide<T> absolute(Wide<T> v) {
    return (Wide<T>)((WideBits<T>)v & Number<T>::magnitude);
}

// ---- blocks of tiles ----

// Eight chains of additions hide the latency of one; a block of queries must also fit the registers.
constexpr size_t single_tiles = ONKEL_VECTOR_BYTES / 8;
constexpr size_t sparse_tiles = ONKEL_VECTOR_BYTES / 16;
constexpr size_t many_tiles = ONKEL_VECTOR_BYTES == 64 ? 6 : ONKEL_VECTOR_BYTES / 16;
constexpr size_t many_queries = ONKEL_VECTOR_BYTES == 64 ? 4 : 3;

template <class Call>
INLINE void with_pair(Pair pair, Call call) {
    switch (pair) {
        case Pair::product:
            return call.template operator()<Pair::product>();
        case Pair::square:
            return call.template operator()<Pair::square>();
        case Pair::absolute:
            return call.template operator()<Pair::absolute>();
    }
}

// Calls with min(n, most) as a constant, so that the last, smaller block is unrolled too.
template <size_t most, class Call>
INLINE void with_count(size_t n, Call call) {
    if constexpr (most > 1) {
        if (n < most) return with_count<most - 1>(n, call);
    }
    call.template operator()<most>();
}

template <Pair pair, class T>
INLINE Wide<T> add_pair(Wide<T> sum, T x, Wide<T> z) {
    if constexpr (pair == Pair::product) return sum + x * z;
    const Wide<T> difference = x - z;
    return sum + (pair == Pair::square ? difference * difference : absolute<T>(difference));
}

// One chain of additions over the features for each row and query, whatever the size of the block.
template <Pair pair, size_t G, size_t Q, class T>
void dense_block(const T* tiles, size_t stride, const T* x, size_t x_stride, size_t columns, T* out,
                 size_t out_stride) {
    constexpr size_t parts = lanes<T> / width<T>;
    Wide<T> sum[G][parts][Q] = {};
    for (size_t j = 0; j < columns; ++j) {
        UNROLL for (size_t g = 0; g < G; ++g) {
            UNROLL for (size_t p = 0; p < parts; ++p) {
                const auto z = load_aligned<Wide<T>>(tiles + g * stride + j * lanes<T> + p * width<T>);
                UNROLL for (size_t q = 0; q < Q; ++q) {
                    sum[g][p][q] = add_pair<pair>(sum[g][p][q], x[q * x_stride + j], z);
                }
            }
        }
    }
    UNROLL for (size_t g = 0; g < G; ++g) {
        UNROLL for (size_t p = 0; p < parts; ++p) {
            UNROLL for (size_t q = 0; q < Q; ++q) {
                store(out + q * out_stride + g * lanes<T> + p * width<T>, sum[g][p][q]);
            }
        }
    }
}

// Queries inside: the tiles of a block stay in the cache for all of them.
template <size_t most_tiles, size_t most_queries, class T>
INLINE void dense_blocks(Pair which, const T* tiles, size_t stride, size_t count, const T* x, size_t x_stride,
                         size_t queries, size_t columns, T* out, size_t out_stride) {
    with_pair(which, [=]<Pair pair>() {
        for (size_t t = 0; t < count; t += most_tiles) {
            with_count<most_tiles>(count - t, [=]<size_t G>() INLINE_LAMBDA {
                for (size_t q = 0; q < queries; q += most_queries) {
                    with_count<most_queries>(queries - q, [=]<size_t Q>() INLINE_LAMBDA {
                        dense_block<pair, G, Q>(tiles + t * stride, stride, x + q * x_stride, x_stride, columns,
                                                out + q * out_stride + t * lanes<T>, out_stride);
                    });
                }
            });
        }
    });
}

template <class T>
void dense(Pair pair, const T* tiles, size_t stride, size_t count, const T* x, size_t columns, T* out) {
    dense_blocks<single_tiles, 1>(pair, tiles, stride, count, x, 0, 1, columns, out, 0);
}

template <class T>
void dense_many(Pair pair, const T* tiles, size_t stride, size_t count, const T* x, size_t x_stride, size_t queries,
                size_t columns, T* out, size_t out_stride) {
    dense_blocks<many_tiles, many_queries>(pair, tiles, stride, count, x, x_stride, queries, columns, out, out_stride);
}

// Sums in T: in double, which would save what cancels against rest, a row of floats takes 1.7 times as long.
template <Pair pair, size_t G, class T>
void sparse_block(const T* tiles, size_t stride, const T* values, const std::int32_t* index, size_t nonzeros,
                  const double* rest, double squares, T* out) {
    constexpr size_t parts = lanes<T> / width<T>;
    Wide<T> sum[G][parts] = {};
    for (size_t e = 0; e < nonzeros; ++e) {
        const T x = values[e];
        const T* feature = tiles + static_cast<size_t>(index[e]) * lanes<T>;
        UNROLL for (size_t g = 0; g < G; ++g, feature += stride) {
            UNROLL for (size_t p = 0; p < parts; ++p) {
                const auto z = load_aligned<Wide<T>>(feature + p * width<T>);
                sum[g][p] += pair == Pair::absolute ? absolute<T>(x - z) - absolute<T>(z) : x * z;
            }
        }
    }
    UNROLL for (size_t g = 0; g < G; ++g) {
        UNROLL for (size_t p = 0; p < parts; ++p) {
            const size_t at = g * lanes<T> + p * width<T>;
            Wide<T> total = sum[g][p];
            if constexpr (pair != Pair::product) {
                Vector<double, width<T>> base;
                __builtin_memcpy(&base, rest + at, sizeof base);
                if (pair == Pair::square) total *= -2;
                total += __builtin_convertvector(base + squares, Wide<T>);
                total = total < 0 ? Wide<T>{} : total;
            }
            store(out + at, total);
        }
    }
}

// Queries inside, as for dense ones.
template <class T>
void sparse_many(Pair which, const T* tiles, size_t stride, size_t count, const T* values, const std::int32_t* index,
                 const std::int64_t* starts, size_t queries, const double* rest, T* out, size_t out_stride) {
    constexpr size_t most_queries = 16;
    if (queries > most_queries) {
        sparse_many(which, tiles, stride, count, values, index, starts + most_queries, queries - most_queries, rest,
                    out + most_queries * out_stride, out_stride);
        queries = most_queries;
    }
    with_pair(which, [=]<Pair pair>() {
        double squares[most_queries] = {};
        if (pair == Pair::square) {
            for (size_t q = 0; q < queries; ++q) {
                for (std::int64_t e = starts[q]; e < starts[q + 1]; ++e) {
                    squares[q] += static_cast<double>(values[e]) * values[e];
                }
            }
        }
        for (size_t t = 0; t < count; t += sparse_tiles) {
            const double* base = pair == Pair::product ? nullptr : rest + t * lanes<T>;
            with_count<sparse_tiles>(count - t, [=, &squares]<size_t G>() INLINE_LAMBDA {
                for (size_t q = 0; q < queries; ++q) {
                    sparse_block<pair, G>(tiles + t * stride, stride, values + starts[q], index + starts[q],
                                          static_cast<size_t>(starts[q + 1] - starts[q]), base, squares[q],
                                          out + q * out_stride + t * lanes<T>);
                }
            });
        }
    });
}

// ---- element by element ----

// exp(factor x) = 2^k with k = (high + low) x = n + f, n an integer and |f| <= 1/2.
template <class T>
struct Exponent {
    T high, low;
    T least, most;  // outside, n is cut so that 2^n becomes 0 or infinity

    explicit Exponent(T factor) {
        constexpr double log2_e = 1.4426950408889634, log2_e_rest = 2.0355273740931032e-17;
        high = static_cast<T>(factor * log2_e);
        low = static_cast<T>(__builtin_fma(factor, log2_e, -high) + factor * log2_e_rest);
        const T zero = (1 - Number<T>::bias) / high, infinity = (Number<T>::bias + 2) / high;
        least = zero < infinity ? zero : infinity;  // also for a factor of -0
        most = zero < infinity ? infinity : zero;
    }
};

// Several vectors at once hide the latency of the series.
template <size_t vectors, class T>
INLINE void exp_block(T* v, Exponent<T> exponent) {
    using N = Number<T>;
    // Adding it rounds to an integer and leaves n - 1 + bias in the low bits.
    constexpr T rounder = T(3) * (typename N::Bits(1) << (N::fraction_bits - 1)) + (N::bias - 1);
    constexpr Wide<T> zero = {};  // x - zero is x in every lane
    const Wide<T> high = exponent.high - zero, low = exponent.low - zero;
    const Wide<T> least = exponent.least - zero, most = exponent.most - zero;
    Wide<T> f[vectors], y[vectors], half_power[vectors];
    UNROLL for (size_t i = 0; i < vectors; ++i) {
        auto x = load<Wide<T>>(v + i * width<T>);
        x = least > x ? least : x;  // this way round NaN stays
        x = most < x ? most : x;
        const Wide<T> shifted = multiply_add(high, x, rounder - zero);
        f[i] = multiply_add(low, x, multiply_add(high, x, rounder - shifted));
        half_power[i] = (Wide<T>)((WideBits<T>)shifted << N::fraction_bits);
        y[i] = N::series[0] - zero;
    }
    UNROLL for (size_t power = 1; power < sizeof N::series / sizeof(T); ++power) {
        UNROLL for (size_t i = 0; i < vectors; ++i) y[i] = y[i] * f[i] + N::series[power];
    }
    UNROLL for (size_t i = 0; i < vectors; ++i) store(v + i * width<T>, (y[i] * f[i] + 2) * half_power[i]);
}

template <class T>
void exp(T* v, size_t n, T factor) {
    constexpr size_t vectors = 4;
    const Exponent<T> exponent(factor);
    size_t i = 0;
    for (; i + vectors * width<T> <= n; i += vectors * width<T>) exp_block<vectors>(v + i, exponent);
    for (; i + width<T> <= n; i += width<T>) exp_block<1>(v + i, exponent);
    if (i == n) return;
    T last[width<T>] = {};
    for (size_t k = i; k < n; ++k) last[k - i] = v[k];
    exp_block<1>(last, exponent);
    for (size_t k = i; k < n; ++k) v[k] = last[k - i];
}

// Element i joins partial sum i % 32 whatever the vector width: the order depends on n alone.
template <class T>
double dot(const double* a, const T* b, size_t n) {
    constexpr size_t chains = 32, step = meeting_width<T>;
    using Sum = Vector<double, step>;
    Sum sum[chains / step] = {};
    size_t i = 0;
    const auto add = [&](size_t k)
                         INLINE_LAMBDA { sum[k / step] += load<Sum>(a + i + k) * load_doubles<step>(b + i + k); };
    for (; i + chains <= n; i += chains) {
        UNROLL for (size_t k = 0; k < chains; k += step) add(k);
    }
    UNROLL for (size_t k = 0; k < chains; k += step) {
        if (i + k + step <= n) add(k);
    }
    double partial[chains];
    __builtin_memcpy(partial, sum, sizeof sum);
    for (size_t k = (n - i) / step * step; i + k < n; ++k) partial[k] += a[i + k] * b[i + k];
    UNROLL for (size_t half = chains / 2; half > 0; half /= 2) {
        UNROLL for (size_t k = 0; k < half; ++k) partial[k] += partial[k + half];
    }
    return partial[0];
}

template <class T>
void axpy(double* __restrict y, double a, const T* __restrict x, size_t n) {
    for (size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

template <class T>
constexpr Simd<T> table = {dense<T>, dense_many<T>, sparse_many<T>, exp<T>, dot<T>, axpy<T>};

}  // namespace

extern const Simd<float> floats;
extern const Simd<double> doubles;
const Simd<float> floats = table<float>;
const Simd<double> doubles = table<double>;

}  // namespace onkel::ONKEL_NAMESPACE
