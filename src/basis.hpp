// Basis: a table of stored examples with named columns that move with them.
//
// Rows lie feature-major in tiles (see simd.hpp), so that one example meets all of them at vector speed and a
// sparse one costs its non-zeros alone. Sparse streams of very many columns are stored sparsely instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "row.hpp"
#include "simd.hpp"
#include "store.hpp"

namespace onkel {

// More columns than this, and a sparse stream is stored sparsely.
inline constexpr std::size_t dense_columns = 1024;

template <class T>
struct Aligned {
    using value_type = T;
    Aligned() = default;
    template <class U>
    explicit Aligned(const Aligned<U>&) {}
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64})); }
    void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t{64}); }
    bool operator==(const Aligned&) const { return true; }
};

// How two features are compared: the pairs of simd.hpp, and Cauchy's log(1 + gamma (x - z)^2).
struct Compare {
    enum Kind { product, square, absolute, cauchy };
    Kind kind = product;
    double gamma = 0;

    double operator()(double x, double z) const;
    bool operator==(const Compare&) const = default;
};

// Room for the intermediate results of one thread.
template <class T>
struct Workspace {
    std::vector<T> filled;     // a hardly sparse example with its zeros
    std::vector<T> scattered;  // a sparse example among zeros, which are left as found
    std::vector<T> row;        // a stored row, gathered
};

template <class T>
class Basis {
  public:
    struct Column {
        std::string name;
        std::vector<std::vector<double>> values;  // one vector per output: contiguous over rows
        bool saved = true;
    };

    Basis(std::size_t columns, bool sparse) : columns_(columns), sparse_(sparse && columns > dense_columns) {}

    std::size_t n() const { return n_; }
    std::size_t columns() const { return columns_; }
    // Elements a result of `sums` may write.
    std::size_t padded() const { return (n_ + lanes<T> - 1) / lanes<T> * lanes<T>; }

    // Named columns; declared before the first row. References stay valid.
    Column& declare(const std::string& name, std::size_t width, bool saved = true);
    // Make sparse examples cheap for this comparison; declared before the first row.
    void prepare(const Compare& compare);

    void append(Row<T> x);     // named values start at zero
    void remove(std::size_t i);  // the last row takes its place
    void widen(std::size_t columns);
    // A view of stored row i, valid until the workspace or the table changes.
    Row<T> row(std::size_t i, Workspace<T>& work) const;

    // out[i] = sum_j compare(x_j, z_ij) for all rows; writes padded() elements.
    void sums(const Compare& compare, Row<T> x, Workspace<T>& work, T* out) const;
    // The same for several dense examples; only where rows lie in tiles.
    void sums(const Compare& compare, const T* x, std::size_t queries, T* out, std::size_t stride) const;
    bool tiled() const { return !sparse_; }

    void save(Store& store, const std::string& prefix) const;
    void load(const Store& store, const std::string& prefix);

  private:
    struct Rest {
        Compare compare;
        std::vector<double> values;  // sum_j compare(0, z_ij), padded
    };
    struct SparseRow {
        std::vector<std::int32_t> index;
        std::vector<T> values;
    };

    const double* rest(const Compare& compare) const;
    std::size_t stride() const { return capacity_ * lanes<T>; }
    T& at(std::size_t i, std::size_t j) { return tiles_[i / lanes<T> * stride() + j * lanes<T> + i % lanes<T>]; }
    const T& at(std::size_t i, std::size_t j) const { return const_cast<Basis*>(this)->at(i, j); }

    std::size_t n_ = 0;
    std::size_t columns_;
    std::size_t capacity_ = 0;  // columns a tile has room for
    bool sparse_;
    std::vector<T, Aligned<T>> tiles_;
    std::vector<SparseRow> rows_;
    std::vector<std::unique_ptr<Column>> named_;
    std::vector<Rest> rests_;
};

}  // namespace onkel
