#include "core/basis.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace onkel {

double Pair::operator()(double x, double z) const {
    switch (kind) {
        case PairKind::product:
            return x * z;
        case PairKind::square:
            return (x - z) * (x - z);
        case PairKind::absolute:
            return std::abs(x - z);
        case PairKind::cauchy:
            return std::log1p(gamma * (x - z) * (x - z));
    }
    return 0;
}

template <class T>
typename Basis<T>::Column& Basis<T>::declare(const std::string& name, std::size_t width, bool saved) {
    named_.push_back(std::make_unique<Column>(Column{name, PerOutput<AlignedVector<double>>(width), saved}));
    return *named_.back();
}

template <class T>
typename Basis<T>::Column& Basis<T>::operator[](const std::string& name) {
    for (const auto& column : named_) {
        if (column->name == name) return *column;
    }
    throw std::logic_error("a table without a column " + name);
}

template <class T>
void Basis<T>::prepare(const Pair& pair) {
    if (sparse_ && pair.kind != PairKind::product && !norms_of(pair)) {
        norms_.push_back({pair, std::vector<double>(1)});  // never empty: `norms` must not be null
    }
}

template <class T>
const double* Basis<T>::norms_of(const Pair& pair) const {
    for (const Norms& n : norms_) {
        if (n.pair == pair) return n.values.data();
    }
    return nullptr;
}

template <class T>
void Basis<T>::make_room_for(const Row<T>& x) {
    if (tiled_) {
        capacity_ = std::max({capacity_, columns_, std::size_t{1}});
        if (n_ % lanes<T> == 0) reserve(tiles_, tiles_.size() + stride());
        if (sparse_) {
            if (nonzeros_.size() <= n_) nonzeros_.resize(n_ + 1);
            nonzeros_[n_].reserve(x.count);
        }
        flags_.make_room_for_row();
    } else {
        reserve(rows_, n_ + 1);
        next_.index.reserve(x.count);
        next_.values.reserve(x.count);
    }
    for (const auto& column : named_) {
        for (auto& values : column->values) reserve(values, n_ + 1);
    }
    for (Norms& n : norms_) reserve(n.values, padded(n_ + 1));
}

template <class T>
void Basis<T>::append(Row<T> x) {
    if (tiled_) {
        capacity_ = std::max({capacity_, columns_, std::size_t{1}});
        if (n_ % lanes<T> == 0) tiles_.resize(tiles_.size() + stride());
        T* to = first(n_);
        for (std::size_t e = 0; e < x.count; ++e) to[(x.index ? x.index[e] : e) * lanes<T>] = x.values[e];
        if (sparse_) store_nonzeros(x);
        flags_.append(x);
    } else {
        next_.index.clear();
        next_.values.clear();
        for (std::size_t e = 0; e < x.count; ++e) {
            if (x.values[e] != 0) {
                next_.index.push_back(x.index ? x.index[e] : static_cast<std::int32_t>(e));
                next_.values.push_back(x.values[e]);
            }
        }
        rows_.push_back(std::move(next_));
    }
    ++n_;
    for (const auto& column : named_) {
        for (auto& values : column->values) values.push_back(0);
    }
    for (Norms& n : norms_) {
        if (n.values.size() < padded(n_)) n.values.resize(padded(n_));
        double total = 0;
        for (std::size_t e = 0; e < x.count; ++e) total += n.pair(0, x.values[e]);
        n.values[n_ - 1] = total;
    }
}

// The columns of the row just stored that may be non-zero: those of its index, or all columns of a dense row. The
// vector of a row that was removed is used again.
template <class T>
void Basis<T>::store_nonzeros(Row<T> x) {
    if (nonzeros_.size() <= n_) nonzeros_.resize(n_ + 1);
    std::vector<std::int32_t>& columns = nonzeros_[n_];
    columns.clear();
    for (std::size_t e = 0; e < x.count; ++e) columns.push_back(x.index ? x.index[e] : static_cast<std::int32_t>(e));
}

template <class T>
void Basis<T>::remove(std::size_t i) {
    const std::size_t last = --n_;
    if (tiled_) {
        T* to = first(i);
        T* from = first(last);
        if (sparse_) {
            for (const std::int32_t j : nonzeros_[i]) to[j * lanes<T>] = 0;
            if (i != last) {
                for (const std::int32_t j : nonzeros_[last]) {
                    to[j * lanes<T>] = from[j * lanes<T>];
                    from[j * lanes<T>] = 0;  // unused lanes hold zeros
                }
                nonzeros_[i].swap(nonzeros_[last]);
            }
        } else {
            for (std::size_t j = 0; j < columns_; ++j) {
                to[j * lanes<T>] = from[j * lanes<T>];
                from[j * lanes<T>] = 0;
            }
        }
        flags_.remove(i);
        if (last % lanes<T> == 0) tiles_.resize(tiles_.size() - stride());
    } else {
        if (i != last) rows_[i] = std::move(rows_[last]);
        rows_.pop_back();
    }
    for (const auto& column : named_) {
        for (auto& values : column->values) {
            values[i] = values[last];
            values.pop_back();
        }
    }
    for (Norms& n : norms_) n.values[i] = n.values[last];
}

template <class T>
void Basis<T>::replace(std::size_t i, Row<T> x) {
    if (!tiled_ || sparse_ || x.index) {
        remove(i);
        return append(x);
    }
    const std::size_t last = n_ - 1;
    T* to = first(i);
    T* from = first(last);
    for (std::size_t j = 0; j < columns_; ++j) {
        to[j * lanes<T>] = from[j * lanes<T>];
        from[j * lanes<T>] = x.values[j];
    }
    flags_.replace(i, x);
    for (const auto& column : named_) {
        for (auto& values : column->values) {
            values[i] = values[last];
            values[last] = 0;
        }
    }
}

template <class T>
void Basis<T>::clear() {
    n_ = 0;
    tiles_.clear();
    flags_.clear();
    rows_.clear();
    for (const auto& column : named_) {
        for (auto& values : column->values) values.clear();
    }
}

template <class T>
void Basis<T>::make_room(std::size_t columns) {
    if (columns <= columns_ || !tiled_) return;
    if (becomes_sparse(columns)) {
        becoming_.clear();
        becoming_.reserve(n_);
        for (std::size_t i = 0; i < n_; ++i) {
            SparseRow row;
            for (std::size_t j = 0; j < columns_; ++j) {
                if (const T value = first(i)[j * lanes<T>]; value != 0) {
                    row.index.push_back(static_cast<std::int32_t>(j));
                    row.values.push_back(value);
                }
            }
            becoming_.push_back(std::move(row));
        }
        return;
    }
    flags_.make_room(columns);
    if (columns <= capacity_ || n_ == 0) return;
    const std::size_t wider = columns + columns / 2;
    AlignedVector<T> tiles(tiles_.size() / stride() * wider * lanes<T>);
    for (std::size_t i = 0; i < padded(n_); i += lanes<T>) {
        std::copy_n(tiles_.data() + i * capacity_, columns_ * lanes<T>, tiles.data() + i * wider);
    }
    tiles_ = std::move(tiles);
    capacity_ = wider;
}

template <class T>
void Basis<T>::widen(std::size_t columns) {
    if (columns <= columns_) return;
    if (tiled_ && becomes_sparse(columns)) {
        tiled_ = false;
        rows_ = std::move(becoming_);
        tiles_ = {};
        nonzeros_ = {};
        flags_ = Flags<T>(0, false);
    } else if (tiled_) {
        flags_.widen();
    }
    columns_ = columns;
}

template <class T>
Row<T> Basis<T>::row(std::size_t i, Workspace<T>& work) const {
    static constexpr std::int32_t nowhere = 0;  // a row of zeros is sparse too, and null would say that it is dense
    if (!tiled_) {
        const SparseRow& stored = rows_[i];
        return {stored.values.data(), stored.index.empty() ? &nowhere : stored.index.data(), stored.values.size()};
    }
    work.row.resize(columns_);
    for (std::size_t j = 0; j < columns_; ++j) work.row[j] = first(i)[j * lanes<T>];
    return {work.row.data(), nullptr, columns_};
}

template <class T>
bool Basis<T>::packed(const Row<T>& x, Word<T>* ones) const {
    return flags_.any() && (!x.index || (flags_.all() && flags_.words() <= x.count)) && flags_.pack(x, ones);
}

template <class T>
void Basis<T>::pack(Rows<T>& X, std::vector<Word<T>>& ones) const {
    X.ones = nullptr;
    X.words = flags_.words();
    if (!tiled_ || !flags_.any()) return;
    ones.resize(X.n * X.words);
    if (!X.indices) {
        if (flags_.pack_dense(X, ones.data())) X.ones = ones.data();
        return;
    }
    for (std::size_t q = 0; q < X.n; ++q) {
        if (!packed(X[q], ones.data() + q * X.words)) return;
    }
    X.ones = ones.data();
}

template <class T>
void Basis<T>::sums(const Pair& pair, const Rows<T>& X, Range range, Workspace<T>& work, T* out,
                    std::size_t stride_out) const {
    if (tiled_ && pair.kind != PairKind::cauchy) {
        out += range.first;
        if (X.ones) return sums_by(Method::flags, pair, X, range, work, out, stride_out);
        work.ones.resize(flags_.words());
        const auto method_for = [&](Row<T> x) {
            if (packed(x, work.ones.data())) return Method::flags;
            if (!x.index) return Method::dense;
            return truly_sparse(x, pair.sharpness) ? Method::sparse : Method::filled;
        };
        for (std::size_t q = 0, end; q < X.n; q = end) {  // runs of examples with the same method
            const Method method = method_for(X[q]);
            end = q + 1;
            while (method != Method::flags && end < X.n && method_for(X[end]) == method) ++end;
            Rows<T> run = X.slice(q, end - q);
            run.ones = work.ones.data();
            sums_by(method, pair, run, range, work, out + q * stride_out, stride_out);
        }
        return;
    }
    for (std::size_t q = 0; q < X.n; ++q) sum(pair, X[q], range, work, out + q * stride_out);
}

template <class T>
bool Basis<T>::can_look_up(const Pair& pair, const Rows<T>& X) const {
    if (!tiled_ || !X.ones || !flags_.all() || pair.kind == PairKind::cauchy) return false;
    std::size_t most = 0;
    for (std::size_t q = 0; q < X.n; ++q) most = std::max(most, flags_.ones(X.ones + q * X.words));
    return (pair.kind == PairKind::product ? std::min(most, flags_.most()) : most + flags_.most()) < table_size;
}

template <class T>
void Basis<T>::look_up(const Pair& pair, const Rows<T>& X, Range range, const T* table, T* out,
                       std::size_t stride_out) const {
    const FlagBits<T> flags{flags_.tile(range.first), flags_.mask(), X.ones, flags_.words(), nullptr};
    simd<T>().look_up(pair.kind, flags, table, (padded(range.last) - range.first) / lanes<T>, X.n, out + range.first,
                      stride_out);
}

// Compares the examples with the rows of the range, all by the same method.
template <class T>
void Basis<T>::sums_by(Method method, const Pair& pair, const Rows<T>& X, Range range, Workspace<T>& work, T* out,
                       std::size_t stride_out) const {
    const std::size_t count = (padded(range.last) - range.first) / lanes<T>;
    const T* tiles = first(range.first);
    const double* norms = norms_of(pair);
    switch (method) {
        case Method::flags: {
            const auto& others = flags_.others();
            const FlagBits<T> flags{flags_.tile(range.first), flags_.mask(), X.ones, flags_.words(), others.data()};
            simd<T>().dense_many(pair.kind, tiles, stride(), count, X.values, X.columns, X.n, others.size(), &flags,
                                 out, stride_out);
            return;
        }
        case Method::dense:
            simd<T>().dense_many(pair.kind, tiles, stride(), count, X.values, X.columns, X.n, columns_, nullptr, out,
                                 stride_out);
            return;
        case Method::sparse:
            simd<T>().sparse_many(pair.kind, tiles, stride(), count, X.values, X.indices, X.starts, X.n,
                                  norms ? norms + range.first : nullptr, out, stride_out);
            return;
        case Method::filled:
            for (std::size_t q = 0; q < X.n; ++q) {
                const Row<T> x = filled(X[q], work);
                simd<T>().dense(pair.kind, tiles, stride(), count, x.values, columns_, out + q * stride_out);
            }
            return;
    }
}

// The densified example.
template <class T>
Row<T> Basis<T>::filled(Row<T> x, Workspace<T>& work) const {
    work.filled.assign(columns_, 0);
    for (std::size_t e = 0; e < x.count; ++e) work.filled[x.index[e]] = x.values[e];
    return {work.filled.data(), nullptr, columns_};
}

// Scalar fallback: any comparison, any storage.
template <class T>
void Basis<T>::sum(const Pair& pair, Row<T> x, Range range, Workspace<T>& work, T* out) const {
    if (!tiled_) {
        return sums_keep_digits(x, pair.sharpness) ? sum_scattered(pair, x, range, work, out)
                                                   : sum_side_by_side(pair, x, range, out);
    }
    if (x.index && !truly_sparse(x, pair.sharpness)) x = filled(x, work);
    const double* norms = norms_of(pair);
    for (std::size_t i = range.first; i < range.last; ++i) {
        double total = x.index ? norms[i] : 0;
        for (std::size_t e = 0; e < x.count; ++e) {
            const double z = first(i)[(x.index ? x.index[e] : e) * lanes<T>];
            total += pair(x.values[e], z) - (x.index ? pair(0, z) : 0);
        }
        out[i] = static_cast<T>(std::max(total, 0.0));
    }
}

template <class T>
bool Basis<T>::sums_keep_digits(const Row<T>& x, double sharpness) {
    double squares = 0;
    for (std::size_t e = 0; e < x.count; ++e) squares += static_cast<double>(x.values[e]) * x.values[e];
    return sharpness * squares < (sizeof(T) == sizeof(float) ? 64 : 1e5);
}

// Sparse rows, exactly: two lists of non-zeros, walked side by side.
template <class T>
void Basis<T>::sum_side_by_side(const Pair& pair, Row<T> x, Range range, T* out) const {
    for (std::size_t i = range.first; i < range.last; ++i) {
        const SparseRow& z = rows_[i];
        const auto end = static_cast<std::int64_t>(columns_);
        double total = 0;
        std::size_t a = 0;
        std::size_t b = 0;
        while (a < x.count || b < z.index.size()) {
            const std::int64_t j = a < x.count ? (x.index ? x.index[a] : static_cast<std::int64_t>(a)) : end;
            const std::int64_t l = b < z.index.size() ? z.index[b] : end;
            total += pair(j <= l ? x.values[a] : 0, l <= j ? z.values[b] : 0);
            a += j <= l;
            b += l <= j;
        }
        out[i] = static_cast<T>(total);
    }
}

// The example x is scattered into a dense vector, and compared with each sparse row z in the columns of z. The other
// columns of x are compared with 0: all of x (`whole`) less the columns of z (`covered`). If x and z are equal, these
// two sums run over the same columns in the same order, so that exactly 0 is left.
template <class T>
void Basis<T>::sum_scattered(const Pair& pair, Row<T> x, Range range, Workspace<T>& work, T* out) const {
    work.scattered.resize(columns_);
    double whole = 0;
    for (std::size_t e = 0; e < x.count; ++e) {
        whole += pair(x.values[e], 0);
        work.scattered[x.index ? x.index[e] : e] = x.values[e];
    }
    const auto sums = [&](auto paired) {
        for (std::size_t i = range.first; i < range.last; ++i) {
            const SparseRow& z = rows_[i];
            double common = 0;
            double covered = 0;
            for (std::size_t e = 0; e < z.index.size(); ++e) {
                const double xj = work.scattered[z.index[e]];
                common += paired(xj, z.values[e]);
                covered += paired(xj, 0);
            }
            const double total = common + (whole - covered);
            out[i] = static_cast<T>(total);
        }
    };
    switch (pair.kind) {  // here, so that the loops know their comparison
        case PairKind::product:
            sums([](double a, double b) { return a * b; });
            break;
        case PairKind::square:
            sums([](double a, double b) { return (a - b) * (a - b); });
            break;
        case PairKind::absolute:
            sums([](double a, double b) { return std::abs(a - b); });
            break;
        case PairKind::cauchy:
            sums(pair);
            break;
    }
    for (std::size_t e = 0; e < x.count; ++e) work.scattered[x.index ? x.index[e] : e] = 0;
}

template <class T>
void Basis<T>::save(Store& store, const std::string& prefix) const {
    for (const auto& column : named_) {
        if (!column->saved) continue;
        const std::size_t width = column->values.size();
        std::vector<double> flat(n_ * width);
        for (std::size_t i = 0; i < n_; ++i) {
            for (std::size_t o = 0; o < width; ++o) flat[i * width + o] = column->values[o][i];
        }
        store.put(prefix + "." + column->name, std::move(flat), {n_, width});
    }
    if (tiled_) {
        std::vector<T> flat(n_ * columns_);
        for (std::size_t i = 0; i < n_; ++i) {
            for (std::size_t j = 0; j < columns_; ++j) flat[i * columns_ + j] = first(i)[j * lanes<T>];
        }
        store.put(prefix + ".x", std::move(flat), {n_, columns_});
        return;
    }
    std::vector<T> data;
    std::vector<std::int64_t> indices;
    std::vector<std::int64_t> starts{0};
    for (const SparseRow& row : rows_) {
        data.insert(data.end(), row.values.begin(), row.values.end());
        indices.insert(indices.end(), row.index.begin(), row.index.end());
        starts.push_back(static_cast<std::int64_t>(data.size()));
    }
    const std::size_t nonzeros = data.size();
    store.put(prefix + ".data", std::move(data), {nonzeros});
    store.put(prefix + ".indices", std::move(indices), {nonzeros});
    store.put(prefix + ".indptr", std::move(starts), {n_ + 1});
}

template <class T>
void Basis<T>::load(const Store& store, const std::string& prefix) {
    clear();
    const std::string dense = prefix + ".x";
    const std::vector<std::size_t>& born = store.shape(prefix + ".born");  // before anything of that size is made
    const std::string& rows_in = store.has(dense) ? dense : prefix + ".indptr";
    const std::vector<std::size_t>& shape = store.shape(rows_in);
    if (born.empty() || shape.empty() || shape[0] != born[0] + !store.has(dense)) {
        Store::refuse(rows_in, "has another number of rows than '" + prefix + ".born'");
    }
    if (store.has(dense)) {
        const std::vector<T> x = store.get<T>(dense, 2);
        const std::size_t rows = store.shape(dense)[0];
        const std::size_t columns = store.shape(dense)[1];
        if (columns != columns_ || x.size() != rows * columns) Store::refuse(dense, "has the wrong shape");
        if (rows) {
            tiled_ = true;
            flags_.make_room(columns_);
            flags_.widen();
        }
        for (std::size_t i = 0; i < rows; ++i) append({x.data() + i * columns, nullptr, columns});
    } else {
        const std::vector<T> data = store.get<T>(prefix + ".data", 1);
        const auto indices = store.get<std::int64_t>(prefix + ".indices", 1);
        const auto starts = store.get<std::int64_t>(prefix + ".indptr", 1);
        const auto nonzeros = static_cast<std::int64_t>(data.size());
        if (indices.size() != data.size() || starts.empty() || starts.front() != 0 || starts.back() != nonzeros ||
            !std::is_sorted(starts.begin(), starts.end())) {
            Store::refuse(prefix + ".indptr", "does not fit its data");
        }
        tiled_ = false;
        for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
            std::vector<std::int32_t> index;
            for (std::int64_t e = starts[i]; e < starts[i + 1]; ++e) {
                if (indices[e] < 0 || indices[e] >= static_cast<std::int64_t>(columns_) ||
                    (e > starts[i] && indices[e] <= indices[e - 1])) {
                    Store::refuse(prefix + ".indices", "are out of range or order");
                }
                index.push_back(static_cast<std::int32_t>(indices[e]));
            }
            append({data.data() + starts[i], index.data(), index.size()});
        }
    }
    for (const auto& column : named_) {
        if (!column->saved) continue;
        const std::string name = prefix + "." + column->name;
        const std::vector<double> flat = store.get<double>(name, 2);
        const std::size_t width = column->values.size();
        if (store.shape(name) != std::vector<std::size_t>{n_, width} || flat.size() != n_ * width) {
            Store::refuse(name, "has the wrong shape");
        }
        for (std::size_t i = 0; i < n_; ++i) {
            for (std::size_t o = 0; o < width; ++o) column->values[o][i] = flat[i * width + o];
        }
    }
}

template class Basis<float>;
template class Basis<double>;

}  // namespace onkel
