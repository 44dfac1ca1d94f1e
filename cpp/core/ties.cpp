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
    const auto error = [&](std::size_t i) { return sizes.empty() ? 0 : rounding_share * sizes[i]; };
    double limit = std::numeric_limits<double>::infinity();
    if (sizes.empty()) {
        const double least = simd<double>().minimum(values.data(), values.size());
        limit = least + equal_share * std::abs(least);
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        limit = std::min(limit, values[i] + std::max(equal_share * std::abs(values[i]), error(i)));
    }
    std::size_t best = values.size();
    double entered = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] - error(i) <= limit && born[i] < entered) {
            entered = born[i];
            best = i;
        }
    }
    if (best == values.size()) throw Diverged("the least cost of a term is", limit);  // it is no number
    return best;
}

}  // namespace onkel
