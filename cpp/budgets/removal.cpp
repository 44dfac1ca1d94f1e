#include "budgets/removal.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/ties.hpp"

namespace onkel {

namespace {

// f <- f * min(1, cap / max_i |coef_i|)
template <class T>
void limit_coefficients(Terms<T>& f, double cap) {
    double largest = 0;
    for (const auto& values : f.coef.values) {
        for (const double c : values) largest = std::max(largest, std::abs(c));
    }
    largest *= std::abs(f.scale);
    if (largest > cap) f.shrink(cap / largest);
}

// q_i = min(1, s * weight_i) with s such that they sum to `total` (water-filling).
std::vector<double> keep_probabilities(const std::vector<double>& weight, double total) {
    std::vector<double> keep(weight.size(), 0);
    std::vector<bool> free(weight.size(), true);
    std::size_t capped = 0;
    while (capped < weight.size()) {
        double mass = 0;
        for (std::size_t i = 0; i < weight.size(); ++i) mass += free[i] ? weight[i] : 0;
        const double remaining = total - static_cast<double>(capped);
        const auto count = static_cast<double>(weight.size() - capped);
        bool over = false;
        for (std::size_t i = 0; i < weight.size(); ++i) {
            if (!free[i]) continue;
            keep[i] = mass <= 0 ? remaining / count : weight[i] * (remaining / mass);
            over |= keep[i] > 1 && mass > 0;
        }
        if (!over) break;
        for (std::size_t i = 0; i < weight.size(); ++i) {
            if (free[i] && keep[i] > 1) {
                keep[i] = 1;
                free[i] = false;
                ++capped;
            }
        }
    }
    return keep;
}

}  // namespace

template <class T>
void Truncate::insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const {
    if (proposal.coef) append(f, proposal);
    if (f.n() == 0) return;
    const std::size_t i = oldest(f.born);
    if (f.born[i] <= proposal.round.t - rounds_) f.remove(i, proposal.work);
}

template <class T>
void Stop::insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const {
    if (f.n() < budget_) append(f, proposal);
}

template <Leaves who>
template <class T>
std::size_t Replace<who>::victim(const Terms<T>& f, [[maybe_unused]] Memory<T>& memory) {
    if constexpr (who == Leaves::random) {
        return memory.random.below(f.n());
    } else {
        return who == Leaves::oldest ? oldest(f.born) : f.smallest();
    }
}

template <Leaves who>
template <class T>
void Replace<who>::insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const {
    const bool over = full(f, proposal, budget_);
    if (over) {
        const auto n = static_cast<double>(f.n());
        const double factor = unbiased_ && n > 1 ? n / (n - 1) : 1;
        f.shrink(factor);
        replace(f, proposal, victim(f, memory));
        if (cap_) limit_coefficients(f, *cap_);
    } else {
        append(f, proposal);
    }
}

template <class T>
void RemoveWeighted::insert(Terms<T>& f, const Proposal<T>& proposal, Draws& memory) const {
    const bool full = f.n() == budget_;
    if (full) {
        std::vector<double> weight(f.n());
        for (std::size_t i = 0; i < f.n(); ++i) weight[i] = std::sqrt(f.squared_norm(i)) * std::sqrt(f.diagonal[i]);
        const std::vector<double> keep = keep_probabilities(weight, static_cast<double>(f.n() - 1));
        double total = 0;
        for (const double q : keep) total += 1 - q;
        const double target = memory.random.uniform() * total;
        std::size_t leaves = 0;
        double running = 1 - keep[0];
        while (running <= target && leaves + 1 < f.n()) running += 1 - keep[++leaves];
        for (std::size_t i = 0; i < f.n(); ++i) {
            if (i == leaves) continue;
            for (std::size_t o = 0; o < f.outputs; ++o) f.change(i, o, f.coef.values[o][i] / keep[i]);
        }
        f.remove(leaves, proposal.work);
    }
    append(f, proposal);
    if (full && cap_) limit_coefficients(f, *cap_);
}

template <class T>
void RemoveSmallest::insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const {
    append(f, proposal);
    if (f.n() > budget_) f.remove(smallest_term(f), proposal.work);
}

Started<RunningBudget> Truncate::start(const Run& run) const { return started(*this, run); }
Started<RunningBudget> Stop::start(const Run& run) const { return started(*this, run); }
Started<RunningBudget> RemoveWeighted::start(const Run& run) const { return started(*this, run); }
Started<RunningBudget> RemoveSmallest::start(const Run& run) const { return started(*this, run); }
template <Leaves who>
Started<RunningBudget> Replace<who>::start(const Run& run) const {
    return started(*this, run);
}

template class Replace<Leaves::random>;
template class Replace<Leaves::oldest>;
template class Replace<Leaves::smallest>;

}  // namespace onkel
