// Views of examples, dense or sparse. They own nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace onkel {

// One example: all its values, or (with an index, ascending) its non-zero ones.
template <class T>
struct Row {
    const T* values = nullptr;
    const std::int32_t* index = nullptr;  // null: dense
    std::size_t count = 0;
};

// An unsigned integer with as many bits as a T.
template <class T>
using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

// Many examples: a row-major array, or a CSR matrix.
template <class T>
struct Rows {
    const T* values = nullptr;
    const std::int32_t* indices = nullptr;  // null: dense
    const std::int64_t* starts = nullptr;
    std::size_t n = 0;
    std::size_t columns = 0;        // of a dense array
    const Word<T>* ones = nullptr;  // their flags, if a table has packed them (see flags.hpp)
    std::size_t words = 0;          // of flags, per example

    Rows slice(std::size_t first, std::size_t count) const {
        const Word<T>* flags = ones ? ones + first * words : nullptr;
        if (!indices) return {values + first * columns, nullptr, nullptr, count, columns, flags, words};
        return {values, indices, starts + first, count, 0, flags, words};
    }

    Row<T> operator[](std::size_t i) const {
        if (!indices) return {values + i * columns, nullptr, columns};
        return {values + starts[i], indices + starts[i], static_cast<std::size_t>(starts[i + 1] - starts[i])};
    }
};

}  // namespace onkel
