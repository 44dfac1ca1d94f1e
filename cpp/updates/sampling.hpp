// Updates that toss a coin: an example becomes a term with a probability that follows its loss. The definitions are in
// onkel/updates/sampling.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "core/random.hpp"
#include "updates/base.hpp"

namespace onkel {

class Sampled : public Projected {
public:
    struct Memory : Projected::Memory {
        Memory(const Sampled& update, const Run& run) : Projected::Memory(update, run), random(run.seed, "sampling") {}
        void save(Store& store) const {
            store.put("update.random", random.state);
            Projected::Memory::save(store);
        }
        void load(const Store& store) {
            random.state = store.get<std::uint64_t>("update.random");
            Projected::Memory::load(store);
        }

        Random random;
    };

protected:
    using Projected::Projected;

    // The size of the slope, in whichever score it is.
    static double size(const Round& round) {
        double largest = 0;
        for (std::size_t o = 0; o < round.outputs; ++o) largest = std::max(largest, std::abs(round.slope[o]));
        return largest;
    }
};

class SampledPassiveAggressive final : public Sampled {
public:
    SampledPassiveAggressive(double eta, double alpha, double beta, bool divide)
        : Sampled(std::numeric_limits<double>::infinity()), eta_(eta), alpha_(alpha), beta_(beta), divide_(divide) {}
    Started<RunningUpdate> start(const Run& run) const override { return started(*this, run); }
    Step step(const Round& round, double* coef, Memory& memory) const {
        const double u = memory.random.uniform();
        const double rho = std::min(alpha_, round.loss) / beta_;
        const double v = curvature(round, divide_);
        if (!(u < rho * round.chance) || v <= 0) return {1, false};
        return {1, along(round, std::min(eta_ * round.weight / rho, round.loss / v), coef)};
    }

private:
    double eta_;
    double alpha_;
    double beta_;
    bool divide_;
};

class SampledGradient final : public Sampled {
public:
    SampledGradient(double eta, double G, double radius) : Sampled(radius), eta_(eta), G_(G) {}
    Started<RunningUpdate> start(const Run& run) const override { return started(*this, run); }
    Step step(const Round& round, double* coef, Memory& memory) const {
        const bool chosen = memory.random.uniform() < round.chance * round.weight * size(round) / G_;
        bool moves = false;
        for (std::size_t o = 0; o < round.outputs; ++o) {
            const double slope = round.slope[o];
            coef[o] = chosen ? -eta_ * G_ * ((slope > 0) - (slope < 0)) : 0;
            moves |= coef[o] != 0;
            if (!sane(coef[o])) throw Diverged("the step is", coef[o]);
        }
        return projected({1, moves}, round, coef, memory);
    }

private:
    double eta_;
    double G_;
};

class SampledLogistic final : public Sampled {
public:
    SampledLogistic(const std::string& variant, double eta, double radius, double c)
        : Sampled(radius), margin_(variant == "margin"), auxiliary_(variant == "auxiliary"), eta_(eta), c_(c) {}
    Started<RunningUpdate> start(const Run& run) const override { return started(*this, run); }
    Step step(const Round& round, double* coef, Memory& memory) const {
        const bool chosen = memory.random.uniform() < round.chance * chance(round.loss, size(round));
        return projected({1, chosen && along(round, eta_ * round.weight, coef)}, round, coef, memory);
    }

private:
    double chance(double loss, double doubt) const {
        if (margin_) return (2 - eta_) / (2 - eta_ + eta_ * (1 - doubt));
        if (auxiliary_) return c_ * doubt / (c_ * doubt + (1 - doubt));
        return doubt > 0 ? (1 - eta_ / 2) * doubt / (loss - eta_ / 2 * (doubt * doubt)) : 0;
    }

    bool margin_;
    bool auxiliary_;
    double eta_;
    double c_;
};

}  // namespace onkel
