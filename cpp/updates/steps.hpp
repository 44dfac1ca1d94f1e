// Updates whose step follows from the round alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "updates/base.hpp"

namespace onkel {

// The step is the budget's: it is told the direction.
class Defer final : public Update {
public:
    Started<RunningUpdate> start(const Run& run) const override { return started(*this, run); }
    UpdateTraits traits() const override { return {.idle_without_slope = true}; }
    Step step(const Round& round, double* coef, Memory&) const { return {1, along(round, round.weight, coef)}; }
};

class Perceptron final : public Update {
public:
    explicit Perceptron(double eta) : eta_(eta) {}
    Started<RunningUpdate> start(const Run& run) const override { return started(*this, run); }
    UpdateTraits traits() const override { return {.idle_without_slope = true}; }
    Step step(const Round& round, double* coef, Memory&) const { return {1, along(round, eta_ * round.weight, coef)}; }

private:
    double eta_;
};

class Gradient final : public Projected {
public:
    Gradient(double eta, double lam, const std::string& schedule, double radius)
        : Projected(radius), eta_(eta), lam_(lam), schedule_(schedule) {}
    Started<RunningUpdate> start(const Run& run) const override { return started(*this, run); }
    UpdateTraits traits() const override { return {.idle_without_slope = lam_ == 0}; }
    Step step(const Round& round, double* coef, Memory& memory) const {
        const double eta = eta_ / schedule_.slowdown(round.t);
        return projected({1 - eta * lam_, along(round, eta * round.weight, coef)}, round, coef, memory);
    }

private:
    double eta_;
    double lam_;
    Schedule schedule_;
};

class Pegasos final : public Projected {
public:
    Pegasos(double lam, bool project)
        : Projected(project ? 1 / std::sqrt(lam) : std::numeric_limits<double>::infinity()), lam_(lam) {}
    Started<RunningUpdate> start(const Run& run) const override { return started(*this, run); }
    Step step(const Round& round, double* coef, Memory& memory) const {
        const bool moves = along(round, round.weight / (lam_ * round.t), coef);
        return projected({1 - 1 / round.t, moves}, round, coef, memory);
    }

private:
    double lam_;
};

class PassiveAggressive final : public Update {
public:
    PassiveAggressive(const std::string& variant, double C, bool divide)
        : hard_(variant == "hard"), second_(variant == "II"), C_(C), divide_(divide) {}
    Started<RunningUpdate> start(const Run& run) const override { return started(*this, run); }
    UpdateTraits traits() const override { return {.idle_without_slope = true}; }
    Step step(const Round& round, double* coef, Memory&) const {
        const double v = curvature(round, divide_);
        const double C = C_ * round.weight;
        if (v <= 0) return {1, false};
        double tau = second_ ? round.loss / (v + 0.5 / C) : round.loss / v;
        if (!hard_ && !second_) tau = std::min(C, tau);
        return {1, along(round, tau, coef)};
    }

private:
    bool hard_;
    bool second_;
    double C_;
    bool divide_;
};

class Implicit final : public Update {
public:
    struct Memory : Threshold {
        Memory(const Implicit& update, const Run&) : Threshold(1 + update.eta_ * update.lam_) {}
    };

    Implicit(double eta, double lam) : eta_(eta), lam_(lam) {}
    Started<RunningUpdate> start(const Run& run) const override { return started(*this, run); }
    UpdateTraits traits() const override { return {.idle_without_slope = lam_ == 0}; }
    double threshold(double, const Memory& memory) const { return memory.value; }
    Step step(const Round& round, double* coef, Memory&) const {
        const double shrink = 1 / (1 + eta_ * lam_);
        const double v = curvature(round);
        if (v <= 0) return {shrink, false};
        return {shrink, along(round, shrink * std::min(round.loss / v, eta_ * round.weight), coef)};
    }

private:
    double eta_;
    double lam_;
};

}  // namespace onkel
