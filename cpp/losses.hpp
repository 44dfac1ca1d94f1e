// Losses: value and slope in the scores. With one output y is -1 or +1 (or a real target); with several it is
// the class index, and the margin is taken against the best rival.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/scores.hpp"

namespace onkel {

class Loss {
public:
    explicit Loss(double threshold = 0) : threshold_(threshold) {}
    virtual ~Loss() = default;

    // l(y, s) with the margin or tube at `threshold`; writes dl/ds.
    virtual double operator()(double y, const double* s, std::size_t outputs, double threshold,
                              double* slope) const = 0;

    // The loss's own margin or tube.
    double threshold() const { return threshold_; }

private:
    double threshold_;
};

struct Tangent {
    double value;
    double slope;
};

// Classification: a function `at_margin` of the margin q.
template <class Self>
class MarginLoss : public Loss {
public:
    using Loss::Loss;

    double operator()(double y, const double* s, std::size_t outputs, double threshold, double* slope) const final {
        const auto at_margin = [this](double q, double margin) {
            return static_cast<const Self*>(this)->at_margin(q, margin);
        };
        if (outputs == 1) {
            const Tangent tangent = at_margin(y * s[0], threshold);
            slope[0] = tangent.slope * y;
            return tangent.value;
        }
        const auto label = static_cast<std::size_t>(y);
        const std::size_t other = rival(label, s, outputs);
        const Tangent tangent = at_margin(s[label] - s[other], threshold);
        std::fill(slope, slope + outputs, 0.0);
        slope[label] = tangent.slope;
        slope[other] = -tangent.slope;
        return tangent.value;
    }
};

class Mistake final : public Loss {
public:
    Mistake(double margin, bool strict_sign) : Loss(margin), strict_sign_(strict_sign) {}

    double operator()(double y, const double* s, std::size_t outputs, double margin, double* slope) const override {
        if (outputs == 1) {
            const bool wrong = strict_sign_ ? is_mistake(y, s, outputs, true) : y * s[0] <= margin;
            slope[0] = wrong ? -y : 0;
            return wrong;
        }
        const auto label = static_cast<std::size_t>(y);
        const std::size_t other = rival(label, s, outputs);
        const bool wrong = is_mistake(y, s, outputs, strict_sign_) || (margin > 0 && s[label] - s[other] <= margin);
        std::fill(slope, slope + outputs, 0.0);
        slope[label] = wrong ? -1 : 0;
        slope[other] = wrong ? 1 : 0;
        return wrong;
    }

private:
    bool strict_sign_;
};

class Hinge final : public MarginLoss<Hinge> {
public:
    Hinge(double margin, bool closed) : MarginLoss(margin), closed_(closed) {}
    Tangent at_margin(double q, double margin) const {
        const bool inside = closed_ ? q <= margin : q < margin;
        return inside ? Tangent{margin - q, -1} : Tangent{0, 0};
    }

private:
    bool closed_;
};

class SquaredHinge final : public MarginLoss<SquaredHinge> {
public:
    explicit SquaredHinge(double margin) : MarginLoss(margin) {}
    Tangent at_margin(double q, double margin) const {
        const double short_of = std::max(0.0, margin - q);
        return {0.5 * short_of * short_of, -short_of};
    }
};

class Logistic final : public MarginLoss<Logistic> {
public:
    Tangent at_margin(double q, double) const {
        const double value = std::max(0.0, -q) + std::log1p(std::exp(-std::abs(q)));
        return {value, -std::exp(-q - value)};
    }
};

class Exponential final : public MarginLoss<Exponential> {
public:
    Tangent at_margin(double q, double) const { return {std::exp(-q), -std::exp(-q)}; }
};

// Regression: a function `at_residual` of the residual r = s - y.
template <class Self>
class ResidualLoss : public Loss {
public:
    using Loss::Loss;

    double operator()(double y, const double* s, std::size_t, double threshold, double* slope) const final {
        const Tangent tangent = static_cast<const Self*>(this)->at_residual(s[0] - y, threshold);
        slope[0] = tangent.slope;
        return tangent.value;
    }

protected:
    static double sign(double r) { return (r > 0) - (r < 0); }
};

class Squared final : public ResidualLoss<Squared> {
public:
    explicit Squared(double epsilon) : ResidualLoss(epsilon) {}
    Tangent at_residual(double r, double epsilon) const {
        return std::abs(r) > epsilon ? Tangent{0.5 * r * r, r} : Tangent{0, 0};
    }
};

class Absolute final : public ResidualLoss<Absolute> {
public:
    Tangent at_residual(double r, double) const { return {std::abs(r), sign(r)}; }
};

class EpsilonInsensitive final : public ResidualLoss<EpsilonInsensitive> {
public:
    explicit EpsilonInsensitive(double epsilon) : ResidualLoss(epsilon) {}
    Tangent at_residual(double r, double epsilon) const {
        return std::abs(r) > epsilon ? Tangent{std::abs(r) - epsilon, sign(r)} : Tangent{0, 0};
    }
};

class Huber final : public ResidualLoss<Huber> {
public:
    explicit Huber(double delta) : delta_(delta) {}
    Tangent at_residual(double r, double) const {
        if (std::abs(r) <= delta_) return {0.5 * r * r, r};
        return {delta_ * (std::abs(r) - 0.5 * delta_), delta_ * sign(r)};
    }

private:
    double delta_;
};

class Quantile final : public ResidualLoss<Quantile> {
public:
    explicit Quantile(double quantile) : quantile_(quantile) {}
    Tangent at_residual(double r, double) const {
        const double weight = r < 0 ? quantile_ : 1 - quantile_;
        return {weight * std::abs(r), weight * sign(r)};
    }

private:
    double quantile_;
};

}  // namespace onkel
