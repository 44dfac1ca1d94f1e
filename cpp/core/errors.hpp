// Errors of learning, and their messages.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace onkel {

// In the errors below, `row` is the number of the example; -1 if it is not known where the error is noticed.

// Numbers of the model become too large (see `sane`) or not finite; the learner stays as it was before that round.
struct Diverged : std::runtime_error {
    explicit Diverged(const std::string& sentence, std::ptrdiff_t at = -1) : std::runtime_error(sentence), row(at) {}
    std::ptrdiff_t row;
};

// An example whose numbers would overflow; nothing was learned.
struct TooLarge : std::runtime_error {
    explicit TooLarge(const std::string& sentence, std::ptrdiff_t at = -1) : std::runtime_error(sentence), row(at) {}
    std::ptrdiff_t row;
};

// Another thread is learning with the model, or was when this process was forked; nothing was done.
struct Busy : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The message of Diverged, with a remedy.
inline std::string beyond(const char* what, double value) {
    char number[32];
    std::snprintf(number, sizeof number, "%g", value);
    return what + std::string(number) + ": the model diverges; use a smaller step, or scale features and targets";
}

// Small enough to be squared and added up without overflow.
inline bool sane(double v) { return std::abs(v) < 1e150; }

}  // namespace onkel
