#include "basis.hpp"

#include <algorithm>
#include <cmath>

namespace onkel {

double Compare::operator()(double x, double z) const {
    switch (kind) {
        case product: return x * z;
        case square: return (x - z) * (x - z);
        case absolute: return std::abs(x - z);
        case cauchy: return std::log1p(gamma * (x - z) * (x - z));
    }
    return 0;
}

template <class T>
typename Basis<T>::Column& Basis<T>::declare(const std::string& name, std::size_t width, bool saved) {
    named_.push_back(std::make_unique<Column>(Column{name, std::vector<std::vector<double>>(width), saved}));
    return *named_.back();
}

template <class T>
void Basis<T>::prepare(const Compare& compare) {
    if (compare.kind != Compare::product && !rest(compare)) {
        rests_.push_back({compare, std::vector<double>(1)});  // never empty: `rest` must not be null
    }
}

template <class T>
const double* Basis<T>::rest(const Compare& compare) const {
    for (const Rest& r : rests_) {
        if (r.compare == compare) return r.values.data();
    }
    return nullptr;
}

template <class T>
void Basis<T>::append(Row<T> x) {
    if (sparse_) {
        SparseRow row;
        for (std::size_t e = 0; e < x.count; ++e) {
            if (x.index || x.values[e] != 0) {
                row.index.push_back(x.index ? x.index[e] : static_cast<std::int32_t>(e));
                row.values.push_back(x.values[e]);
            }
        }
        rows_.push_back(std::move(row));
    } else {
        capacity_ = std::max({capacity_, columns_, std::size_t{1}});
        if (n_ % lanes<T> == 0) tiles_.resize(tiles_.size() + stride());
        for (std::size_t e = 0; e < x.count; ++e) at(n_, x.index ? x.index[e] : e) = x.values[e];
    }
    ++n_;
    for (const auto& column : named_) {
        for (auto& values : column->values) values.push_back(0);
    }
    for (Rest& r : rests_) {
        r.values.resize(padded());
        double total = 0;
        for (std::size_t e = 0; e < x.count; ++e) total += r.compare(0, x.values[e]);
        r.values[n_ - 1] = total;
    }
}

template <class T>
void Basis<T>::remove(std::size_t i) {
    const std::size_t last = n_ - 1;
    if (sparse_) {
        if (i != last) rows_[i] = std::move(rows_[last]);
        rows_.pop_back();
    } else {
        for (std::size_t j = 0; j < columns_; ++j) {
            at(i, j) = at(last, j);
            at(last, j) = 0;  // unused lanes hold zeros
        }
        if (last % lanes<T> == 0) tiles_.resize(tiles_.size() - stride());
    }
    for (const auto& column : named_) {
        for (auto& values : column->values) {
            values[i] = values[last];
            values.pop_back();
        }
    }
    for (Rest& r : rests_) r.values[i] = r.values[last];
    n_ = last;
    for (Rest& r : rests_) r.values.resize(std::max(padded(), std::size_t{1}));
}

template <class T>
void Basis<T>::widen(std::size_t columns) {
    if (columns <= columns_) return;
    const std::size_t old = columns_;
    columns_ = columns;
    if (sparse_) return;
    if (columns > dense_columns) {  // rows become sparse
        for (std::size_t i = 0; i < n_; ++i) {
            SparseRow row;
            for (std::size_t j = 0; j < old; ++j) {
                if (at(i, j) != 0) {
                    row.index.push_back(static_cast<std::int32_t>(j));
                    row.values.push_back(at(i, j));
                }
            }
            rows_.push_back(std::move(row));
        }
        sparse_ = true;
        tiles_ = {};
    } else if (columns > capacity_ && n_ > 0) {
        Basis wider(columns + columns / 2, false);
        wider.capacity_ = wider.columns_;
        wider.tiles_.resize(tiles_.size() / stride() * wider.stride());
        for (std::size_t i = 0; i < n_; ++i) {
            for (std::size_t j = 0; j < old; ++j) wider.at(i, j) = at(i, j);
        }
        capacity_ = wider.capacity_;
        tiles_ = std::move(wider.tiles_);
    }
}

template <class T>
Row<T> Basis<T>::row(std::size_t i, Workspace<T>& work) const {
    if (sparse_) return {rows_[i].values.data(), rows_[i].index.data(), rows_[i].values.size()};
    work.row.resize(columns_);
    for (std::size_t j = 0; j < columns_; ++j) work.row[j] = at(i, j);
    return {work.row.data(), nullptr, columns_};
}

template <class T>
void Basis<T>::sums(const Compare& compare, Row<T> x, Workspace<T>& work, T* out) const {
    if (n_ == 0) return;
    if (!sparse_ && x.index && 2 * x.count >= columns_) {  // hardly sparse: differences do not cancel as rests do
        work.filled.assign(columns_, 0);
        for (std::size_t e = 0; e < x.count; ++e) work.filled[x.index[e]] = x.values[e];
        x = {work.filled.data(), nullptr, columns_};
    }
    const Pair pair = static_cast<Pair>(compare.kind);
    if (!sparse_ && compare.kind != Compare::cauchy) {
        const std::size_t count = padded() / lanes<T>;
        if (x.index) {
            simd<T>().sparse(pair, tiles_.data(), stride(), count, x.values, x.index, x.count, rest(compare), out);
        } else {
            simd<T>().dense(pair, tiles_.data(), stride(), count, x.values, columns_, out);
        }
        return;
    }
    const double* rests = rest(compare);
    if (!sparse_) {
        for (std::size_t i = 0; i < n_; ++i) {
            double total = x.index ? rests[i] : 0;
            for (std::size_t e = 0; e < x.count; ++e) {
                const double z = at(i, x.index ? x.index[e] : e);
                total += compare(x.values[e], z) - (x.index ? compare(0, z) : 0);
            }
            out[i] = static_cast<T>(compare.kind == Compare::product ? total : std::max(total, 0.0));
        }
        return;
    }
    // sparse rows meet the spread-out example: where z is zero, compare(x, 0) is the whole of it
    const T* spread = x.values;
    double whole = 0;
    for (std::size_t e = 0; e < x.count; ++e) whole += compare(x.values[e], 0);
    if (x.index) {
        work.scattered.resize(columns_);  // all zeros: every use cleans up
        for (std::size_t e = 0; e < x.count; ++e) work.scattered[x.index[e]] = x.values[e];
        spread = work.scattered.data();
    }
    for (std::size_t i = 0; i < n_; ++i) {
        const SparseRow& z = rows_[i];
        double total = whole;
        for (std::size_t e = 0; e < z.index.size(); ++e) {
            const double xj = spread[z.index[e]];
            total += compare(xj, z.values[e]) - compare(xj, 0);
        }
        out[i] = static_cast<T>(compare.kind == Compare::product ? total : std::max(total, 0.0));
    }
    if (x.index) {
        for (std::size_t e = 0; e < x.count; ++e) work.scattered[x.index[e]] = 0;
    }
}

template <class T>
void Basis<T>::sums(const Compare& compare, const T* x, std::size_t queries, T* out, std::size_t stride_out) const {
    const Pair pair = static_cast<Pair>(compare.kind);
    simd<T>().dense_many(pair, tiles_.data(), stride(), padded() / lanes<T>, x, columns_, queries, columns_, out,
                         stride_out);
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
    if (!sparse_) {
        std::vector<T> flat(n_ * columns_);
        for (std::size_t i = 0; i < n_; ++i) {
            for (std::size_t j = 0; j < columns_; ++j) flat[i * columns_ + j] = at(i, j);
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
    while (n_) remove(n_ - 1);
    const std::string dense = prefix + ".x";
    if (store.has(dense)) {
        const std::vector<T> x = store.get<T>(dense, 2);
        const std::size_t rows = store.shape(dense)[0];
        const std::size_t columns = store.shape(dense)[1];
        if (columns > columns_ || x.size() != rows * columns) Store::refuse(dense, "has the wrong shape");
        if (sparse_ && rows == 0) return;
        sparse_ = false;
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
        sparse_ = true;
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
