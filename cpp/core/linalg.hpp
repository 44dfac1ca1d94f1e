// Linear algebra on small dense matrices, in double.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/store.hpp"

namespace onkel {

// A symmetric matrix with a row and a column for each term, which move as the terms do.
class Square {
public:
    Square() = default;
    explicit Square(std::size_t n) : n_(n), stride_(n), values_(n * n) {}

    std::size_t n() const { return n_; }
    const double* operator[](std::size_t i) const { return values_.data() + i * stride_; }  // row i
    void set(std::size_t i, std::size_t j, double value) {
        values_[i * stride_ + j] = values_[j * stride_ + i] = value;
    }
    void clear() { n_ = 0; }
    // Appends a row and a column; row[n] is the diagonal element.
    void append(const double* row);
    // Removes row and column i; the last ones take their place.
    void remove(std::size_t i);
    // The elements row by row; those on the diagonal are multiplied by a factor.
    std::vector<double> values(double on_diagonal = 1) const;

private:
    std::size_t n_ = 0;
    std::size_t stride_ = 0;
    std::vector<double> values_;
};

// A squared distance to the span of the terms counts as zero up to this, relative to k(x, x).
inline constexpr double dependence_threshold = 1e-10;

// The kernel matrix of the terms of an expansion, factored: K = L L'. The definition, and why not K^-1, are in
// onkel/core/linalg.py. All vectors are in the order of slots, but for the result of `inverse_column`.
class Factor {
public:
    // `inverse`: keep L^-1, too. A squared distance to the span of up to threshold * k(x, x) counts as 0; the threshold
    // is 0 if K has a ridge, as then no term depends on the others.
    explicit Factor(bool inverse, double threshold = dependence_threshold) : inverse_(inverse), threshold_(threshold) {}

    std::size_t n() const { return slots_.size(); }

    // The coefficients d = K^-1 k of an example on the terms; returns its squared distance to their span, 0 where it
    // cannot be told from rounding.
    double project(const double* k, double kxx, double* d);

    // Allocates what another term needs.
    void make_room();
    // A term enters at the next slot; it must be linearly independent of the others.
    void append(const double* k, double kxx);
    // The same for the example of the last call of `project`; nothing may have changed since.
    void append();
    // The term in a slot leaves; the last one takes its place. `d`, if given, gets its coefficients on those that stay.
    void remove(std::size_t slot, double* d = nullptr);

    // K^-1[i, i] by slot, where the inverse of L is kept.
    void diagonal(double* out) const;
    // K^-1 by slot, likewise.
    Square inverse() const;

    // The column of L^-1 that belongs to a slot. The inner product of two such columns is K^-1[i, j].
    void inverse_column(std::size_t slot, double* out) const;

    // Is it time to compute the factor again? `refresh` does so, from K in the order of slots.
    bool stale() const { return removals_ > (n() > 100 ? n() : 100); }
    void refresh(const std::vector<double>& K);

    void save(Store& store, const std::string& prefix) const;
    void load(const Store& store, const std::string& prefix);

private:
    double forward(const double* k, double kxx);
    void backward();
    void by_slot(const std::vector<double>& values, double* out) const;
    void remove_from_inverse(std::size_t p);
    void count_squares(std::size_t i);
    void reserve(std::size_t n);
    double* column(std::size_t j) { return columns_.data() + j * capacity_; }  // of L; element i is row i
    double* row(std::size_t i) { return rows_.data() + i * capacity_; }        // of its inverse

    bool inverse_;
    double threshold_;
    std::size_t capacity_ = 0;
    std::vector<double> columns_;
    std::vector<double> rows_;
    std::vector<double> squares_;     // squared length of each column of the inverse, added up from the top
    std::vector<std::size_t> slots_;  // of the rows of L
    std::size_t removals_ = 0;
    // Of the example projected last, in the order of L:
    std::vector<double> u_;  // L^-1 k
    std::vector<double> d_;  // K^-1 k
    double length_ = 0;      // the diagonal element that L would get with it
};

// Eigenvalues, and eigenvectors as rows of `vectors` (n x n), of the symmetric matrix A (n x n), unsorted.
// Householder's reduction to a tridiagonal matrix, then implicit QL.
void eigen(std::vector<double> A, std::size_t n, std::vector<double>& values, std::vector<double>& vectors);

}  // namespace onkel
