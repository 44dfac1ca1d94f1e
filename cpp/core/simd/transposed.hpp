// Sums over the rows of a matrix: `transposed`.
#pragma once

#include <utility>

#include "core/simd/vector.hpp"

namespace onkel::ONKEL_NAMESPACE {
namespace {

// Lane l of the result is lane l of a, or of b if l has the bit `half`; if flipped, lane l ^ half of the same vector.
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

}  // namespace
}  // namespace onkel::ONKEL_NAMESPACE
