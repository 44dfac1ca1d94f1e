// Ties: in exact arithmetic values often are equal, and rounding must not choose among them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace onkel {

// The index of the least value; of several that are equal up to rounding, that of the term that entered first. `size`
// is the magnitude of the operands, if the values are differences: it scales the tolerance. The result is an index of
// `values`, always: where the least value is no number, Diverged is thrown.
std::size_t oldest_of_least(const std::vector<double>& values, std::span<const double> born, double size = 0);

}  // namespace onkel
