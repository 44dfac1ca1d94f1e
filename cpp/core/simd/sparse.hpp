// Sparse queries: `sparse_many`.
#pragma once

#include "core/simd/blocks.hpp"
#include "core/simd/vector.hpp"

#ifdef __x86_64__
#define NO_FMA(product) asm("" : "+x"(product))  // hides where it comes from
#else
#define NO_FMA(product) asm("" : "+m"(product))
#endif

namespace onkel::ONKEL_NAMESPACE {
namespace {

// Sums in T: in double, which would save what cancels against the norms, a row of floats takes 1.7 times as long.
template <PairKind pair, size_t G, class T>
void sparse_block(const T* tiles, size_t stride, const T* values, const std::int32_t* index, size_t nonzeros,
                  const T* norms, T squares, T* out) {
    constexpr size_t parts = lanes<T> / width<T>;
    Wide<T> sum[G][parts] = {};
    for (size_t e = 0; e < nonzeros; ++e) {
        const T x = values[e];
        const T* feature = tiles + static_cast<size_t>(index[e]) * lanes<T>;
        UNROLL for (size_t g = 0; g < G; ++g, feature += stride) {
            UNROLL for (size_t p = 0; p < parts; ++p) {
                const auto z = load_aligned<Wide<T>>(feature + p * width<T>);
                sum[g][p] += pair == PairKind::absolute ? absolute<T>(x - z) - absolute<T>(z) : x * z;
            }
        }
    }
    UNROLL for (size_t g = 0; g < G; ++g) {
        UNROLL for (size_t p = 0; p < parts; ++p) {
            const size_t at = g * lanes<T> + p * width<T>;
            Wide<T> total = sum[g][p];
            if constexpr (pair != PairKind::product) {
                const Wide<T> zeros = load<Wide<T>>(norms + at) + squares;
                total = zeros + (pair == PairKind::square ? -2 * total : total);
                total = total < 0 ? Wide<T>{} : total;
            }
            store(out + at, total);
        }
    }
}

// Queries inside: the tiles of a block stay in the cache for all of them.
template <class T>
void sparse_many(PairKind which, const T* tiles, size_t stride, size_t count, const T* values,
                 const std::int32_t* index, const std::int64_t* starts, size_t queries, const double* norms, T* out,
                 size_t out_stride) {
    constexpr size_t most_queries = 16;
    if (queries > most_queries) {
        sparse_many(which, tiles, stride, count, values, index, starts + most_queries, queries - most_queries, norms,
                    out + most_queries * out_stride, out_stride);
        queries = most_queries;
    }
    with_pair(which, [=]<PairKind pair>() {
        double squares[most_queries] = {};
        T base[single_tiles * lanes<T>];  // norms of a block, converted once for all queries
        if (pair == PairKind::square) {
            for (size_t q = 0; q < queries; ++q) {
                for (std::int64_t e = starts[q]; e < starts[q + 1]; ++e) {
                    double square = static_cast<double>(values[e]) * values[e];
                    NO_FMA(square);  // it must be what the table has in `norms`
                    squares[q] += square;
                }
            }
        }
        in_blocks<single_tiles>(count, [=, &base, &squares]<size_t G>(size_t t) INLINE_LAMBDA {
            if (pair != PairKind::product) {
                for (size_t i = 0; i < G * lanes<T>; ++i) base[i] = static_cast<T>(norms[t * lanes<T> + i]);
            }
            for (size_t q = 0; q < queries; ++q) {
                sparse_block<pair, G>(tiles + t * stride, stride, values + starts[q], index + starts[q],
                                      static_cast<size_t>(starts[q + 1] - starts[q]), base, static_cast<T>(squares[q]),
                                      out + q * out_stride + t * lanes<T>);
            }
        });
    });
}

}  // namespace
}  // namespace onkel::ONKEL_NAMESPACE
