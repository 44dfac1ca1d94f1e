#include "hypotheses/features.hpp"

namespace onkel {

Started<Function> Features::start(const Run& run) const {
    return by_type<Function>(run, [&]<class T>(T) { return std::make_unique<Weights<T>>(*map_, run); });
}

}  // namespace onkel
