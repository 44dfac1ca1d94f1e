// Ties: in exact arithmetic values often are equal, and rounding must not choose among them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace onkel {

inline constexpr double equal_share = 1e-9;  // relative difference up to which values are equal

// The index of the least value; of several that are equal up to rounding, that of the term that entered first. `sizes`
// are the magnitudes of the operands of each value, if the values are differences; or one `size` for all. The
// rule is that of onkel/core/ties.py. The result is always an index: where the least is no number, Diverged is thrown.
std::size_t oldest_of_least(const std::vector<double>& values, std::span<const double> born, double size = 0);
std::size_t oldest_of_least(const std::vector<double>& values, std::span<const double> born,
                            std::span<const double> sizes);

}  // namespace onkel
