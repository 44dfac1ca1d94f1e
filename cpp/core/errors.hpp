// Errors of learning, and their messages.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace onkel {

// Errors in a row carry its number, if it is known where they are noticed; else -1.

// The model's numbers leave the range of floating point; it keeps what it knew before that round.
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

// Small enough to be squared and added up without harm.
inline bool sane(double v) { return std::abs(v) < 1e150; }

}  // namespace onkel
