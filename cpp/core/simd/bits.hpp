// Flags: counting the bits that are set in a row and a query (products) or in one of them alone (distances), looking up
// the kernel values of the counts, packing examples.
#pragma once

#include "core/simd/blocks.hpp"
#include "core/simd/vector.hpp"

namespace onkel::ONKEL_NAMESPACE {
namespace {

// How many bits are set in each word.
template <class T>
INLINE WideWord<T> count_bits(WideWord<T> v) {
#if defined(__AVX512VPOPCNTDQ__) && ONKEL_VECTOR_BYTES == 64
    if constexpr (sizeof(T) == 4) return (WideWord<T>)_mm512_popcnt_epi32((__m512i)v);
    return (WideWord<T>)_mm512_popcnt_epi64((__m512i)v);
#else
    constexpr Word<T> all = ~Word<T>{0};
    v -= (v >> 1) & all / 3;  // pairs of bits, fours, eights; then the bytes added up
    v = (v & all / 5) + ((v >> 2) & all / 5);
    v = (v + (v >> 4)) & all / 17;
    UNROLL for (int shift = 8; shift < static_cast<int>(8 * sizeof(T)); shift *= 2) v += v >> shift;
    return v & 0xff;
#endif
}

// The bits to be counted: z and x for products, z xor x within mask for distances. x is within mask.
template <PairKind pair, class T>
INLINE WideWord<T> combined_bits(WideWord<T> z, WideWord<T> mask, WideWord<T> x) {
    return pair == PairKind::product ? z & x : (z & mask) ^ x;
}

// In registers: adds how many such bits there are.
template <PairKind pair, size_t G, size_t parts, size_t Q, class T>
INLINE void add_flags(const FlagBits<T>& flags, size_t tile, size_t query, WideWord<T> (&sum)[G][parts][Q]) {
    constexpr WideWord<T> zero = {};
    const size_t words = flags.words;
    const Word<T>* tiles = flags.tiles + tile * words * lanes<T>;
    const Word<T>* ones = flags.ones + query * words;
    const auto add = [&](size_t w) INLINE_LAMBDA {
        const WideWord<T> mask = flags.mask[w] - zero;
        UNROLL for (size_t g = 0; g < G; ++g) {
            UNROLL for (size_t p = 0; p < parts; ++p) {
                const auto z = load_aligned<WideWord<T>>(tiles + (g * words + w) * lanes<T> + p * width<T>);
                UNROLL for (size_t q = 0; q < Q; ++q) {
                    sum[g][p][q] += count_bits<T>(combined_bits<pair, T>(z, mask, ones[q * words + w] - zero));
                }
            }
        }
    };
    if (words == 1) return add(0);  // no loop, and no sums to be kept in registers
    for (size_t w = 0; w < words; ++w) add(w);
}

// Gathers numbers of a table: lane l of numbers[at] is table[at[l]].
template <class T>
struct Numbers {
#if ONKEL_VECTOR_BYTES == 64
    static constexpr size_t vectors = table_size / width<T>;
    Wide<T> table[vectors];

    explicit INLINE Numbers(const T* from) {
        UNROLL for (size_t i = 0; i < vectors; ++i) table[i] = load<Wide<T>>(from + i * width<T>);
    }
    INLINE Wide<T> operator[](WideWord<T> at) const {
        if constexpr (vectors == 2) {
            return (Wide<T>)_mm512_permutex2var_ps((__m512)table[0], (__m512i)at, (__m512)table[1]);
        } else {
            const auto half = [=, this](size_t i) INLINE_LAMBDA {
                return _mm512_permutex2var_pd((__m512d)table[i], (__m512i)at, (__m512d)table[i + 1]);
            };
            const auto upper = _mm512_test_epi64_mask((__m512i)at, _mm512_set1_epi64(table_size / 2));
            return (Wide<T>)_mm512_mask_blend_pd(upper, half(0), half(2));
        }
    }
#else
    const T* table;

    explicit INLINE Numbers(const T* from) : table(from) {}
    INLINE Wide<T> operator[](WideWord<T> at) const {
        Wide<T> v;
        UNROLL for (size_t l = 0; l < width<T>; ++l) v[l] = table[at[l]];
        return v;
    }
#endif
};

template <PairKind pair, size_t G, size_t Q, class T>
void look_up_block(const FlagBits<T>& flags, const Numbers<T>& numbers, size_t tile, size_t query, T* out,
                   size_t out_stride) {
    constexpr size_t parts = lanes<T> / width<T>;
    WideWord<T> sum[G][parts][Q] = {};
    add_flags<pair>(flags, tile, query, sum);
    UNROLL for (size_t g = 0; g < G; ++g) {
        UNROLL for (size_t p = 0; p < parts; ++p) {
            UNROLL for (size_t q = 0; q < Q; ++q) {
                store(out + q * out_stride + g * lanes<T> + p * width<T>, numbers[sum[g][p][q]]);
            }
        }
    }
}

template <class T>
void look_up(PairKind which, const FlagBits<T>& flags, const T* table, size_t count, size_t queries, T* out,
             size_t out_stride) {
    constexpr size_t most_tiles = ONKEL_VECTOR_BYTES == 64 ? 4 : 1;  // the table is in registers too
    const Numbers<T> numbers(table);
    with_pair(which == PairKind::absolute ? PairKind::square : which, [&]<PairKind pair>() {
        in_blocks<most_tiles>(count, [&]<size_t G>(size_t t) INLINE_LAMBDA {
            in_blocks<many_queries>(queries, [&]<size_t Q>(size_t q) INLINE_LAMBDA {
                look_up_block<pair, G, Q>(flags, numbers, t, q, out + q * out_stride + t * lanes<T>, out_stride);
            });
        });
    });
}

// Which of `width` values are 1, of those with a bit in `wanted`; notes in `non_binary` which are neither 0 nor 1.
template <class T>
INLINE Word<T> pack_vector(const T* x, Word<T> wanted, Word<T>& non_binary) {
#if ONKEL_VECTOR_BYTES == 64
    if constexpr (sizeof(T) == 4) {
        const auto here = static_cast<__mmask16>(wanted);
        const __m512 v = _mm512_maskz_loadu_ps(here, x);
        const __mmask16 one = _mm512_mask_cmp_ps_mask(here, v, _mm512_set1_ps(1), _CMP_EQ_OQ);
        non_binary |= _mm512_mask_cmp_ps_mask(here & ~one, v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
        return one;
    } else {
        const auto here = static_cast<__mmask8>(wanted);
        const __m512d v = _mm512_maskz_loadu_pd(here, x);
        const __mmask8 one = _mm512_mask_cmp_pd_mask(here, v, _mm512_set1_pd(1), _CMP_EQ_OQ);
        non_binary |= _mm512_mask_cmp_pd_mask(here & ~one, v, _mm512_setzero_pd(), _CMP_NEQ_UQ);
        return one;
    }
#else
    Word<T> one = 0;
    for (size_t l = 0; l < width<T> && wanted >> l; ++l) {
        const Word<T> here = wanted >> l & 1, is_one = here & (x[l] == 1);
        one |= is_one << l;
        non_binary |= (here & (x[l] != 0) & ~is_one) << l;
    }
    return one;
#endif
}

template <class T>
bool pack(const T* x, size_t rows, size_t columns, const Word<T>* mask, Word<T>* ones, Word<T>* non_binary) {
    constexpr size_t bits = 8 * sizeof(T);
    const size_t words = (columns + bits - 1) / bits;
    Word<T> all = 0;
    for (size_t r = 0; r < rows; ++r, x += columns) {
        for (size_t w = 0; w < words; ++w) {
            Word<T> here = 0, one = 0;
            UNROLL for (size_t j = 0; j < bits; j += width<T>) {
                const Word<T> wanted = mask[w] >> j & ((Word<T>{2} << (width<T> - 1)) - 1);
                if (wanted == 0) continue;
                Word<T> found = 0;
                one |= pack_vector(x + w * bits + j, wanted, found) << j;
                here |= found << j;
            }
            *ones++ = one;
            if (non_binary) *non_binary++ = here;
            all |= here;
        }
    }
    return all == 0;
}

}  // namespace
}  // namespace onkel::ONKEL_NAMESPACE
