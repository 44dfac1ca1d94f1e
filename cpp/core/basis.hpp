// Basis: a table of stored examples, and further numbers of each (such as coefficients) in vectors with a name
// (struct Column), which move with the examples.
//
// Rows lie feature-major in tiles (see simd.hpp), so that an example is compared with all rows by SIMD code, and a
// sparse one costs its non-zeros alone. Sparse streams of very many columns are stored sparsely instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/flags.hpp"
#include "core/row.hpp"
#include "core/simd.hpp"
#include "core/store.hpp"
#include "core/vectors.hpp"

namespace onkel {

// More columns than this, and a sparse stream is stored sparsely.
inline constexpr std::size_t dense_columns = 1024;

// How a kernel compares two features, with the gamma of Cauchy's.
struct Pair {
    PairKind kind = PairKind::product;
    double gamma = 0;
    double sharpness = 0;  // by how much the kernel reacts to an error of the sum

    double operator()(double x, double z) const;
    bool operator==(const Pair& other) const { return kind == other.kind && gamma == other.gamma; }
};

// Rows first .. last - 1 of a table; first is a multiple of the lanes.
struct Range {
    std::size_t first = 0;
    std::size_t last = 0;
};

// Room for the intermediate results of one thread.
template <class T>
struct Workspace {
    std::vector<T> filled;      // a densified example
    std::vector<T> scattered;   // a dense row for the non-zeros of one example; all zeros between uses
    std::vector<T> row;         // a stored row, gathered
    std::vector<Word<T>> ones;  // the flags of examples
    AlignedVector<T> k;         // a kernel row
    std::int64_t starts[2];     // row starts of a CSR matrix with one row
};

template <class T>
class Basis {
public:
    struct Column {
        std::string name;
        PerOutput<AlignedVector<double>> values;  // contiguous over rows
        bool saved = true;
    };

    Basis(std::size_t columns, bool sparse)
        : columns_(columns),
          sparse_(sparse),
          tiled_(!sparse || columns <= dense_columns),
          flags_(tiled_ ? columns : 0, !sparse) {}

    std::size_t n() const { return n_; }
    std::size_t columns() const { return columns_; }
    Range all() const { return {0, n_}; }
    // Is the stream sparse? Its first call decides; later examples may have the other form.
    bool sparse() const { return sparse_; }
    bool tiled() const { return tiled_; }
    // While this stays the same, the sums of an example are bitwise reproducible.
    std::size_t version() const { return flags_.version(); }
    // Elements that kernel rows need: n rounded up to a multiple of lanes<T>.
    static std::size_t padded(std::size_t n) { return (n + lanes<T> - 1) / lanes<T> * lanes<T>; }
    // Is it worth summing over the non-zeros of the example alone? Yes if they are few, and not so large that these
    // sums would lose digits by cancellation. (Sums over all columns lose none.)
    bool truly_sparse(const Row<T>& x, double sharpness) const {
        return x.index && sparse_ && 2 * x.count < columns_ && sums_keep_digits(x, sharpness);
    }
    // Are the values small enough for sums over non-zeros alone?
    static bool sums_keep_digits(const Row<T>& x, double sharpness);

    // Named columns; declared before the first row. References stay valid.
    Column& declare(const std::string& name, std::size_t width, bool saved = true);
    Column& operator[](const std::string& name);
    const Column& operator[](const std::string& name) const { return const_cast<Basis&>(*this)[name]; }
    // Keep norms, so that sparse examples are cheap to compare in this way; to be called before the first row.
    void prepare(const Pair& pair);

    // Allocates what `append` of this row needs, so that it cannot fail for want of memory.
    void make_room_for(const Row<T>& x);
    void append(Row<T> x);                  // named values start at zero
    void remove(std::size_t i);             // the last row takes its place
    void replace(std::size_t i, Row<T> x);  // the same, then x is appended
    void clear();
    // New features, 0 in all rows. `make_room` allocates what they need, then `widen` adds them and cannot fail.
    void make_room(std::size_t columns);
    void widen(std::size_t columns);
    // A view of stored row i, valid until the workspace or the table changes.
    Row<T> row(std::size_t i, Workspace<T>& work) const;

    // Sets X.ones to the flags of the examples (stored in `ones`), or to null if not all of them can be compared by
    // flags. Valid while the version stays the same.
    void pack(Rows<T>& X, std::vector<Word<T>>& ones) const;
    // out[q * stride + i] = sum_j pair(x_qj, z_ij) for the rows i of the range, and the rest of its last tile.
    void sums(const Pair& pair, const Rows<T>& X, Range range, Workspace<T>& work, T* out, std::size_t stride) const;
    // Are all these sums integers below `table_size`? Then `look_up` writes table[sum] in place of each sum.
    bool can_look_up(const Pair& pair, const Rows<T>& X) const;
    void look_up(const Pair& pair, const Rows<T>& X, Range range, const T* table, T* out, std::size_t stride) const;

    void save(Store& store, const std::string& prefix) const;
    void load(const Store& store, const std::string& prefix);

private:
    struct Norms {
        Pair pair;
        std::vector<double> values;  // sum_j pair(0, z_ij), padded
    };
    struct SparseRow {
        std::vector<std::int32_t> index;
        std::vector<T> values;
    };

    // How the sums of an example are computed.
    enum class Method {
        flags,   // bits are counted where columns are flags, the values of the other columns are compared
        dense,   // the values of all columns are compared
        sparse,  // only the non-zeros of the example are read
        filled,  // a sparse example is densified, and compared as a dense one
    };
    void sums_by(Method method, const Pair& pair, const Rows<T>& X, Range range, Workspace<T>& work, T* out,
                 std::size_t stride) const;
    bool packed(const Row<T>& x, Word<T>* ones) const;
    void sum(const Pair& pair, Row<T> x, Range range, Workspace<T>& work, T* out) const;
    void sum_scattered(const Pair& pair, Row<T> x, Range range, Workspace<T>& work, T* out) const;
    void sum_side_by_side(const Pair& pair, Row<T> x, Range range, T* out) const;
    void store_nonzeros(Row<T> x);
    Row<T> filled(Row<T> x, Workspace<T>& work) const;
    const double* norms_of(const Pair& pair) const;
    bool becomes_sparse(std::size_t columns) const { return sparse_ && columns > dense_columns; }
    std::size_t stride() const { return capacity_ * lanes<T>; }
    // Feature 0 of row i; feature j is lanes * j further.
    T* first(std::size_t i) { return tiles_.data() + i / lanes<T> * stride() + i % lanes<T>; }
    const T* first(std::size_t i) const { return const_cast<Basis*>(this)->first(i); }

    std::size_t n_ = 0;
    std::size_t columns_;
    std::size_t capacity_ = 0;  // columns a tile has room for
    bool sparse_;
    bool tiled_;
    AlignedVector<T> tiles_;
    Flags<T> flags_;                                   // of rows in tiles
    std::vector<std::vector<std::int32_t>> nonzeros_;  // of rows in tiles, where examples come sparse
    std::vector<SparseRow> rows_;                      // where there are no tiles
    SparseRow next_;                                   // room for the row that may be appended next
    std::vector<SparseRow> becoming_;                  // from `make_room` to `widen`: the rows, if tiles end
    std::vector<std::unique_ptr<Column>> named_;
    std::vector<Norms> norms_;
};

}  // namespace onkel
