#include "core/ties.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/errors.hpp"
#include "core/simd.hpp"

namespace onkel {

namespace {

constexpr double rounding_share = 1e-14;  // rounding of a difference of two numbers, relative to these

// `size(i)` is the magnitude of the operands of value i.
template <class Size>
std::size_t choose(const std::vector<double>& values, std::span<const double> born, Size size) {
    const auto error = [&](std::size_t i) { return rounding_share * size(i); };
    const auto most = [&](std::size_t i) { return values[i] + std::max(equal_share * std::abs(values[i]), error(i)); };
    const double least = simd<double>().minimum(values.data(), values.size());
    const auto at = static_cast<std::size_t>(std::find(values.begin(), values.end(), least) - values.begin());
    if (at == values.size()) throw Diverged("the least cost of a term is", least);  // it is no number
    const double bound = most(at);                                                  // the limit is this or less
    std::int64_t close = 0;
    for (std::size_t i = 0; i < values.size(); ++i) close += values[i] - error(i) <= bound;
    if (close == 1) return at;
    double limit = bound;
    for (std::size_t i = 0; i < values.size(); ++i) limit = std::min(limit, most(i));
    std::size_t best = at;
    double entered = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] - error(i) <= limit && born[i] < entered) {
            entered = born[i];
            best = i;
        }
    }
    return best;
}

}  // namespace

std::size_t oldest_of_least(const std::vector<double>& values, std::span<const double> born, double size) {
    return choose(values, born, [size](std::size_t) { return size; });
}

std::size_t oldest_of_least(const std::vector<double>& values, std::span<const double> born,
                            std::span<const double> sizes) {
    return choose(values, born, [sizes](std::size_t i) { return sizes[i]; });
}

}  // namespace onkel
