// Run: what a part is told when it begins.
#pragma once

#include <cstddef>
#include <cstdint>

namespace onkel {

enum class Average {
    none,  // no average
    live,  // of past models, restricted to the terms that are still stored
    all,   // of past models, with the terms that were removed
};

// The rows to come, the outputs, and the seed of the random choices.
struct Run {
    std::size_t outputs = 1;
    Average average = Average::none;
    std::uint64_t seed = 0;
    std::size_t columns = 0;
    bool sparse = false;
    bool float32 = false;  // are the rows float, not double?
};

}  // namespace onkel
