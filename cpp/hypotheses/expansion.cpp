#include "hypotheses/expansion.hpp"

namespace onkel {

template <class T>
void Unlimited::insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const {
    f.append(proposal.x, proposal.round.t, proposal.round.kxx, proposal.coef, proposal.work);
}

Started<RunningBudget> Unlimited::start(const Run& run) const { return started(*this, run); }

Started<Function> Expansion::start(const Run& run) const {
    return by_type<Function>(run, [&]<class T>(T) { return std::make_unique<Terms<T>>(kernel_, *budget_, run); });
}

}  // namespace onkel
