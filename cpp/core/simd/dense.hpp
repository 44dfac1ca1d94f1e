// Dense queries: `dense` and `dense_many`.
#pragma once

#include "core/simd/bits.hpp"
#include "core/simd/blocks.hpp"
#include "core/simd/vector.hpp"

namespace onkel::ONKEL_NAMESPACE {
namespace {

// v - *x and v * *x + sum. To broadcast an operand from memory costs nothing extra on Zen 4; the compilers would
// broadcast it by a separate instruction, to use it again, which takes the place of a multiplication.
template <class T>
INLINE Wide<T> minus_broadcast(Wide<T> v, const T* x) {
#if ONKEL_VECTOR_BYTES == 64
    if constexpr (sizeof(T) == 4) {
        asm("vsubps %2%{1to16%}, %1, %0" : "=v"(v) : "v"(v), "m"(*x));
    } else {
        asm("vsubpd %2%{1to8%}, %1, %0" : "=v"(v) : "v"(v), "m"(*x));
    }
    return v;
#else
    return v - *x;
#endif
}

template <class T>
INLINE Wide<T> add_times_broadcast(Wide<T> sum, Wide<T> v, const T* x) {
#if ONKEL_VECTOR_BYTES == 64
    if constexpr (sizeof(T) == 4) {
        asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(v), "m"(*x));
    } else {
        asm("vfmadd231pd %2%{1to8%}, %1, %0" : "+v"(sum) : "v"(v), "m"(*x));
    }
    return sum;
#else
    return sum + *x * v;
#endif
}

template <PairKind pair, class T>
INLINE Wide<T> add_difference(Wide<T> sum, Wide<T> difference) {
    return sum + (pair == PairKind::square ? difference * difference : absolute<T>(difference));
}

template <PairKind pair, class T>
INLINE Wide<T> add_pair(Wide<T> sum, const T* x, Wide<T> z) {
    if constexpr (pair == PairKind::product) return add_times_broadcast<T>(sum, z, x);
    return add_difference<pair, T>(sum, minus_broadcast<T>(z, x));
}

// The same for a number that is broadcast already, rounded as above whatever the compiler makes of it.
template <class T>
INLINE Wide<T> add_times(Wide<T> sum, Wide<T> v, Wide<T> x) {
#if ONKEL_VECTOR_BYTES == 64
    if constexpr (sizeof(T) == 4)
        return (Wide<T>)_mm512_fmadd_ps((__m512)v, (__m512)x, (__m512)sum);
    else
        return (Wide<T>)_mm512_fmadd_pd((__m512d)v, (__m512d)x, (__m512d)sum);
#else
    return sum + x * v;
#endif
}

template <PairKind pair, class T>
INLINE Wide<T> add_pair(Wide<T> sum, Wide<T> x, Wide<T> z) {
    if constexpr (pair == PairKind::product) return add_times<T>(sum, z, x);
    return add_difference<pair, T>(sum, z - x);
}

// One chain of additions over the features for each row and query, whatever the size of the block; counted flags begin
// it. Not inlined: where all sizes lie in one function, their many registers are saved on the way to each of them.
template <PairKind pair, size_t G, size_t Q, class T>
NOT_INLINE void dense_block(const T* tiles, size_t stride, const T* x, size_t x_stride, size_t columns,
                            const FlagBits<T>* flags, size_t tile, size_t query, T* out, size_t out_stride) {
    constexpr size_t parts = lanes<T> / width<T>;
    Wide<T> sum[G][parts][Q] = {};
    if (flags) {
        WideWord<T> count[G][parts][Q] = {};
        add_flags<pair>(*flags, tile, query, count);
        UNROLL for (size_t g = 0; g < G; ++g) {
            UNROLL for (size_t p = 0; p < parts; ++p) {
                UNROLL for (size_t q = 0; q < Q; ++q) {
                    sum[g][p][q] = __builtin_convertvector((WideBits<T>)count[g][p][q], Wide<T>);
                }
            }
        }
    }
    const std::int32_t* others = flags ? flags->others : nullptr;
    for (size_t e = 0; e < columns; ++e) {
        const size_t j = others ? static_cast<size_t>(others[e]) : e;
        const Wide<T> x1 = x[j] - Wide<T>{};  // in every lane, for a single query
        UNROLL for (size_t g = 0; g < G; ++g) {
            UNROLL for (size_t p = 0; p < parts; ++p) {
                auto z = load_aligned<Wide<T>>(tiles + g * stride + j * lanes<T> + p * width<T>);
                if constexpr (Q == 1) {
                    sum[g][p][0] = add_pair<pair, T>(sum[g][p][0], x1, z);
                    continue;
                }
#if ONKEL_VECTOR_BYTES == 64
                asm("" : "+v"(z));  // or gcc loads it again for every query
#endif
                UNROLL for (size_t q = 0; q < Q; ++q) {
                    sum[g][p][q] = add_pair<pair, T>(sum[g][p][q], x + q * x_stride + j, z);
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
template <PairKind pair, size_t most_tiles, size_t most_queries, class T>
INLINE void dense_blocks(const T* tiles, size_t stride, size_t count, const T* x, size_t x_stride, size_t queries,
                         size_t columns, const FlagBits<T>* flags, T* out, size_t out_stride) {
    in_blocks<most_tiles>(count, [=]<size_t G>(size_t t) INLINE_LAMBDA {
        in_blocks<most_queries>(queries, [=]<size_t Q>(size_t q) INLINE_LAMBDA {
            dense_block<pair, G, Q>(tiles + t * stride, stride, x + q * x_stride, x_stride, columns, flags, t, q,
                                    out + q * out_stride + t * lanes<T>, out_stride);
        });
    });
}

template <class T>
void dense(PairKind which, const T* tiles, size_t stride, size_t count, const T* x, size_t columns, T* out) {
    constexpr const FlagBits<T>* no_flags = nullptr;
    with_pair(which, [=]<PairKind pair>() {
        dense_blocks<pair, single_tiles, 1>(tiles, stride, count, x, 0, 1, columns, no_flags, out, 0);
    });
}

template <class T>
void dense_many(PairKind which, const T* tiles, size_t stride, size_t count, const T* x, size_t x_stride,
                size_t queries, size_t columns, const FlagBits<T>* flags, T* out, size_t out_stride) {
    with_pair(which, [=]<PairKind pair>() {
        dense_blocks<pair, many_tiles, many_queries>(tiles, stride, count, x, x_stride, queries, columns, flags, out,
                                                     out_stride);
    });
}

}  // namespace
}  // namespace onkel::ONKEL_NAMESPACE
