// Run: what a part is told when it begins.
#pragma once

#include <cstddef>
#include <cstdint>

namespace onkel {

enum class Average { none, live, all };

// The rows to come, the outputs, and the seed of the random choices.
struct Run {
    std::size_t outputs = 1;
    Average average = Average::none;
    std::uint64_t seed = 0;
    std::size_t columns = 0;
    bool sparse = false;
    bool single = false;  // are the rows float?
};

}  // namespace onkel
