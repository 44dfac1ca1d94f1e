// Matrix: rows that examples are multiplied with, in tiles (see simd.hpp). Columns can be added.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/basis.hpp"
#include "core/row.hpp"
#include "core/simd.hpp"

namespace onkel {

template <class T>
class Matrix {
public:
    // From values[i * columns + j].
    Matrix(const std::vector<double>& values, std::size_t rows, std::size_t columns)
        : rows_(rows), columns_(columns), capacity_(columns), tiles_(padded() * columns) {
        for (std::size_t i = 0; i < rows; ++i) {
            for (std::size_t j = 0; j < columns; ++j) at(i, j) = static_cast<T>(values[i * columns + j]);
        }
    }

    // Room for so many columns; it doubles, so that adding columns one by one costs what is added.
    void make_room(std::size_t columns) {
        if (columns <= capacity_) return;
        const std::size_t wider = std::max(columns, 2 * capacity_);
        AlignedVector<T> tiles(padded() * wider);
        for (std::size_t i = 0; i < padded(); i += lanes<T>) {
            std::copy_n(tiles_.data() + i * capacity_, columns_ * lanes<T>, tiles.data() + i * wider);
        }
        tiles_ = std::move(tiles);
        capacity_ = wider;
    }
    // Adds the columns of another matrix with as many rows, for which there is room.
    void append(const Matrix& more) {
        for (std::size_t i = 0; i < padded(); i += lanes<T>) {
            std::copy_n(more.tiles_.data() + i * more.capacity_, more.columns_ * lanes<T>,
                        tiles_.data() + i * capacity_ + columns_ * lanes<T>);
        }
        columns_ += more.columns_;
    }

    std::size_t rows() const { return rows_; }
    std::size_t columns() const { return columns_; }
    // Elements that a product needs: the number of rows, rounded up to a multiple of lanes<T>.
    std::size_t padded() const { return (rows_ + lanes<T> - 1) / lanes<T> * lanes<T>; }

    // out[q * stride + i] = <row i, x_q>
    void multiply(const Rows<T>& X, T* out, std::size_t stride) const {
        if (X.indices) {
            simd<T>().sparse_many(PairKind::product, tiles_.data(), tile(), padded() / lanes<T>, X.values, X.indices,
                                  X.starts, X.n, nullptr, out, stride);
        } else if (X.n == 1) {
            simd<T>().dense(PairKind::product, tiles_.data(), tile(), padded() / lanes<T>, X.values, columns_, out);
        } else {
            simd<T>().dense_many(PairKind::product, tiles_.data(), tile(), padded() / lanes<T>, X.values, columns_, X.n,
                                 columns_, nullptr, out, stride);
        }
    }

    // out[j] = sum_i v[i] row_ij; v is padded with finite numbers
    void multiply_transposed(const T* v, T* out) const {
        simd<T>().transposed(tiles_.data(), tile(), padded() / lanes<T>, v, columns_, out);
    }

    // The same for one column.
    T column_product(const T* v, std::size_t j) const {
        T total = 0;
        for (std::size_t i = 0; i < rows_; ++i) total += v[i] * at(i, j);
        return total;
    }

private:
    std::size_t tile() const { return capacity_ * lanes<T>; }
    T& at(std::size_t i, std::size_t j) { return tiles_[i / lanes<T> * tile() + j * lanes<T> + i % lanes<T>]; }
    const T& at(std::size_t i, std::size_t j) const { return const_cast<Matrix*>(this)->at(i, j); }

    std::size_t rows_;
    std::size_t columns_;
    std::size_t capacity_;  // columns a tile has room for
    AlignedVector<T> tiles_;
};

}  // namespace onkel
