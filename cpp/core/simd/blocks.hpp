// Blocks: a few tiles of rows and a few queries. How many is known at compile time, so that sums stay in registers.
#pragma once

#include "core/simd.hpp"
#include "core/simd/vector.hpp"

namespace onkel::ONKEL_NAMESPACE {
namespace {

// Eight chains of additions hide the latency of one; a block of queries must also fit the registers.
constexpr size_t single_tiles = ONKEL_VECTOR_BYTES / 8;
constexpr size_t many_tiles = ONKEL_VECTOR_BYTES == 64 ? 6 : ONKEL_VECTOR_BYTES / 16;
constexpr size_t many_queries = ONKEL_VECTOR_BYTES == 64 ? 4 : 3;

template <class Call>
INLINE void with_pair(PairKind pair, Call call) {
    switch (pair) {
        case PairKind::product:
            return call.template operator()<PairKind::product>();
        case PairKind::square:
            return call.template operator()<PairKind::square>();
        case PairKind::absolute:
            return call.template operator()<PairKind::absolute>();
        case PairKind::cauchy:
            return;  // has no vector code
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

}  // namespace
}  // namespace onkel::ONKEL_NAMESPACE
