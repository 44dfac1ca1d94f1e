// What a run of a plain twin came to.
#pragma once

#include <cstdint>

struct Counts {
    std::int64_t mistakes = 0;
    std::int64_t steps = 0;
    std::int64_t terms = 0;
    std::int64_t evaluations = 0;  // of the kernel
};
