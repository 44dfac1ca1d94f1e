#include "core/ties.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/errors.hpp"
#include "core/simd.hpp"

namespace onkel {

std::size_t oldest_of_least(const std::vector<double>& values, std::span<const double> born, double size) {
    const double least = simd<double>().minimum(values.data(), values.size());
    const double limit = least + 1e-9 * std::max(std::abs(least), size);
    std::size_t best = values.size();
    double entered = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] <= limit && born[i] < entered) {
            entered = born[i];
            best = i;
        }
    }
    if (best == values.size()) throw Diverged("the least cost of a term is", least);  // it is no number
    return best;
}

}  // namespace onkel
