// Updates that toss a coin: an example becomes a term with a probability that follows its loss. The definitions are in
// onkel/sampling.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "random.hpp"
#include "updates.hpp"

namespace onkel {

class Sampled : public Update {
public:
    explicit Sampled(double radius) : ball_(radius) {}
    void start(std::uint64_t seed) override { random_ = Random(seed, "sampling"); }
    void save(Store& store) const override {
        store.put("update.random", random_.state);
        ball_.save(store);
    }
    void load(const Store& store) override {
        random_.state = store.get<std::uint64_t>("update.random");
        ball_.load(store);
    }

protected:
    // The size of the slope, in whichever score it is.
    static double size(const Round& round) {
        double largest = 0;
        for (std::size_t o = 0; o < round.outputs; ++o) largest = std::max(largest, std::abs(round.slope[o]));
        return largest;
    }

    Random random_;
    Ball ball_;
};

class SampledPassiveAggressive final : public Sampled {
public:
    SampledPassiveAggressive(double eta, double alpha, double beta, bool divide)
        : Sampled(std::numeric_limits<double>::infinity()), eta_(eta), alpha_(alpha), beta_(beta), divide_(divide) {}

    Step step(const Round& round, double* coef) override {
        const double u = random_.uniform();
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

    Step step(const Round& round, double* coef) override {
        const bool chosen = random_.uniform() < round.chance * round.weight * size(round) / G_;
        bool moves = false;
        for (std::size_t o = 0; o < round.outputs; ++o) {
            const double slope = round.slope[o];
            coef[o] = chosen ? -eta_ * G_ * ((slope > 0) - (slope < 0)) : 0;
            moves |= coef[o] != 0;
            if (!sane(coef[o])) throw Diverged(beyond("the step is ", coef[o]));
        }
        return ball_.project({1, moves}, round, coef);
    }

private:
    double eta_;
    double G_;
};

class SampledLogistic final : public Sampled {
public:
    SampledLogistic(const std::string& variant, double eta, double radius, double c)
        : Sampled(radius), margin_(variant == "margin"), auxiliary_(variant == "auxiliary"), eta_(eta), c_(c) {}

    Step step(const Round& round, double* coef) override {
        const bool chosen = random_.uniform() < round.chance * chance(round.loss, size(round));
        return ball_.project({1, chosen && along(round, eta_ * round.weight, coef)}, round, coef);
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
