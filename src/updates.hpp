// Updates: how much to forget, and how far to move along the slope of the loss. Their memory is their state.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>

#include "store.hpp"

namespace onkel {

// The model's numbers leave the range of floating point; it keeps what it knew before that round.
struct Diverged : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The sentence for it, with a remedy.
inline std::string beyond(const char* what, double value) {
    char number[32];
    std::snprintf(number, sizeof number, "%g", value);
    return what + std::string(number) + ": the model diverges; use a smaller step, or scale features and targets";
}

// Small enough to be squared and added up without harm.
inline bool sane(double v) { return std::abs(v) < 1e150; }

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

class Update {
public:
    virtual ~Update() = default;
    virtual Step step(const Round& round, double* coef) = 0;
    // The margin or tube of the next round, given the loss's own.
    virtual double threshold(double own) const { return own; }
    virtual void save(Store&) const {}
    virtual void load(const Store&) {}

protected:
    // coef = -length * slope; called before any memory changes, so that a step too far leaves none
    static bool along(const Round& round, double length, double* coef) {
        bool moves = false;
        for (std::size_t o = 0; o < round.outputs; ++o) {
            coef[o] = -length * round.slope[o];
            moves |= coef[o] != 0;
            if (!sane(coef[o])) throw Diverged(beyond("the step is ", coef[o]));
        }
        return moves;
    }

    static double slope2(const Round& round) { return inner(round.slope, round.slope, round.outputs); }
};

class Perceptron final : public Update {
public:
    explicit Perceptron(double eta) : eta_(eta) {}
    Step step(const Round& round, double* coef) override { return {1, along(round, eta_ * round.weight, coef)}; }

private:
    double eta_;
};

// Keeps |f| within a radius, carrying the norm along.
class Ball {
public:
    explicit Ball(double radius) : radius_(radius) {}

    Step project(Step step, const Round& round, double* coef) {
        if (!bounded()) return step;
        double norm2 = step.shrink * step.shrink * norm2_;
        if (step.moves) {
            norm2 +=
                2 * step.shrink * inner(coef, round.s, round.outputs) + inner(coef, coef, round.outputs) * round.kxx;
        }
        norm2_ = std::min(std::max(norm2, 0.0), radius_ * radius_);
        if (norm2 <= radius_ * radius_) return step;
        const double factor = radius_ / std::sqrt(norm2);
        for (std::size_t o = 0; o < round.outputs; ++o) coef[o] *= factor;
        return {step.shrink * factor, step.moves};
    }

    void save(Store& store) const {
        if (bounded()) store.put("update.norm2", norm2_);
    }
    void load(const Store& store) {
        if (bounded()) norm2_ = store.get<double>("update.norm2");
    }

private:
    bool bounded() const { return radius_ < std::numeric_limits<double>::infinity(); }
    double radius_;
    double norm2_ = 0;
};

class Gradient final : public Update {
public:
    Gradient(double eta, double lam, const std::string& schedule, double radius)
        : eta_(eta),
          lam_(lam),
          power_(schedule == "constant" ? 0
                 : schedule == "1/t"    ? 1
                                        : 0.5),
          ball_(radius) {}

    Step step(const Round& round, double* coef) override {
        const double eta = power_ == 0 ? eta_ : power_ == 1 ? eta_ / round.t : eta_ / std::sqrt(round.t);
        return ball_.project({1 - eta * lam_, along(round, eta * round.weight, coef)}, round, coef);
    }
    void save(Store& store) const override { ball_.save(store); }
    void load(const Store& store) override { ball_.load(store); }

private:
    double eta_;
    double lam_;
    double power_;
    Ball ball_;
};

class Pegasos final : public Update {
public:
    Pegasos(double lam, bool project)
        : lam_(lam), ball_(project ? 1 / std::sqrt(lam) : std::numeric_limits<double>::infinity()) {}

    Step step(const Round& round, double* coef) override {
        const bool moves = along(round, round.weight / (lam_ * round.t), coef);
        return ball_.project({1 - 1 / round.t, moves}, round, coef);
    }
    void save(Store& store) const override { ball_.save(store); }
    void load(const Store& store) override { ball_.load(store); }

private:
    double lam_;
    Ball ball_;
};

class PassiveAggressive final : public Update {
public:
    PassiveAggressive(const std::string& variant, double C)
        : hard_(variant == "hard"), second_(variant == "II"), C_(C) {}

    Step step(const Round& round, double* coef) override {
        const double v = slope2(round) * round.kxx;
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
};

class Implicit final : public Update {
public:
    Implicit(double eta, double lam) : eta_(eta), lam_(lam) {}

    Step step(const Round& round, double* coef) override {
        const double shrink = 1 / (1 + eta_ * lam_);
        const double v = slope2(round) * round.kxx;
        if (v <= 0) return {shrink, false};
        return {shrink, along(round, shrink * std::min(round.loss / v, eta_ * round.weight), coef)};
    }
    double threshold(double) const override { return 1 + eta_ * lam_; }
    void save(Store& store) const override { store.put("update.threshold", 1 + eta_ * lam_); }

private:
    double eta_;
    double lam_;
};

class AdaptiveThreshold final : public Update {
public:
    AdaptiveThreshold(double eta, double lam, double nu, double start_at, bool margin, bool clamp)
        : eta_(eta), lam_(lam), nu_(nu), margin_(margin), clamp_(clamp), threshold_(start_at) {}

    Step step(const Round& round, double* coef) override {
        const bool moves = along(round, eta_ * round.weight, coef);
        const double error = slope2(round) > 0;
        const double rise = eta_ * round.weight * (nu_ - error);
        threshold_ += margin_ ? rise : -rise;
        if (clamp_) threshold_ = std::max(0.0, threshold_);
        return {1 - eta_ * lam_, moves};
    }
    double threshold(double) const override { return threshold_; }
    void save(Store& store) const override { store.put("update.threshold", threshold_); }
    void load(const Store& store) override { threshold_ = store.get<double>("update.threshold"); }

private:
    double eta_;
    double lam_;
    double nu_;
    bool margin_;
    bool clamp_;
    double threshold_;
};

}  // namespace onkel
