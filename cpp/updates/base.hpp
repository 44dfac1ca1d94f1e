// Updates: how much to forget, and how far to move along the slope of the loss. The definitions, in array notation, are
// in onkel/updates/.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "core/errors.hpp"
#include "core/part.hpp"

namespace onkel {

// All that is known about the current example, but for the example itself and its kernel row.
struct Round {
    double y = 0;
    double t = 0;
    double kxx = 0;
    const double* s = nullptr;
    double loss = 0;
    const double* slope = nullptr;
    std::size_t outputs = 0;
    double weight = 1;
    double chance = 1;                                      // on top of that of a sampled step
    double room = std::numeric_limits<double>::infinity();  // how many more terms there may be
};

inline double inner(const double* a, const double* b, std::size_t n) {
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) total += a[i] * b[i];
    return total;
}

struct Step {
    double shrink;
    bool moves;  // is there a term? Its coefficients are in `coef`
};

// An update in a learner, with what it remembers there.
template <class T>
class RunningUpdate {
public:
    virtual ~RunningUpdate() = default;
    virtual Step step(const Round& round, double* coef) = 0;
    // Undoes the last `step`, as the round was not learned.
    virtual void take_back() = 0;
    // Where each weight has a step of its own: turns the direction coef z into steps (outputs, features).
    virtual void step_each(const double* coef, const T* z, std::size_t features, std::size_t outputs,
                           double* steps) = 0;
    // The margin or tube of the next round, given the loss's own.
    virtual double threshold(double own) const = 0;
    // New outputs, as in `Function`.
    virtual void make_places(std::size_t count) = 0;
    virtual void join(const Places& at) = 0;
    virtual void save(Store& store) const = 0;
    virtual void load(const Store& store) = 0;
};

struct UpdateTraits {
    bool idle_without_slope = false;  // does it leave all as it is where there is no slope?
    bool per_weight = false;          // does every weight move by a step of its own, told by `step_each`?
};

// Any update with its memory.
template <class Part, class T>
class UpdateWithMemory final : public RunningUpdate<T> {
public:
    UpdateWithMemory(const Part& part, const Run& run) : part_(part), memory_(part_, run), before_(memory_) {}

    Step step(const Round& round, double* coef) override {
        if constexpr (few_numbers) before_ = memory_;
        return part_.step(round, coef, memory_);
    }
    void take_back() override {
        if constexpr (few_numbers) memory_ = before_;
    }
    void step_each(const double* coef, const T* z, std::size_t features, std::size_t outputs, double* steps) override {
        part_.step_each(coef, z, features, outputs, steps, memory_);
    }
    double threshold(double own) const override { return part_.threshold(own, memory_); }
    void make_places(std::size_t count) override { memory_.make_places(count); }
    void join(const Places& at) override { memory_.join(at); }
    void save(Store& store) const override { memory_.save(store); }
    void load(const Store& store) override { memory_.load(store); }

private:
    using Memory = typename Part::Memory;
    // Others change in `step_each` alone, after which a round cannot fail any more.
    static constexpr bool few_numbers = std::is_trivially_copyable_v<Memory>;

    const Part part_;
    Memory memory_;
    Memory before_;
};

// Each update defines `step(round, coef, memory)`; the members below are defaults.
class Update {
public:
    using Memory = PartMemory;

    virtual ~Update() = default;
    virtual Started<RunningUpdate> start(const Run& run) const = 0;
    virtual UpdateTraits traits() const { return {}; }
    template <class T>
    void step_each(const double* /*coef*/, const T* /*z*/, std::size_t /*features*/, std::size_t /*outputs*/,
                   double* /*steps*/, PartMemory&) const {}
    double threshold(double own, const PartMemory&) const { return own; }

protected:
    template <class Part>
    static Started<RunningUpdate> started(const Part& part, const Run& run) {
        return by_type<RunningUpdate>(
            run, [&]<class T>(T) { return std::make_unique<UpdateWithMemory<Part, T>>(part, run); });
    }

    // coef = -length * slope; called before any memory changes, so that a step too far leaves none
    static bool along(const Round& round, double length, double* coef) {
        bool moves = false;
        for (std::size_t o = 0; o < round.outputs; ++o) {
            coef[o] = -length * round.slope[o];
            moves |= coef[o] != 0;
            if (!sane(coef[o])) throw Diverged("the step is", coef[o]);
        }
        return moves;
    }

    static double slope2(const Round& round) { return inner(round.slope, round.slope, round.outputs); }
    // |slope|^2 k(x, x); without `divide` k(x, x) counts as 1
    static double curvature(const Round& round, bool divide = true) { return slope2(round) * (divide ? round.kxx : 1); }
};

// How the steps eta_t decrease from round to round: not at all, as eta / t, or as eta / sqrt(t).
class Schedule {
public:
    explicit Schedule(const std::string& name) : constant_(name == "constant"), linear_(name == "1/t") {}
    // The number that divides a step size in round t: eta / eta_t.
    double slowdown(double t) const { return constant_ ? 1 : linear_ ? t : std::sqrt(t); }
    // Its square.
    double slowdown2(double t) const { return constant_ ? 1 : linear_ ? t * t : t; }

private:
    bool constant_;
    bool linear_;
};

// Updates that keep |f| within a radius, if there is one. They compute |f| from their own steps, which is right only if
// the budget does nothing but append terms.
class Projected : public Update {
public:
    struct Memory : PartMemory {
        Memory(const Projected& update, const Run&) {
            if (update.radius_ < std::numeric_limits<double>::infinity()) norm2 = 0;
        }
        void save(Store& store) const {
            if (norm2) store.put("update.norm2", *norm2);
        }
        void load(const Store& store) {
            if (norm2) norm2 = store.get<double>("update.norm2");
        }

        std::optional<double> norm2;  // with a radius
    };

protected:
    explicit Projected(double radius) : radius_(radius) {}

    // The step scaled so that the new |f| is at most the radius.
    Step projected(Step step, const Round& round, double* coef, Memory& memory) const {
        if (!memory.norm2) return step;
        double norm2 = step.shrink * step.shrink * *memory.norm2;
        if (step.moves) {
            norm2 +=
                2 * step.shrink * inner(coef, round.s, round.outputs) + inner(coef, coef, round.outputs) * round.kxx;
        }
        memory.norm2 = std::min(std::max(norm2, 0.0), radius_ * radius_);
        if (norm2 <= radius_ * radius_) return step;
        const double factor = radius_ / std::sqrt(norm2);
        for (std::size_t o = 0; o < round.outputs; ++o) coef[o] *= factor;
        return {step.shrink * factor, step.moves};
    }

private:
    double radius_;
};

// The memory of updates that set the margin or tube of the next round.
struct Threshold : PartMemory {
    explicit Threshold(double start_at) : value(start_at) {}
    void save(Store& store) const { store.put("update.threshold", value); }
    void load(const Store& store) { value = store.get<double>("update.threshold"); }

    double value;
};

}  // namespace onkel
