// Features: f is linear in the features of a map.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/errors.hpp"
#include "hypotheses/base.hpp"
#include "maps.hpp"

namespace onkel {

// f(x) = scale * sum_i coef_i z_i(x). Weights have the type of the examples, so that products with features are as fast
// as that type allows; sums over rounds (for the average) are double.
//
// Unless the map learns, the features of a few examples are computed together.
template <class T>
class Weights final : public ScaledFunction<Weights<T>, T> {
    using Scaled = ScaledFunction<Weights<T>, T>;

public:
    using Scaled::averages;
    using Scaled::cumulative;
    using Scaled::outputs;
    using Scaled::scale;
    using Scaled::shrink;

    Weights(const Map& map, const Run& run)
        : Scaled(run),
          map_(std::get<std::unique_ptr<FeatureMap<T>>>(map.start(run))),
          coef_(run.outputs, AlignedVector<T>(map_->size())),
          base_(averages() ? run.outputs : 0, std::vector<double>(map_->size())),
          dz_(map_->size()),
          z_(1) {}

    std::size_t n() const override { return 0; }
    std::size_t features() const override { return map_->size(); }
    std::size_t columns() const override { return map_->columns(); }

    FunctionTraits traits() const override { return {.unit = true, .idle_without_step = !averages()}; }
    void check(Row<T> x) const override {
        double sums[4] = {};  // four chains of additions, none of which waits for another
        const std::size_t even = x.count - x.count % 4;
        for (std::size_t e = 0; e < even; e += 4) {
            for (std::size_t l = 0; l < 4; ++l) sums[l] += std::abs(static_cast<double>(x.values[e + l]));
        }
        for (std::size_t e = even; e < x.count; ++e) sums[0] += std::abs(static_cast<double>(x.values[e]));
        const double length = sums[0] + sums[1] + sums[2] + sums[3];
        if (!(length < map_->reach())) throw TooLarge("|x_1| + |x_2| + ... =", length, "for random features");
    }
    void check_query(Row<T> x) const override { check(x); }
    double length2(Row<T>) const override { return 1; }

    T* row(const Rows<T>& X, std::size_t i, Workspace<T>& work) override {
        if (i >= block_end_) {
            block_begin_ = i;
            block_end_ = i + std::min(block_rows(), X.n - i);
            const Rows<T> block = X.slice(i, block_end_ - i);
            z_.resize(std::max(z_.size(), block.n * features()));
            map_->features(block, work, z_.data(), features());
        }
        return z_.data() + (i - block_begin_) * features();
    }
    std::size_t block_rows() const override { return map_->adapts() ? 1 : most_rows; }
    void drop_block() override { block_begin_ = block_end_ = 0; }

    // z of one example
    void features_of(Row<T> x, Workspace<T>& work, T* z) const {
        work.starts[0] = 0;
        work.starts[1] = static_cast<std::int64_t>(x.count);
        map_->features({x.values, x.index, x.index ? work.starts : nullptr, 1, x.count}, work, z, features());
    }

    double inner_score(const T* z, std::size_t output) const {
        return simd<T>().inner(coef_[output].data(), z, features());
    }
    void scores(const T* z, double* s) const override {
        for (std::size_t o = 0; o < outputs; ++o) s[o] = scale * inner_score(z, o);
    }
    void average_scores(Row<T>, const T* z, double t, Workspace<T>&, double* s) const override {
        for (std::size_t o = 0; o < outputs; ++o) {
            const double sum = this->total() * inner_score(z, o) + simd<T>().dot(base_[o].data(), z, features());
            s[o] = sum / (t + 1);
        }
    }
    void predict(const Rows<T>& X, bool averaged, double t, double* out) const override {
        static thread_local Workspace<T> work;
        static thread_local AlignedVector<T> z;
        z.resize(std::max(z.size(), std::min(most_rows, X.n) * features()));
        for (std::size_t i = 0; i < X.n; i += most_rows) {
            const Rows<T> part = X.slice(i, std::min(most_rows, X.n - i));
            map_->features(part, work, z.data(), features());
            for (std::size_t q = 0; q < part.n; ++q) {
                const T* zq = z.data() + q * features();
                double* s = out + (i + q) * outputs;
                averaged ? average_scores(part[q], zq, t, work, s) : scores(zq, s);
            }
        }
    }

    bool empty() const { return false; }
    void check_coefficients(double factor) const { this->check_each(coef_, factor, refuse_too_large); }
    void check_step(const double* coef) const override {
        for (std::size_t o = 0; o < outputs; ++o) refuse_too_large(coef[o] / scale);
    }
    void fold() { this->fold_into(coef_, averages() ? &base_ : nullptr); }

    void move(double factor, const Proposal<T>& proposal) override {
        if (proposal.coef && map_->adapts()) adapt(proposal);
        shrink(factor);
        if (proposal.steps) {
            for (std::size_t o = 0; o < outputs; ++o) add_each(o, proposal.steps + o * features());
        } else if (proposal.coef) {
            for (std::size_t o = 0; o < outputs; ++o) add(o, proposal.coef[o], proposal.k);
        }
    }

    // Add c z to the weights of an output, and past * z to their sum over the past rounds (for the average).
    void add(std::size_t output, double c, const T* z, double past = 0) {
        if (c == 0 && past == 0) return;
        const double inner = c / scale;
        simd<T>().add_scaled(coef_[output].data(), static_cast<T>(inner), z, features());
        if (averages()) {
            const double moved = static_cast<double>(static_cast<T>(inner));
            simd<T>().axpy(base_[output].data(), past - cumulative * moved, z, features());
        }
    }

    void make_room(std::size_t, const Map* map) override {
        more_ = std::get<std::unique_ptr<FeatureMap<T>>>(map->start(this->run_));
        map_->make_room(*more_);
    }
    void widen(std::size_t) override {
        map_->append(*more_);
        more_.reset();
    }
    void make_places(std::size_t count) override {
        coef_.make_places(count, features());
        if (averages()) base_.make_places(count, features());
    }
    void join(const Places& at) override {
        coef_.join(at);
        if (averages()) base_.join(at);
        outputs += at.size();
    }

    void save(Store& store) const override {
        store.put("weights.coef", flat(coef_), {features(), outputs});
        store.put("weights.scale", scale);
        if (averages()) {
            store.put("weights.base", flat(base_), {features(), outputs});
            store.put("weights.cumulative", cumulative);
        }
        map_->save(store);
    }

    void load(const Store& store) override {
        fill(store, "weights.coef", coef_);
        scale = store.get<double>("weights.scale");
        if (averages()) {
            fill(store, "weights.base", base_);
            cumulative = store.get<double>("weights.cumulative");
        }
        map_->load(store);
    }

private:
    static constexpr std::size_t most_rows = 16;

    // A weight is a T, whose range may be much smaller than that of a score.
    static void refuse_too_large(double c) {
        if (!(std::abs(c) < (sizeof(T) == sizeof(float) ? 1e30 : 1e150))) {
            throw Diverged("a weight becomes", c);
        }
    }

    void adapt(const Proposal<T>& proposal) {
        std::fill(dz_.begin(), dz_.end(), T(0));
        for (std::size_t o = 0; o < outputs; ++o) {
            const double slope = scale * proposal.round.weight * proposal.round.slope[o];
            if (slope != 0) simd<T>().add_scaled(dz_.data(), static_cast<T>(slope), coef_[o].data(), features());
        }
        map_->adapt(proposal.x, proposal.k, dz_.data());
    }

    void add_each(std::size_t output, const double* steps) {
        for (std::size_t i = 0; i < features(); ++i) {
            const T inner = static_cast<T>(steps[i] / scale);
            coef_[output][i] += inner;
            if (averages()) base_[output][i] -= cumulative * inner;
        }
    }

    // (features, outputs), as Python has it
    template <class Columns>
    auto flat(const Columns& columns) const {
        std::vector<typename Columns::value_type::value_type> values(features() * outputs);
        for (std::size_t i = 0; i < features(); ++i) {
            for (std::size_t o = 0; o < outputs; ++o) values[i * outputs + o] = columns[o][i];
        }
        return values;
    }
    template <class Columns>
    void fill(const Store& store, const std::string& name, Columns& columns) const {
        using Value = typename Columns::value_type::value_type;
        const auto values = store.get<Value>(name, 2);
        if (store.shape(name) != std::vector<std::size_t>{features(), outputs})
            Store::refuse(name, "has the wrong shape");
        for (std::size_t i = 0; i < features(); ++i) {
            for (std::size_t o = 0; o < outputs; ++o) columns[o][i] = values[i * outputs + o];
        }
    }

    std::unique_ptr<FeatureMap<T>> map_;
    std::unique_ptr<FeatureMap<T>> more_;  // from `make_room` to `widen`: the map of the new columns
    PerOutput<AlignedVector<T>> coef_;     // without scale
    PerOutput<std::vector<double>> base_;  // with averages: see ScaledFunction
    std::vector<T> dz_;                    // gradient of the loss with respect to the features

    AlignedVector<T> z_;  // features of the examples block_begin_ .. block_end_ - 1 of those being learned from
    std::size_t block_begin_ = 0;
    std::size_t block_end_ = 0;
};

class Features final : public Hypothesis {
public:
    explicit Features(std::shared_ptr<const Map> map) : map_(std::move(map)) {}
    Started<Function> start(const Run& run) const override;

private:
    std::shared_ptr<const Map> map_;
};

}  // namespace onkel
