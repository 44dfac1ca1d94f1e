// The vector layer: the only code that depends on the instruction set, which is chosen once, at first use.
//
// Rows lie feature-major in tiles of lanes<T> rows: feature j of row i is
//     tiles[i / lanes<T> * stride + j * lanes<T> + i % lanes<T>]
// with 64-byte aligned tiles and a stride that is a multiple of lanes<T>. Lanes without a row hold zeros;
// their results are finite and mean nothing. Results for a row are bitwise reproducible: they depend on that
// row and the query alone, not on its place, its neighbours or the number of queries.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/row.hpp"

namespace onkel {

// What a kernel sums over the features: x z, (x - z)^2, |x - z| or log(1 + gamma (x - z)^2). There is no vector code
// for the last.
enum class PairKind { product, square, absolute, cauchy };

// Rows per tile: the numbers of type T in 64 bytes.
template <class T>
inline constexpr std::size_t lanes = 64 / sizeof(T);

// Flags of rows and of queries, compared by counting those bits of mask that are set in both (product) or in one alone.
template <class T>
struct FlagBits {
    const Word<T>* tiles;  // word w of row i: tiles[(i / lanes<T> * words + w) * lanes<T> + i % lanes<T>]
    const Word<T>* mask;
    const Word<T>* ones;  // word w of query q: ones[q * words + w], within mask
    std::size_t words;
    const std::int32_t* others;  // the columns that are no flags
};

// Size of a table of kernel values, one for each sum 0, 1, ... (see `look_up`).
inline constexpr std::size_t table_size = 32;  // two or four vectors of AVX-512

// Only tiles need alignment. `norms` has count * lanes<T> elements, and every `out` has as many per query.
template <class T>
struct Simd {
    // out[i] = sum_j pair(x[j], z_ij) over the rows i of `count` tiles
    void (*dense)(PairKind, const T* tiles, std::size_t stride, std::size_t count, const T* x, std::size_t columns,
                  T* out);

    // the same for several queries: out[q * out_stride + i] from x[q * x_stride + j]. With flags, each sum begins with
    // the count of bits, and j runs over `columns` elements of flags->others alone
    void (*dense_many)(PairKind, const T* tiles, std::size_t stride, std::size_t count, const T* x,
                       std::size_t x_stride, std::size_t queries, std::size_t columns, const FlagBits<T>* flags, T* out,
                       std::size_t out_stride);

    // the same where all columns are flags, but out[q * out_stride + i] = table[count of bits]; counts must be below
    // `table_size`
    void (*look_up)(PairKind, const FlagBits<T>& flags, const T* table, std::size_t count, std::size_t queries, T* out,
                    std::size_t out_stride);

    // ones: which values of each row are 1, where mask has a bit; non_binary, if given: which are neither 0 nor 1.
    // Returns false if there are any of the latter. The mask has no bits beyond the columns.
    bool (*pack)(const T* x, std::size_t rows, std::size_t columns, const Word<T>* mask, Word<T>* ones,
                 Word<T>* non_binary);

    // as `dense_many` for sparse queries, rows of a CSR matrix: out[q * out_stride + i] =
    //     norms[i] + sum_e (pair(values[e], z) - pair(0, z)), z being feature index[e] of row i,
    // summed in T; norms[i] = sum_j pair(0, z_ij) is not read (may be null) for products. Distances are >= 0.
    void (*sparse_many)(PairKind, const T* tiles, std::size_t stride, std::size_t count, const T* values,
                        const std::int32_t* index, const std::int64_t* starts, std::size_t queries, const double* norms,
                        T* out, std::size_t out_stride);

    // v = exp(-rate * v) in place for v >= 0, in `rows` rows of n numbers. The error is at most (1 + rate v) epsilon
    // times the result (without fma 1.5 times that) plus 2^-119 (double: 2^-1015). No result is subnormal: smaller ones
    // are 0. NaN stays NaN.
    void (*decay)(T* v, std::size_t n, std::size_t rows, std::size_t stride, T rate);

    // sum_i a[i] b[i], added up in an order that depends on n alone
    double (*dot)(const double* a, const T* b, std::size_t n);

    // y += a * x
    void (*axpy)(double* y, double a, const T* x, std::size_t n);

    // out[j] = sum_i v[i] z_ij over the rows i of `count` tiles; v is finite in lanes without a row
    void (*transposed)(const T* tiles, std::size_t stride, std::size_t count, const T* v, std::size_t columns, T* out);

    // cos[i] = scale * cos(q[i]) and sin[i] = scale * sin(q[i]) to 0.9 scale epsilon for every finite q[i], NaN for
    // others. Results depend on q[i] and scale alone. Arrays must not overlap; beyond |q[i]| = 1e5 (double: 1.3e7)
    // it is slow.
    void (*sincos)(const T* q, std::size_t n, T scale, T* cos, T* sin);

    // as dot and axpy, in T
    double (*inner)(const T* a, const T* b, std::size_t n);
    void (*add_scaled)(T* y, T a, const T* x, std::size_t n);

    // The Walsh-Hadamard transform in place, unnormalised; n is a power of 2.
    void (*hadamard)(T* v, std::size_t n);

    // y = L^-1 y and y = L'^-1 y for a lower triangular L of n columns: L[j * stride + i] is column j, row i
    void (*forward)(const double* L, std::size_t stride, std::size_t n, double* y);
    void (*backward)(const double* L, std::size_t stride, std::size_t n, double* y);

    // to = c from + s other and other = c other - s from; `to` may be `from`, else none of the three overlap
    void (*rotate)(double c, double s, const double* from, double* other, double* to, std::size_t n);

    // the least of n > 0 numbers, none of them NaN
    double (*minimum)(const double* v, std::size_t n);

    // out[i] = (a + b[i])^2 g(a / (a + b[i]), k[i]) where a and b[i] have the same sign, else infinity; g on [0, 1/2] x
    // [0, 1] is given by its values at size x size nodes and bilinear between them
    void (*interpolated)(const double* nodes, std::size_t size, double a, const double* b, const T* k, std::size_t n,
                         double* out);
};

// The functions for this processor; T is float or double.
template <class T>
const Simd<T>& simd();

// Their name: "x86-64-v4-popcnt", "x86-64-v4", "x86-64-v3", "x86-64-v2" or "plain". The environment variable
// ONKEL_INSTRUCTIONS may name a smaller set than the best one; anything else is ignored.
const char* instruction_set();

}  // namespace onkel
