// Maps: explicit features of a kernel. What is drawn is drawn in Python (onkel/maps.py, the definition) and comes
// as arrays; here the features are computed, of many examples at once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/matrix.hpp"
#include "core/part.hpp"
#include "core/row.hpp"
#include "core/simd.hpp"
#include "core/store.hpp"
#include "core/vectors.hpp"

namespace onkel {

// z(x) = [cos q, sin q] / sqrt(D) with D projections q of x.
template <class T>
class FeatureMap {
public:
    FeatureMap(std::size_t components, double reach) : components_(components), reach_(reach) {}
    virtual ~FeatureMap() = default;

    std::size_t size() const { return 2 * components_; }
    virtual std::size_t columns() const = 0;
    // How large |x_1| + |x_2| + ... may be without projections that overflow.
    double reach() const { return reach_; }
    // May the features of an example change from round to round?
    virtual bool adapts() const { return false; }

    // z[q * stride + i], the features of example q
    void features(const Rows<T>& X, Workspace<T>& work, T* z, std::size_t stride) const {
        const auto scale = static_cast<T>(1 / std::sqrt(static_cast<double>(components_)));
        work.k.resize(X.n * padded());
        project(X, work, work.k.data(), padded());
        for (std::size_t q = 0; q < X.n; ++q) {
            T* cos = z + q * stride;
            simd<T>().sincos(work.k.data() + q * padded(), components_, scale, cos, cos + components_);
        }
    }

    // Learn from an example with features z, dz being the slope of the loss in them.
    virtual void adapt(Row<T> /*x*/, const T* /*z*/, const T* /*dz*/) {}
    // Add the columns of `more`, a map of this kind that was drawn for them. `make_room` allocates what that needs, and
    // changes nothing; then `append` cannot fail.
    virtual void make_room(const FeatureMap& more) {
        (void)more;
        throw std::invalid_argument("this map takes no further columns");
    }
    virtual void append(const FeatureMap& more) { reach_ = std::min(reach_, more.reach_); }
    virtual void save(Store&) const {}
    virtual void load(const Store&) {}

protected:
    virtual void project(const Rows<T>& X, Workspace<T>& work, T* q, std::size_t stride) const = 0;
    // Elements a row of projections needs.
    virtual std::size_t padded() const = 0;

    std::size_t components_;

private:
    double reach_;
};

// A map as a value, with the numbers drawn for it: `start(run)` makes what computes its features.
class Map {
public:
    using Start = std::function<Started<FeatureMap>(const Run&)>;
    explicit Map(Start how) : start(std::move(how)) {}

    // A map that M<float> or M<double> computes, made of these arguments.
    template <template <class> class M, class... Arguments>
    static std::shared_ptr<Map> of(Arguments... arguments) {
        return std::make_shared<Map>([=](const Run& run) {
            return by_type<FeatureMap>(run, [&]<class T>(T) { return std::make_unique<M<T>>(arguments...); });
        });
    }

    const Start start;
};

// A table of numbers that comes from Python, row by row.
struct Table {
    std::vector<double> values;
    std::size_t rows = 0;
    std::size_t columns = 0;
};
using TablePointer = std::shared_ptr<const Table>;

// Projections on given directions: Fourier, Orthogonal.
template <class T>
class Directions final : public FeatureMap<T> {
public:
    Directions(const TablePointer& directions, double reach)
        : FeatureMap<T>(directions->rows, reach), matrix_(directions->values, directions->rows, directions->columns) {}

    std::size_t columns() const override { return matrix_.columns(); }

    void make_room(const FeatureMap<T>& more) override { matrix_.make_room(columns() + more.columns()); }
    void append(const FeatureMap<T>& more) override {
        FeatureMap<T>::append(more);
        matrix_.append(static_cast<const Directions&>(more).matrix_);
    }

protected:
    void project(const Rows<T>& X, Workspace<T>&, T* q, std::size_t stride) const override {
        matrix_.multiply(X, q, stride);
    }
    std::size_t padded() const override { return matrix_.padded(); }

private:
    Matrix<T> matrix_;
};

// Projections on directions that several maps of a pool have in common but for a factor: computed once for a block of
// examples that all of them are about to meet.
class Common {
public:
    explicit Common(const Table& directions) : matrix_(directions.values, directions.rows, directions.columns) {}

    std::size_t components() const { return matrix_.rows(); }
    std::size_t columns() const { return matrix_.columns(); }
    std::size_t padded() const { return matrix_.padded(); }

    void read_block(const Rows<double>& X) {
        block_ = X;
        q_.resize(X.n * padded());
        multiply(X, q_.data(), padded());
    }
    void drop_block() { block_ = {}; }

    void append(const Common& more) {
        matrix_.make_room(columns() + more.columns());
        matrix_.append(more.matrix_);
    }

    // q[i * stride ..] = factor * the projections of X, from the block if they are there
    void project(const Rows<double>& X, double factor, double* q, std::size_t stride) const {
        const double* known = find(X);
        if (!known) multiply(X, q, stride);
        for (std::size_t i = 0; i < X.n; ++i) {
            const double* from = known ? known + i * padded() : q + i * stride;
            for (std::size_t c = 0; c < padded(); ++c) q[i * stride + c] = factor * from[c];
        }
    }

private:
    // Their projections in the block, if they are a part of it.
    const double* find(const Rows<double>& X) const {
        if (block_.n == 0 || !X.indices != !block_.indices) return nullptr;
        const std::size_t width = X.indices ? 1 : columns();
        const auto place = [&](const auto* here, const auto* first) -> const double* {
            const std::less_equal<> before;
            if (!before(first, here) || !before(here + X.n * width, first + block_.n * width)) return nullptr;
            return q_.data() + static_cast<std::size_t>(here - first) / width * padded();
        };
        return X.indices ? place(X.starts, block_.starts) : place(X.values, block_.values);
    }

    void multiply(const Rows<double>& X, double* q, std::size_t stride) const {
        constexpr std::size_t together = 16;
        for (std::size_t i = 0; i < X.n; i += together) {
            matrix_.multiply(X.slice(i, std::min(together, X.n - i)), q + i * stride, stride);
        }
    }

    Matrix<double> matrix_;
    Rows<double> block_;
    std::vector<double, Aligned<double>> q_;
};

// A map on common directions, stretched.
class Stretched final : public FeatureMap<double> {
public:
    Stretched(std::shared_ptr<const Common> common, double factor, double reach)
        : FeatureMap<double>(common->components(), reach), common_(std::move(common)), factor_(factor) {}

    std::size_t columns() const override { return common_->columns(); }
    void make_room(const FeatureMap<double>&) override {}  // `Common::append` adds the columns, once for all maps

protected:
    void project(const Rows<double>& X, Workspace<double>&, double* q, std::size_t stride) const override {
        common_->project(X, factor_, q, stride);
    }
    std::size_t padded() const override { return common_->padded(); }

private:
    std::shared_ptr<const Common> common_;
    double factor_;
};

// Products of diagonal, permutation and Hadamard matrices: Fastfood, structured Orthogonal. In each stage every
// block is permuted, multiplied and transformed; at last comes `scale`. Tables are (stages * blocks, size).
template <class T>
class Structured final : public FeatureMap<T> {
public:
    Structured(const TablePointer& orders, const TablePointer& diagonals, const TablePointer& scale,
               std::size_t components, std::size_t columns, double reach)
        : FeatureMap<T>(components, reach),
          columns_(columns),
          blocks_(scale->rows),
          size_(scale->columns),
          orders_(orders->values.begin(), orders->values.end()),
          diagonals_(diagonals->values.begin(), diagonals->values.end()),
          scale_(scale->values.begin(), scale->values.end()) {}

    std::size_t columns() const override { return columns_; }

protected:
    void project(const Rows<T>& X, Workspace<T>& work, T* q, std::size_t stride) const override {
        work.row.assign(size_, 0);
        work.scattered.assign(size_, 0);
        for (std::size_t i = 0; i < X.n; ++i) {
            const Row<T> x = X[i];
            std::fill(work.scattered.begin(), work.scattered.end(), T(0));
            for (std::size_t e = 0; e < x.count; ++e) work.scattered[x.index ? x.index[e] : e] = x.values[e];
            for (std::size_t block = 0; block < blocks_; ++block) transform(block, work, q + i * stride);
        }
        work.scattered.clear();  // others rely on zeros there
    }
    std::size_t padded() const override { return blocks_ * size_; }

private:
    void transform(std::size_t block, Workspace<T>& work, T* q) const {
        T* out = q + block * size_;
        const T* from = work.scattered.data();
        for (std::size_t stage = 0; stage * blocks_ * size_ < diagonals_.size(); ++stage) {
            const std::size_t at = (stage * blocks_ + block) * size_;
            for (std::size_t i = 0; i < size_; ++i) work.row[i] = from[orders_[at + i]] * diagonals_[at + i];
            std::copy(work.row.begin(), work.row.end(), out);
            simd<T>().hadamard(out, size_);
            from = out;
        }
        for (std::size_t i = 0; i < size_; ++i) out[i] *= scale_[block * size_ + i];
    }

    std::size_t columns_;
    std::size_t blocks_;
    std::size_t size_;
    std::vector<std::uint32_t> orders_;
    std::vector<T> diagonals_;
    std::vector<T> scale_;
};

// Projections on directions stretched by exp(g), one g for each column, which is learned.
template <class T>
class Reparameterized final : public FeatureMap<T> {
public:
    Reparameterized(const TablePointer& directions, double start, double eta, double clip, double reach)
        : FeatureMap<T>(directions->rows, reach),
          matrix_(directions->values, directions->rows, directions->columns),
          log_widths_(directions->columns, start),
          widths_(directions->columns, static_cast<T>(std::exp(start))),
          slope_(directions->columns),
          v_(matrix_.padded()),
          eta_(eta),
          clip_(clip) {}

    std::size_t columns() const override { return matrix_.columns(); }
    bool adapts() const override { return eta_ > 0; }

    void adapt(Row<T> x, const T* z, const T* dz) override {
        if (!adapts()) return;
        const std::size_t D = this->components_;
        for (std::size_t i = 0; i < D; ++i) v_[i] = dz[D + i] * z[i] - dz[i] * z[D + i];
        const bool few = x.index && 8 * x.count < columns();
        if (!few) matrix_.multiply_transposed(v_.data(), slope_.data());
        for (std::size_t e = 0; e < x.count; ++e) {
            const std::size_t j = x.index ? static_cast<std::size_t>(x.index[e]) : e;
            const T product = few ? matrix_.column_product(v_.data(), j) : slope_[j];
            const double slope = static_cast<double>(widths_[j]) * x.values[e] * product;
            if (std::isnan(slope) || slope == 0) continue;
            log_widths_[j] = std::clamp(log_widths_[j] - eta_ * slope, -clip_, clip_);
            widths_[j] = static_cast<T>(std::exp(log_widths_[j]));
        }
    }

    void make_room(const FeatureMap<T>& more) override {
        const std::size_t wider = columns() + more.columns();
        matrix_.make_room(wider);
        reserve(log_widths_, wider);
        reserve(widths_, wider);
        reserve(slope_, wider);
    }
    void append(const FeatureMap<T>& more) override {
        FeatureMap<T>::append(more);
        const auto& other = static_cast<const Reparameterized&>(more);
        matrix_.append(other.matrix_);
        log_widths_.insert(log_widths_.end(), other.log_widths_.begin(), other.log_widths_.end());
        widths_.insert(widths_.end(), other.widths_.begin(), other.widths_.end());
        slope_.resize(widths_.size());
    }

    void save(Store& store) const override { store.put("map.log_widths", log_widths_, {log_widths_.size()}); }
    void load(const Store& store) override {
        const std::vector<double> g = store.get<double>("map.log_widths", 1);
        if (g.size() != log_widths_.size()) Store::refuse("map.log_widths", "has the wrong length");
        set(g);
    }

protected:
    void project(const Rows<T>& X, Workspace<T>& work, T* q, std::size_t stride) const override {
        std::vector<T>& stretched = work.filled;
        const std::size_t count = X.indices ? X.starts[X.n] - X.starts[0] : X.n * X.columns;
        stretched.resize(count);
        if (!X.indices) {
            for (std::size_t i = 0; i < X.n; ++i) {
                const T* x = X.values + i * X.columns;
                for (std::size_t j = 0; j < X.columns; ++j) stretched[i * X.columns + j] = x[j] * widths_[j];
            }
            return matrix_.multiply({stretched.data(), nullptr, nullptr, X.n, X.columns}, q, stride);
        }
        const std::int64_t first = X.starts[0];
        for (std::size_t e = 0; e < count; ++e) stretched[e] = X.values[first + e] * widths_[X.indices[first + e]];
        // the rows begin at `first` for everyone else
        matrix_.multiply({stretched.data() - first, X.indices, X.starts, X.n, 0}, q, stride);
    }
    std::size_t padded() const override { return matrix_.padded(); }

private:
    void set(const std::vector<double>& g) {
        for (std::size_t j = 0; j < g.size(); ++j) {
            log_widths_[j] = std::clamp(g[j], -clip_, clip_);
            widths_[j] = static_cast<T>(std::exp(log_widths_[j]));
        }
    }

    Matrix<T> matrix_;
    std::vector<double> log_widths_;
    std::vector<T> widths_;
    std::vector<T> slope_;
    std::vector<T> v_;  // padded with zeros
    double eta_;
    double clip_;
};

}  // namespace onkel
