// Random numbers that are the same in Python and in C++: SplitMix64, one 64-bit state per purpose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace onkel {

class Random {
public:
    Random() = default;

    Random(std::uint64_t seed, std::string_view purpose) : state(mix(seed ^ hash(purpose))) {}

    // A number in [0, 1) with 53 random bits.
    double uniform() {
        state += 0x9E3779B97F4A7C15u;
        return static_cast<double>(mix(state) >> 11) * 0x1p-53;
    }

    // An integer in 0..n-1.
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(uniform() * static_cast<double>(n)); }

    std::uint64_t state = 0;

private:
    static std::uint64_t mix(std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }

    static std::uint64_t hash(std::string_view text) {  // FNV-1a
        std::uint64_t h = 0xCBF29CE484222325u;
        for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
        return h;
    }
};

}  // namespace onkel
