// Updates that adapt: their steps to the slopes so far, or the margin of the loss.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "updates/base.hpp"

namespace onkel {

class AdaGrad final : public Update {
public:
    struct Memory : PartMemory {
        using PartMemory::PartMemory;
        void save(Store& store) const {
            const std::size_t features = squares.empty() ? 0 : squares[0].size();
            std::vector<double> flat(features * squares.size());
            for (std::size_t o = 0; o < squares.size(); ++o) {
                for (std::size_t i = 0; i < features; ++i) flat[i * squares.size() + o] = squares[o][i];
            }
            store.put("update.squares", std::move(flat), {features, squares.size()});
        }
        void make_places(std::size_t count) {
            if (!squares.empty()) squares.make_places(count, squares[0].size());
        }
        void join(const Places& at) {
            if (!squares.empty()) squares.join(at);
        }
        void load(const Store& store) {
            const std::vector<double> flat = store.get<double>("update.squares", 2);
            const std::size_t features = store.shape("update.squares")[0];
            squares.assign(store.shape("update.squares")[1], std::vector<double>(features));
            for (std::size_t o = 0; o < squares.size(); ++o) {
                for (std::size_t i = 0; i < features; ++i) squares[o][i] = flat[i * squares.size() + o];
            }
        }

        PerOutput<std::vector<double>> squares;
    };

    explicit AdaGrad(double eta) : eta_(eta) {}
    Started<RunningUpdate> start(const Run& run) const override { return started(*this, run); }
    UpdateTraits traits() const override { return {.idle_without_slope = true, .per_weight = true}; }
    Step step(const Round& round, double* coef, Memory&) const { return {1, along(round, round.weight, coef)}; }

    template <class T>
    void step_each(const double* coef, const T* z, std::size_t features, std::size_t outputs, double* steps,
                   Memory& memory) const {
        if (memory.squares.empty()) memory.squares.assign(outputs, std::vector<double>(features));
        if (memory.squares.size() != outputs || memory.squares[0].size() != features) {
            Store::refuse("update.squares", "has the wrong shape");
        }
        for (std::size_t o = 0; o < outputs; ++o) {
            double* squares = memory.squares[o].data();
            double* step = steps + o * features;
            for (std::size_t i = 0; i < features; ++i) {
                const double against = coef[o] * z[i];
                squares[i] += against * against;
                step[i] = eta_ * against / std::sqrt(std::max(squares[i], std::numeric_limits<double>::min()));
            }
        }
    }

private:
    double eta_;
};

// The step is the distance travelled over the root of the squared slopes so far.
class DistanceOverGradient final : public Update {
public:
    struct Memory : PartMemory {
        using PartMemory::PartMemory;
        void save(Store& store) const {
            store.put("update.norm2", norm2);
            store.put("update.farthest", farthest);
            store.put("update.squares", squares);
            store.put("update.rounds", rounds);
        }
        void load(const Store& store) {
            norm2 = store.get<double>("update.norm2");
            farthest = store.get<double>("update.farthest");
            squares = store.get<double>("update.squares");
            rounds = store.get<double>("update.rounds");
        }

        double norm2 = 0;
        double farthest = 0;
        double squares = 0;
        double rounds = 0;
    };

    Started<RunningUpdate> start(const Run& run) const override { return started(*this, run); }
    UpdateTraits traits() const override { return {.idle_without_slope = true}; }
    Step step(const Round& round, double* coef, Memory& memory) const {
        const double slope = round.weight * round.weight * slope2(round);
        if (slope == 0 || round.kxx <= 0) return {1, false};
        const double farthest = std::max(memory.farthest, std::sqrt(std::max(memory.norm2, 0.0)));
        const double squares = memory.squares + slope * round.kxx;
        const double own = round.weight * round.kxx;
        const double rounds = memory.rounds + own * own;
        if (!std::isfinite(squares + rounds)) throw Diverged("the sum of squared slopes is", squares + rounds);
        const double eta = std::max(farthest / std::sqrt(squares), 1 / std::sqrt(rounds));
        const bool moves = along(round, eta * round.weight, coef);
        memory.farthest = farthest;
        memory.squares = squares;
        memory.rounds = rounds;
        memory.norm2 += 2 * inner(coef, round.s, round.outputs) + inner(coef, coef, round.outputs) * round.kxx;
        return {1, moves};
    }
};

class AdaptiveThreshold final : public Update {
public:
    struct Memory : Threshold {
        Memory(const AdaptiveThreshold& update, const Run&) : Threshold(update.start_at_) {}
    };

    AdaptiveThreshold(double eta, double lam, double nu, double start_at, bool margin, bool clamp)
        : eta_(eta), lam_(lam), nu_(nu), start_at_(start_at), margin_(margin), clamp_(clamp) {}
    Started<RunningUpdate> start(const Run& run) const override { return started(*this, run); }
    double threshold(double, const Memory& memory) const { return memory.value; }
    Step step(const Round& round, double* coef, Memory& memory) const {
        const bool moves = along(round, eta_ * round.weight, coef);
        const double error = slope2(round) > 0;
        const double rise = eta_ * round.weight * (nu_ - error);
        memory.value += margin_ ? rise : -rise;
        if (clamp_) memory.value = std::max(0.0, memory.value);
        return {1 - eta_ * lam_, moves};
    }

private:
    double eta_;
    double lam_;
    double nu_;
    double start_at_;
    bool margin_;
    bool clamp_;
};

}  // namespace onkel
