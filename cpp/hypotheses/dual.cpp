#include "hypotheses/dual.hpp"

namespace onkel {

Started<Function> Dual::start(const Run& run) const {
    return by_type<Function>(run, [&]<class T>(T) {
        return std::make_unique<TermsAndWeights<T>>(kernel_, *map_, budget_, merge_, insert_always_, run);
    });
}

}  // namespace onkel
