// Chooses among the compiled instruction sets; the functions themselves are in cpp/core/simd/.
#include "core/simd.hpp"

#include <cstdlib>
#include <cstring>

namespace onkel {

#define ONKEL_DECLARE(space)           \
    namespace space {                  \
    extern const Simd<float> floats;   \
    extern const Simd<double> doubles; \
    }
ONKEL_DECLARE(plain)
#ifdef ONKEL_X86_64
ONKEL_DECLARE(x86_64_v2)
ONKEL_DECLARE(x86_64_v3)
ONKEL_DECLARE(x86_64_v4)
ONKEL_DECLARE(x86_64_v4_popcnt)
#endif
#undef ONKEL_DECLARE

namespace {

struct Choice {
    const char* name;
    bool supported;
    const Simd<float>* floats;
    const Simd<double>* doubles;
};

Choice choose() {
#ifdef ONKEL_X86_64
    // Features one by one, since older compilers do not know the names of the levels.
    __builtin_cpu_init();
    const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
#endif
    const Choice choices[] = {
#ifdef ONKEL_X86_64
        {"x86-64-v4-popcnt", v4 && __builtin_cpu_supports("avx512vpopcntdq"), &x86_64_v4_popcnt::floats,
         &x86_64_v4_popcnt::doubles},
        {"x86-64-v4", v4, &x86_64_v4::floats, &x86_64_v4::doubles},
        {"x86-64-v3", v3, &x86_64_v3::floats, &x86_64_v3::doubles},
        {"x86-64-v2", v2, &x86_64_v2::floats, &x86_64_v2::doubles},
#endif
        {"plain", true, &plain::floats, &plain::doubles},
    };
    const char* wanted = std::getenv("ONKEL_INSTRUCTIONS");
    const Choice* best = nullptr;
    for (const Choice& choice : choices) {
        if (!choice.supported) continue;
        if (wanted && std::strcmp(wanted, choice.name) == 0) return choice;
        if (!best) best = &choice;
    }
    return *best;
}

const Choice& chosen() {
    static const Choice choice = choose();
    return choice;
}

}  // namespace

template <>
const Simd<float>& simd() {
    return *chosen().floats;
}

template <>
const Simd<double>& simd() {
    return *chosen().doubles;
}

const char* instruction_set() { return chosen().name; }

}  // namespace onkel
