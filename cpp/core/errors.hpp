// Errors of learning. They carry facts; Python makes the messages (core/errors.py).
#pragma once

#include <cmath>
#include <cstddef>
#include <exception>
#include <stdexcept>

namespace onkel {

// In the errors below, `row` is the number of the example; -1 if it is not known where the error is noticed.

// Numbers of the model become too large (see `sane`) or not finite; the learner stays as it was before that round.
struct Diverged : std::exception {
    Diverged(const char* subject, double v, std::ptrdiff_t at = -1) : words(subject), value(v), row(at) {}
    const char* what() const noexcept override { return words; }
    const char* words;  // what became too large, in words that the value completes
    double value;
    std::ptrdiff_t row;
};

// An example whose numbers would overflow; nothing was learned.
struct TooLarge : std::exception {
    TooLarge(const char* subject, double v, const char* purpose) : words(subject), value(v), use(purpose) {}
    const char* what() const noexcept override { return words; }
    const char* words;
    double value;
    const char* use;
    std::ptrdiff_t row = -1;
};

// A row with another number of features than the model has.
struct WrongWidth : std::exception {
    WrongWidth(std::size_t has, std::size_t needs) : got(has), wanted(needs) {}
    const char* what() const noexcept override { return "wrong number of features"; }
    std::size_t got, wanted;
};

// NaN or infinity in a row.
struct NotFinite : std::exception {
    NotFinite(double v, std::size_t at) : value(v), column(at) {}
    const char* what() const noexcept override { return "a number is not finite"; }
    double value;
    std::size_t column;
};

// Another thread is learning with the model, or was when this process was forked; nothing was done.
struct Busy : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Small enough to be squared and added up without overflow.
inline bool sane(double v) { return std::abs(v) < 1e150; }

}  // namespace onkel
