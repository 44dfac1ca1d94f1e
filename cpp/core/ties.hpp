// Ties: in exact arithmetic values often are equal, and rounding must not choose among them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace onkel {

// Where the least value is; among those equal up to rounding, the term that entered first. `size` is that of the
// numbers the values are differences of.
std::size_t oldest_of_least(const std::vector<double>& values, std::span<const double> born, double size = 0);

}  // namespace onkel
