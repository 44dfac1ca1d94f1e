// Scores and labels, like onkel/core/scores.py: which class is predicted, and how far it is ahead of the others. With
// one output y is -1 or +1; with several it is the index of the class.
#pragma once

#include <cstddef>

namespace onkel {

// The index of the class that these scores predict: a single score of 0 or more predicts class 1; of several scores the
// largest wins, the first among equals.
inline std::size_t decided(const double* s, std::size_t outputs) {
    if (outputs == 1) return s[0] >= 0;
    std::size_t best = 0;
    for (std::size_t o = 1; o < outputs; ++o) {
        if (s[o] > s[best]) best = o;
    }
    return best;
}

// The index of the class that y means.
inline std::size_t class_of(double y, std::size_t outputs) {
    return outputs == 1 ? y > 0 : static_cast<std::size_t>(y);
}

// The class other than `label` with the largest score, the first among equals; there must be two outputs or more.
inline std::size_t rival(std::size_t label, const double* s, std::size_t outputs) {
    std::size_t best = label == 0 ? 1 : 0;
    for (std::size_t o = best + 1; o < outputs; ++o) {
        if (o != label && s[o] > s[best]) best = o;
    }
    return best;
}

// How far the score of y is ahead: y s, or s_y less the score of the rival.
inline double margin_of(double y, const double* s, std::size_t outputs) {
    if (outputs == 1) return y * s[0];
    const auto label = static_cast<std::size_t>(y);
    return s[label] - s[rival(label, s, outputs)];
}

// Is y not the label that is predicted? A single score of 0 counts as a mistake for both labels; with `strict_sign`, it
// predicts +1.
inline bool is_mistake(double y, const double* s, std::size_t outputs, bool strict_sign) {
    if (outputs == 1 && !strict_sign) return y * s[0] <= 0;
    return decided(s, outputs) != class_of(y, outputs);
}

}  // namespace onkel
