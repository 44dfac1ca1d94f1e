// Views of examples, dense or sparse. They own nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace onkel {

// One example: all its values, or (with an index, ascending) its non-zero ones.
template <class T>
struct Row {
    const T* values = nullptr;
    const std::int32_t* index = nullptr;  // null: dense
    std::size_t count = 0;
};

// Many examples: a row-major array, or a CSR matrix.
template <class T>
struct Rows {
    const T* values = nullptr;
    const std::int32_t* indices = nullptr;  // null: dense
    const std::int64_t* starts = nullptr;
    std::size_t n = 0;
    std::size_t columns = 0;  // of a dense array

    Rows slice(std::size_t first, std::size_t count) const {
        if (!indices) return {values + first * columns, nullptr, nullptr, count, columns};
        return {values, indices, starts + first, count, 0};
    }

    Row<T> operator[](std::size_t i) const {
        if (!indices) return {values + i * columns, nullptr, columns};
        return {values + starts[i], indices + starts[i], static_cast<std::size_t>(starts[i + 1] - starts[i])};
    }
};

}  // namespace onkel
