// The hot loops, compiled once per instruction set with its own ONKEL_NAMESPACE and ONKEL_VECTOR_BYTES.
//
// Everything but the two tables at the end is in an anonymous namespace and no std function is used: an
// inline function compiled here for AVX-512 must not become the copy the linker keeps for the whole program.
#include <utility>

#include "simd.hpp"

#ifdef __AVX__
#include <immintrin.h>
#endif

#define INLINE inline __attribute__((always_inline))
#define INLINE_LAMBDA __attribute__((always_inline))
#define NOT_INLINE __attribute__((noinline))
#ifdef __x86_64__
#define NO_FMA(product) asm("" : "+x"(product))  // hides where it comes from
#else
#define NO_FMA(product) asm("" : "+m"(product))
#endif
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
    static constexpr Bits magnitude = 0x7fffffff, exponent = 0x7f800000;
    static constexpr int fraction_bits = 23, bias = 127;
};

template <>
struct Number<double> {
    using Bits = std::int64_t;
    static constexpr Bits magnitude = 0x7fffffffffffffff, exponent = 0x7ff0000000000000;
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

// ---- blocks of tiles ----

// Eight chains of additions hide the latency of one; a block of queries must also fit the registers.
constexpr size_t single_tiles = ONKEL_VECTOR_BYTES / 8;
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

// Calls for 0 .. n - 1 in blocks of nearly equal size: a small last one would wait for its few chains of additions.
template <size_t most, class Call>
INLINE void in_blocks(size_t n, Call call) {
    size_t first = 0;
    for (size_t left = (n + most - 1) / most; left > 0; --left) {
        const size_t rest = n - first;
        with_count<most>(left == 1 ? rest : (rest + left - 1) / left, [&]<size_t size>() INLINE_LAMBDA {
            call.template operator()<size>(first);
            first += size;
        });
    }
}

// v - *x and v * *x + sum. An operand in memory is spread over the vector for nothing on Zen 4; the compilers would
// spread it by an instruction of its own, to use it again, and that one takes the place of a multiplication.
template <class T>
INLINE Wide<T> minus_spread(Wide<T> v, const T* x) {
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
INLINE Wide<T> add_times_spread(Wide<T> sum, Wide<T> v, const T* x) {
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

template <Pair pair, class T>
INLINE Wide<T> add_difference(Wide<T> sum, Wide<T> difference) {
    return sum + (pair == Pair::square ? difference * difference : absolute<T>(difference));
}

template <Pair pair, class T>
INLINE Wide<T> add_pair(Wide<T> sum, const T* x, Wide<T> z) {
    if constexpr (pair == Pair::product) return add_times_spread<T>(sum, z, x);
    return add_difference<pair, T>(sum, minus_spread<T>(z, x));
}

// The same for a number that is spread already, rounded as above whatever the compiler makes of it.
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

template <Pair pair, class T>
INLINE Wide<T> add_pair(Wide<T> sum, Wide<T> x, Wide<T> z) {
    if constexpr (pair == Pair::product) return add_times<T>(sum, z, x);
    return add_difference<pair, T>(sum, z - x);
}

template <class T>
using WideWord = Vector<Word<T>, width<T>>;

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

// The bits of z that count where x has ones: those set in both (product) or in one alone. x is within mask.
template <Pair pair, class T>
INLINE WideWord<T> meeting_bits(WideWord<T> z, WideWord<T> mask, WideWord<T> x) {
    return pair == Pair::product ? z & x : (z & mask) ^ x;
}

// In registers: adds how many such bits there are.
template <Pair pair, size_t G, size_t parts, size_t Q, class T>
INLINE void add_flags(const Counted<T>& flags, size_t tile, size_t query, WideWord<T> (&sum)[G][parts][Q]) {
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
                    sum[g][p][q] += count_bits<T>(meeting_bits<pair, T>(z, mask, ones[q * words + w] - zero));
                }
            }
        }
    };
    if (words == 1) return add(0);  // no loop, and no sums to be kept in registers
    for (size_t w = 0; w < words; ++w) add(w);
}

// One chain of additions over the features for each row and query, whatever the size of the block; counted flags begin
// it. Not inlined: where all sizes lie in one function, their many registers are saved on the way to each of them.
template <Pair pair, size_t G, size_t Q, class T>
NOT_INLINE void dense_block(const T* tiles, size_t stride, const T* x, size_t x_stride, size_t columns,
                            const Counted<T>* flags, size_t tile, size_t query, T* out, size_t out_stride) {
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
        const Wide<T> x1 = x[j] - Wide<T>{};
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
template <Pair pair, size_t most_tiles, size_t most_queries, class T>
INLINE void dense_blocks(const T* tiles, size_t stride, size_t count, const T* x, size_t x_stride, size_t queries,
                         size_t columns, const Counted<T>* flags, T* out, size_t out_stride) {
    in_blocks<most_tiles>(count, [=]<size_t G>(size_t t) INLINE_LAMBDA {
        in_blocks<most_queries>(queries, [=]<size_t Q>(size_t q) INLINE_LAMBDA {
            dense_block<pair, G, Q>(tiles + t * stride, stride, x + q * x_stride, x_stride, columns, flags, t, q,
                                    out + q * out_stride + t * lanes<T>, out_stride);
        });
    });
}

template <class T>
void dense(Pair which, const T* tiles, size_t stride, size_t count, const T* x, size_t columns, T* out) {
    constexpr const Counted<T>* no_flags = nullptr;
    with_pair(which, [=]<Pair pair>() {
        dense_blocks<pair, single_tiles, 1>(tiles, stride, count, x, 0, 1, columns, no_flags, out, 0);
    });
}

template <class T>
void dense_many(Pair which, const T* tiles, size_t stride, size_t count, const T* x, size_t x_stride, size_t queries,
                size_t columns, const Counted<T>* flags, T* out, size_t out_stride) {
    with_pair(which, [=]<Pair pair>() {
        dense_blocks<pair, many_tiles, many_queries>(tiles, stride, count, x, x_stride, queries, columns, flags, out,
                                                     out_stride);
    });
}

// The numbers of a table at these places.
template <class T>
struct Numbers {
#if ONKEL_VECTOR_BYTES == 64
    static constexpr size_t vectors = countable / width<T>;
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
            const auto upper = _mm512_test_epi64_mask((__m512i)at, _mm512_set1_epi64(countable / 2));
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

template <Pair pair, size_t G, size_t Q, class T>
void counted_block(const Counted<T>& flags, const Numbers<T>& numbers, size_t tile, size_t query, T* out,
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
void counted_many(Pair which, const Counted<T>& flags, const T* table, size_t count, size_t queries, T* out,
                  size_t out_stride) {
    constexpr size_t most_tiles = ONKEL_VECTOR_BYTES == 64 ? 4 : 1;  // the table is in registers too
    const Numbers<T> numbers(table);
    with_pair(which == Pair::absolute ? Pair::square : which, [&]<Pair pair>() {
        in_blocks<most_tiles>(count, [&]<size_t G>(size_t t) INLINE_LAMBDA {
            in_blocks<many_queries>(queries, [&]<size_t Q>(size_t q) INLINE_LAMBDA {
                counted_block<pair, G, Q>(flags, numbers, t, q, out + q * out_stride + t * lanes<T>, out_stride);
            });
        });
    });
}

// Which of `width` values are 1, of those with a bit in `wanted`; the others of these that are not 0 are noted.
template <class T>
INLINE Word<T> pack_vector(const T* x, Word<T> wanted, Word<T>& rest) {
#if ONKEL_VECTOR_BYTES == 64
    if constexpr (sizeof(T) == 4) {
        const auto here = static_cast<__mmask16>(wanted);
        const __m512 v = _mm512_maskz_loadu_ps(here, x);
        const __mmask16 one = _mm512_mask_cmp_ps_mask(here, v, _mm512_set1_ps(1), _CMP_EQ_OQ);
        rest |= _mm512_mask_cmp_ps_mask(here & ~one, v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
        return one;
    } else {
        const auto here = static_cast<__mmask8>(wanted);
        const __m512d v = _mm512_maskz_loadu_pd(here, x);
        const __mmask8 one = _mm512_mask_cmp_pd_mask(here, v, _mm512_set1_pd(1), _CMP_EQ_OQ);
        rest |= _mm512_mask_cmp_pd_mask(here & ~one, v, _mm512_setzero_pd(), _CMP_NEQ_UQ);
        return one;
    }
#else
    Word<T> one = 0;
    for (size_t l = 0; l < width<T> && wanted >> l; ++l) {
        const Word<T> here = wanted >> l & 1, is_one = here & (x[l] == 1);
        one |= is_one << l;
        rest |= (here & (x[l] != 0) & ~is_one) << l;
    }
    return one;
#endif
}

template <class T>
bool pack(const T* x, size_t rows, size_t columns, const Word<T>* mask, Word<T>* ones, Word<T>* rest) {
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
            if (rest) *rest++ = here;
            all |= here;
        }
    }
    return all == 0;
}

// Sums in T: in double, which would save what cancels against rest, a row of floats takes 1.7 times as long.
template <Pair pair, size_t G, class T>
void sparse_block(const T* tiles, size_t stride, const T* values, const std::int32_t* index, size_t nonzeros,
                  const T* rest, T squares, T* out) {
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
                const Wide<T> zeros = load<Wide<T>>(rest + at) + squares;
                total = zeros + (pair == Pair::square ? -2 * total : total);
                total = total < 0 ? Wide<T>{} : total;
            }
            store(out + at, total);
        }
    }
}

// Queries inside: the tiles of a block stay in the cache for all of them.
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
        T base[single_tiles * lanes<T>];  // rest of a block, converted once for all queries
        if (pair == Pair::square) {
            for (size_t q = 0; q < queries; ++q) {
                for (std::int64_t e = starts[q]; e < starts[q + 1]; ++e) {
                    double square = static_cast<double>(values[e]) * values[e];
                    NO_FMA(square);  // it must be what the table has in `rest`
                    squares[q] += square;
                }
            }
        }
        in_blocks<single_tiles>(count, [=, &base, &squares]<size_t G>(size_t t) INLINE_LAMBDA {
            if (pair != Pair::product) {
                for (size_t i = 0; i < G * lanes<T>; ++i) base[i] = static_cast<T>(rest[t * lanes<T> + i]);
            }
            for (size_t q = 0; q < queries; ++q) {
                sparse_block<pair, G>(tiles + t * stride, stride, values + starts[q], index + starts[q],
                                      static_cast<size_t>(starts[q + 1] - starts[q]), base, static_cast<T>(squares[q]),
                                      out + q * out_stride + t * lanes<T>);
            }
        });
    });
}

// The lanes l of a, but of b where l has the bit `half`; flipped: those of l ^ half.
template <size_t half, bool flipped, class T, size_t... l>
INLINE Wide<T> pick(Wide<T> a, Wide<T> b, std::index_sequence<l...>) {
    constexpr size_t flip = flipped ? half : 0;
#ifdef __clang__
    return __builtin_shufflevector(a, b, ((l ^ flip) + (l & half ? width<T> : 0))...);
#else
    return __builtin_shuffle(a, b, WideBits<T>{((l ^ flip) + (l & half ? width<T> : 0))...});
#endif
}

// Leaves the sum of all lanes of v[c] in lane c of v[0], for c < C <= width: every step halves the lanes to be added,
// and the vectors too while there are several.
template <size_t C, size_t half, class T>
INLINE void add_lanes(Wide<T>* v) {
    constexpr std::make_index_sequence<width<T>> all;
    UNROLL for (size_t c = 0; c < (half < C ? half : C); ++c) {
        const Wide<T> other = half < C ? v[c + half % C] : v[c];
        v[c] = pick<half, false, T>(v[c], other, all) + pick<half, true, T>(v[c], other, all);
    }
    if constexpr (half > 1) add_lanes<C, half / 2, T>(v);
}

// One chain of additions over the tiles for each lane and column, whatever the size of the block.
template <size_t C, class T>
void transposed_block(const T* tiles, size_t stride, size_t count, const T* v, T* out) {
    constexpr size_t step = C < width<T> ? C : width<T>;
    Wide<T> sum[C] = {};
    for (size_t t = 0; t < count; ++t, tiles += stride, v += lanes<T>) {
        UNROLL for (size_t p = 0; p < lanes<T>; p += width<T>) {
            const auto rows = load<Wide<T>>(v + p);
            UNROLL for (size_t c = 0; c < C; ++c) sum[c] += rows * load_aligned<Wide<T>>(tiles + c * lanes<T> + p);
        }
    }
    UNROLL for (size_t c = 0; c < C; c += step) {
        add_lanes<step, width<T> / 2, T>(sum + c);
        __builtin_memcpy(out + c, sum + c, step * sizeof(T));
    }
}

// A small last block would wait for its few chains of additions: a larger one does the columns before it once more.
template <size_t C, class T>
INLINE void transposed_blocks(const T* tiles, size_t stride, size_t count, const T* v, size_t first, size_t columns,
                              T* out) {
    const auto block = [=](size_t j)
                           INLINE_LAMBDA { transposed_block<C>(tiles + j * lanes<T>, stride, count, v, out + j); };
    for (; first + C <= columns; first += C) block(first);
    if (first == columns) return;
    if (columns - first > C / 2 && columns >= C) return block(columns - C);
    if constexpr (C > 1) transposed_blocks<C / 2>(tiles, stride, count, v, first, columns, out);
}

template <class T>
void transposed(const T* tiles, size_t stride, size_t count, const T* v, size_t columns, T* out) {
    transposed_blocks<ONKEL_VECTOR_BYTES == 64 ? 16 : 8>(tiles, stride, count, v, 0, columns, out);
}

// ---- element by element ----

// 2^(n + j / 2^root_bits), n and j integers, and minimax series, highest power first: 2^f = 1 + f (...) for the
// rest f. Where one instruction looks up 2^(j / 16) the series need not reach far.
template <class T>
struct Powers;

#if ONKEL_VECTOR_BYTES == 64

constexpr int root_bits = 4;

// The bits of 2^(j / 16) less those of 1 and of j where it stands in the sum.
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

// A turn in quarters: q = k pi / 2 + r with |r| least.
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

// Overwrites what the series cannot reach in one vector.
template <class T>
__attribute__((noinline)) void sincos_far(const T* q, T scale, T* cos, T* sin) {
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

// Halves `count` vectors until `left` remain.
template <size_t left, class V>
INLINE void fold(V* sum, size_t count) {
    UNROLL for (size_t half = count / 2; half >= left; half /= 2) {
        UNROLL for (size_t k = 0; k < half; ++k) sum[k] += sum[k + half];
    }
}

// Vectors of two or four numbers; the order is the same.
template <size_t count, class V>
INLINE double add_up(V* sum) {
    fold<1>(sum, count);
    const V all = sum[0];
    constexpr size_t n = sizeof all / sizeof all[0];
    return n == 4 ? (all[0] + all[2 % n]) + (all[1] + all[3 % n]) : all[0] + all[1];
}

// Element i joins partial sum i % 32 whatever the vector width, and the last n % 4 their total: the order
// depends on n alone.
template <class T>
double dot(const double* a, const T* b, size_t n) {
    constexpr size_t chains = 32, step = width<double> < 4 ? width<double> : 4;
    using Sum = Vector<double, step>;
    Wide<double> wide[chains / width<double>];
    UNROLL for (auto& v : wide) v = Wide<double>{};
    size_t i = 0;
    for (; i + chains <= n; i += chains) {
        UNROLL for (size_t k = 0; k < chains; k += width<double>) {
            wide[k / width<double>] += load<Wide<double>>(a + i + k) * load_doubles<width<double>>(b + i + k);
        }
    }
    Sum sum[chains / step];
    __builtin_memcpy(sum, wide, sizeof sum);
    UNROLL for (size_t k = 0; k < chains; k += step) {
        if (i + k < n / 4 * 4) sum[k / step] += load<Sum>(a + i + k) * load_doubles<step>(b + i + k);
    }
    double total = add_up<chains / step>(sum);
    UNROLL for (size_t k = n / 4 * 4, e = 0; e < 3; ++e) {
        if (k + e < n) total += a[k + e] * b[k + e];
    }
    return total;
}

template <class T>
void axpy(double* __restrict y, double a, const T* __restrict x, size_t n) {
    for (size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

// Element i joins partial sum i % 64, and one of 16 others behind the last whole 64: again an order that depends on n
// alone.
double inner(const float* a, const float* b, size_t n) {
    constexpr size_t chains = 64, step = width<float>, tails = 16, few = 4, pair = width<double> < 4 ? 2 : 4;
    using Sum = Wide<float>;
    using Few = Vector<float, few>;
    Sum sum[chains / step];
    Few tail[tails / few];
    UNROLL for (size_t k = 0; k < chains / step; ++k) sum[k] = Sum{};
    UNROLL for (size_t k = 0; k < tails / few; ++k) tail[k] = Few{};
    size_t i = 0;
    for (; i + chains <= n; i += chains) {
        UNROLL for (size_t k = 0; k < chains; k += step) sum[k / step] += load<Sum>(a + i + k) * load<Sum>(b + i + k);
    }
    const auto add_tail = [&](size_t k) INLINE_LAMBDA { tail[k / few] += load<Few>(a + i + k) * load<Few>(b + i + k); };
    for (; i + tails <= n; i += tails) {
        UNROLL for (size_t k = 0; k < tails; k += few) add_tail(k);
    }
    UNROLL for (size_t k = 0; k < tails - few; k += few) {
        if (i + k + few <= n) add_tail(k);
    }
    fold<tails / step>(sum, chains / step);
    float part[tails], tail_part[tails];
    UNROLL for (size_t k = 0; k < tails; k += step) store(part + k, sum[k / step]);
    UNROLL for (size_t k = 0; k < tails; k += few) store(tail_part + k, tail[k / few]);
    Vector<double, pair> wide[tails / pair];
    UNROLL for (size_t k = 0; k < tails; k += pair) {
        wide[k / pair] = load_doubles<pair>(part + k) + load_doubles<pair>(tail_part + k);
    }
    double total = add_up<tails / pair>(wide);
    UNROLL for (size_t k = n / few * few, e = 0; e < few - 1; ++e) {
        if (k + e < n) total += static_cast<double>(a[k + e]) * b[k + e];
    }
    return total;
}

double inner(const double* a, const double* b, size_t n) { return dot(a, b, n); }

template <class T>
void add_scaled(T* __restrict y, T a, const T* __restrict x, size_t n) {
    for (size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

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

// A few columns at a time: y is read and written once for all of them, and they come from memory together.
constexpr size_t together = 4;

void forward(const double* __restrict L, size_t stride, size_t n, double* __restrict y) {
    size_t j = 0;
    for (; j + together <= n; j += together, L += together * stride) {
        double by[together];
        UNROLL for (size_t c = 0; c < together; ++c) {
            by[c] = y[j + c];
            UNROLL for (size_t b = 0; b < c; ++b) by[c] -= L[b * stride + j + c] * by[b];
            y[j + c] = by[c] /= L[c * stride + j + c];
        }
        size_t i = j + together;
        for (; i + width<double> <= n; i += width<double>) {
            auto v = load<Wide<double>>(y + i);
            UNROLL for (size_t c = 0; c < together; ++c) v -= by[c] * load<Wide<double>>(L + c * stride + i);
            store(y + i, v);
        }
        for (; i < n; ++i) {
            UNROLL for (size_t c = 0; c < together; ++c) y[i] -= by[c] * L[c * stride + i];
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
    while (j % together != 0) {
        --j, L -= stride;
        for (size_t i = j + 1; i < n; ++i) y[j] -= L[i] * y[i];
        y[j] /= L[j];
    }
    while (j > 0) {
        j -= together, L -= together * stride;
        Wide<double> sum[together];
        UNROLL for (size_t c = 0; c < together; ++c) sum[c] = Wide<double>{};
        size_t i = j + together;
        for (; i + width<double> <= n; i += width<double>) {
            const auto v = load<Wide<double>>(y + i);
            UNROLL for (size_t c = 0; c < together; ++c) sum[c] += v * load<Wide<double>>(L + c * stride + i);
        }
        UNROLL for (size_t c = together; c-- > 0;) {
            double total = 0;
            UNROLL for (size_t k = 0; k < width<double>; ++k) total += sum[c][k];
            for (size_t k = i; k < n; ++k) total += L[c * stride + k] * y[k];
            UNROLL for (size_t b = c + 1; b < together; ++b) total += L[c * stride + j + b] * y[j + b];
            y[j + c] = (y[j + c] - total) / L[c * stride + j + c];
        }
    }
}

void rotate(double c, double s, const double* from, double* rest, double* to, size_t n) {
    const auto turn = [=]<class V>(size_t i, V) INLINE_LAMBDA {
        const auto a = load<V>(from + i), b = load<V>(rest + i);
        store(to + i, c * a + s * b);
        store(rest + i, c * b - s * a);
    };
    size_t i = 0;
    for (; i + width<double> <= n; i += width<double>) turn(i, Wide<double>{});
    for (; i < n; ++i) turn(i, double{});
}

double least(const double* v, size_t n) {
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
        x = x < last ? x : last;  // of equal signs none is below 0; what the others give does not matter
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

template <class T>
constexpr Simd<T> table = {dense<T>,    dense_many<T>, counted_many<T>, pack<T>,   sparse_many<T>, decay<T>,
                           dot<T>,      axpy<T>,       transposed<T>,   sincos<T>, inner,          add_scaled<T>,
                           hadamard<T>, forward,       backward,        rotate,    least,          interpolated<T>};

}  // namespace

extern const Simd<float> floats;
extern const Simd<double> doubles;
const Simd<float> floats = table<float>;
const Simd<double> doubles = table<double>;

}  // namespace onkel::ONKEL_NAMESPACE
