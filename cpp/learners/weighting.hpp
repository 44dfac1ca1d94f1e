// How a pool weights its components, and which of them take part in a round. The definition is
// onkel/learners/weighting.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "losses.hpp"

namespace onkel {

// The losses by which components are judged, and the weights that follow from their sums.
class Weighting {
public:
    virtual ~Weighting() = default;

    // The loss in one round of a component with these scores; `slope` is scratch space, one number per output.
    virtual double loss(double y, const double* s, std::size_t outputs, double* slope) const = 0;

    // Computes the weights th of the components, which sum to 1, from their summed losses.
    void weights(const double* losses, std::size_t components, double* th) const {
        const double least = *std::min_element(losses, losses + components);
        double total = 0;
        for (std::size_t j = 0; j < components; ++j) total += th[j] = std::exp(-rate_ * (losses[j] - least));
        for (std::size_t j = 0; j < components; ++j) th[j] /= total;
    }

protected:
    explicit Weighting(double rate) : rate_(rate) {}

private:
    double rate_;  // how much a loss of 1 lowers the logarithm of the weight
};

class ByMistakes final : public Weighting {
public:
    ByMistakes(double discount, bool strict) : Weighting(-std::log(discount)), strict_(strict) {}

    double loss(double y, const double* s, std::size_t outputs, double*) const override {
        if (outputs > 1) return std::max_element(s, s + outputs) - s != static_cast<std::ptrdiff_t>(y);
        return strict_ ? y * s[0] < 0 : y * s[0] <= 0;
    }

private:
    bool strict_;
};

class ByLoss final : public Weighting {
public:
    ByLoss(std::shared_ptr<const Loss> loss, double eta_weights) : Weighting(eta_weights), loss_(std::move(loss)) {}

    double loss(double y, const double* s, std::size_t outputs, double* slope) const override {
        return (*loss_)(y, s, outputs, loss_->threshold(), slope);
    }

private:
    std::shared_ptr<const Loss> loss_;
};

struct Sampling {
    enum class Answer { all, some, one };

    Sampling(bool learn_, const std::string& answer_, bool scale_, double smoothing_)
        : learn(learn_), answer(read(answer_)), scale(scale_), smoothing(smoothing_) {}

    // Computes the probabilities of the components from their weights th.
    void chances(const double* th, std::size_t components, double* p) const {
        const double most = *std::max_element(th, th + components);
        for (std::size_t j = 0; j < components; ++j) p[j] = (1 - smoothing) * th[j] / most + smoothing;
    }

    const bool learn;
    const Answer answer;
    const bool scale;
    const double smoothing;

private:
    static Answer read(const std::string& answer) {
        if (answer == "all") return Answer::all;
        if (answer == "some") return Answer::some;
        if (answer == "one") return Answer::one;
        throw std::invalid_argument("Sampling.answer must be \"all\", \"some\" or \"one\", got " + answer);
    }
};

}  // namespace onkel
