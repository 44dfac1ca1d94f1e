// Updates: how much to forget, and how far to move along the slope of the loss. Their memory is their state.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

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

class Update {
public:
    virtual ~Update() = default;
    virtual void start(std::uint64_t /*seed*/) {}
    virtual Step step(const Round& round, double* coef) = 0;
    // Does it leave all as it is where there is no slope?
    virtual bool rests() const { return false; }
    // Does every weight move by a step of its own? Then `each` turns the direction coef z into steps (outputs,
    // features).
    virtual bool one_by_one() const { return false; }
    virtual void each(const double* /*coef*/, const float* /*z*/, std::size_t /*features*/, std::size_t /*outputs*/,
                      double* /*steps*/) {}
    virtual void each(const double* /*coef*/, const double* /*z*/, std::size_t /*features*/, std::size_t /*outputs*/,
                      double* /*steps*/) {}
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
    // |slope|^2 k(x, x); without `divide` k(x, x) counts as 1
    static double curvature(const Round& round, bool divide = true) { return slope2(round) * (divide ? round.kxx : 1); }
};

class Perceptron final : public Update {
public:
    explicit Perceptron(double eta) : eta_(eta) {}
    Step step(const Round& round, double* coef) override { return {1, along(round, eta_ * round.weight, coef)}; }
    bool rests() const override { return true; }

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
    bool rests() const override { return lam_ == 0; }
    void save(Store& store) const override { ball_.save(store); }
    void load(const Store& store) override { ball_.load(store); }

private:
    double eta_;
    double lam_;
    double power_;
    Ball ball_;
};

class AdaGrad final : public Update {
public:
    explicit AdaGrad(double eta) : eta_(eta) {}

    Step step(const Round& round, double* coef) override { return {1, along(round, round.weight, coef)}; }
    bool rests() const override { return true; }
    bool one_by_one() const override { return true; }
    void each(const double* coef, const float* z, std::size_t features, std::size_t outputs, double* steps) override {
        weigh(coef, z, features, outputs, steps);
    }
    void each(const double* coef, const double* z, std::size_t features, std::size_t outputs, double* steps) override {
        weigh(coef, z, features, outputs, steps);
    }
    void save(Store& store) const override {
        const std::size_t features = squares_.empty() ? 0 : squares_[0].size();
        std::vector<double> flat(features * squares_.size());
        for (std::size_t o = 0; o < squares_.size(); ++o) {
            for (std::size_t i = 0; i < features; ++i) flat[i * squares_.size() + o] = squares_[o][i];
        }
        store.put("update.squares", std::move(flat), {features, squares_.size()});
    }
    void load(const Store& store) override {
        const std::vector<double> flat = store.get<double>("update.squares", 2);
        const std::size_t features = store.shape("update.squares")[0];
        squares_.assign(store.shape("update.squares")[1], std::vector<double>(features));
        for (std::size_t o = 0; o < squares_.size(); ++o) {
            for (std::size_t i = 0; i < features; ++i) squares_[o][i] = flat[i * squares_.size() + o];
        }
    }

private:
    template <class T>
    void weigh(const double* coef, const T* z, std::size_t features, std::size_t outputs, double* steps) {
        if (squares_.empty()) squares_.assign(outputs, std::vector<double>(features));
        if (squares_.size() != outputs || squares_[0].size() != features) {
            Store::refuse("update.squares", "has the wrong shape");
        }
        for (std::size_t o = 0; o < outputs; ++o) {
            double* squares = squares_[o].data();
            double* step = steps + o * features;
            for (std::size_t i = 0; i < features; ++i) {
                const double against = coef[o] * z[i];
                squares[i] += against * against;
                step[i] = eta_ * against / std::sqrt(std::max(squares[i], std::numeric_limits<double>::min()));
            }
        }
    }

    double eta_;
    std::vector<std::vector<double>> squares_;  // one vector per output
};

// The step is the distance travelled over the root of the squared slopes so far.
class DistanceOverGradient final : public Update {
public:
    Step step(const Round& round, double* coef) override {
        const double slope = round.weight * round.weight * slope2(round);
        if (slope == 0 || round.kxx <= 0) return {1, false};
        const double farthest = std::max(farthest_, std::sqrt(std::max(norm2_, 0.0)));
        const double squares = squares_ + slope * round.kxx;
        const double own = round.weight * round.kxx;
        const double rounds = rounds_ + own * own;
        const double eta = std::max(farthest / std::sqrt(squares), 1 / std::sqrt(rounds));
        const bool moves = along(round, eta * round.weight, coef);
        farthest_ = farthest;
        squares_ = squares;
        rounds_ = rounds;
        norm2_ += 2 * inner(coef, round.s, round.outputs) + inner(coef, coef, round.outputs) * round.kxx;
        return {1, moves};
    }
    bool rests() const override { return true; }
    void save(Store& store) const override {
        store.put("update.norm2", norm2_);
        store.put("update.farthest", farthest_);
        store.put("update.squares", squares_);
        store.put("update.rounds", rounds_);
    }
    void load(const Store& store) override {
        norm2_ = store.get<double>("update.norm2");
        farthest_ = store.get<double>("update.farthest");
        squares_ = store.get<double>("update.squares");
        rounds_ = store.get<double>("update.rounds");
    }

private:
    double norm2_ = 0;
    double farthest_ = 0;
    double squares_ = 0;
    double rounds_ = 0;
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
    PassiveAggressive(const std::string& variant, double C, bool divide)
        : hard_(variant == "hard"), second_(variant == "II"), C_(C), divide_(divide) {}

    Step step(const Round& round, double* coef) override {
        const double v = curvature(round, divide_);
        const double C = C_ * round.weight;
        if (v <= 0) return {1, false};
        double tau = second_ ? round.loss / (v + 0.5 / C) : round.loss / v;
        if (!hard_ && !second_) tau = std::min(C, tau);
        return {1, along(round, tau, coef)};
    }
    bool rests() const override { return true; }

private:
    bool hard_;
    bool second_;
    double C_;
    bool divide_;
};

class Implicit final : public Update {
public:
    Implicit(double eta, double lam) : eta_(eta), lam_(lam) {}

    Step step(const Round& round, double* coef) override {
        const double shrink = 1 / (1 + eta_ * lam_);
        const double v = curvature(round);
        if (v <= 0) return {shrink, false};
        return {shrink, along(round, shrink * std::min(round.loss / v, eta_ * round.weight), coef)};
    }
    bool rests() const override { return lam_ == 0; }
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
