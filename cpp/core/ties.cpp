#include "core/ties.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/errors.hpp"
#include "core/simd.hpp"

namespace onkel {

namespace {

constexpr double rounding_share = 1e-14;  // rounding of a difference of two numbers, relative to these

}  // namespace

std::size_t oldest_of_least(const std::vector<double>& values, std::span<const double> born,
                            std::span<const double> sizes) {
    const double least = simd<double>().minimum(values.data(), values.size());
    const auto at = static_cast<std::size_t>(std::find(values.begin(), values.end(), least) - values.begin());
    const auto error = [&](std::size_t i) { return i < sizes.size() ? rounding_share * sizes[i] : 0; };
    const double limit = least + std::max(equal_share * std::abs(least), error(at));
    std::size_t best = values.size();
    double entered = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] - error(i) <= limit && born[i] < entered) {
            entered = born[i];
            best = i;
        }
    }
    if (best == values.size()) throw Diverged("the least cost of a term is", least);  // it is no number
    return best;
}

}  // namespace onkel
