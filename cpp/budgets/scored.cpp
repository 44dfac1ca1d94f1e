#include "budgets/scored.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "core/scores.hpp"
#include "core/ties.hpp"

namespace onkel {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double sign(double v) { return (v > 0) - (v < 0); }

template <class T>
using Score = typename Basis<T>::Column;

// The label of the example that became term i, in perceptron steps.
template <class T>
double own_label(const Terms<T>& f, std::size_t i) {
    return f.outputs == 1 ? sign(f.coef.values[0][i]) : static_cast<double>(own_output(f, i));
}

// The margin a term's own example keeps if the term leaves, divided by scale. `s` has room for its scores.
template <class T>
double margin_without(const Terms<T>& f, const Score<T>& score, std::size_t i, std::vector<double>& s) {
    for (std::size_t o = 0; o < f.outputs; ++o) s[o] = score.values[o][i] - f.coef.values[o][i] * f.diagonal[i];
    return margin_of(own_label(f, i), s.data(), f.outputs);
}

// The term with the largest such margin; those with `allowed` false stay.
template <class T, class Allowed>
std::size_t victim_by_margin(const Terms<T>& f, Allowed allowed) {
    const Score<T>& score = f.basis["score"];
    std::vector<double> negative(f.n()), s(f.outputs);
    double size = 0;
    for (std::size_t i = 0; i < f.n(); ++i) {
        negative[i] = allowed(i) ? -margin_without(f, score, i, s) : infinity;
        for (const auto& c : f.coef.values) size = std::max(size, std::abs(c[i]) * f.diagonal[i]);
    }
    return oldest_of_least(negative, f.born, size);
}

template <class T>
std::size_t victim_by_margin(const Terms<T>& f) {
    return victim_by_margin(f, [](std::size_t) { return true; });
}

// Remove term i and take its part out of the column `score`.
template <class T>
void forget(Terms<T>& f, std::size_t i, Workspace<T>& work) {
    const T* k = f.row_of(f.basis.row(i, work), work);
    Score<T>& score = f.basis["score"];
    for (std::size_t o = 0; o < f.outputs; ++o) {
        simd<T>().axpy(score.values[o].data(), -f.coef.values[o][i], k, f.n());
    }
    f.remove(i, work);
}

// Add the term and its part to the column `score`; `leaves` is the slot that makes room, or n.
template <class T>
void enter_scored(Terms<T>& f, const Proposal<T>& proposal, std::size_t leaves) {
    if (leaves < f.n()) forget(f, leaves, proposal.work);
    Score<T>& score = f.basis["score"];
    std::vector<double> own(f.outputs);
    for (std::size_t o = 0; o < f.outputs; ++o) {
        const double inner = proposal.coef[o] / f.scale;
        own[o] = f.inner_score(proposal.k, o) + inner * proposal.round.kxx;
        simd<T>().axpy(score.values[o].data(), inner, proposal.k, f.n());
    }
    append(f, proposal);
    for (std::size_t o = 0; o < f.outputs; ++o) score.values[o].back() = own[o];
}

}  // namespace

template <class T>
void RemoveByMargin::insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const {
    enter_scored(f, proposal, f.n() == budget_ ? victim_by_margin(f) : f.n());
    std::vector<double> s(f.outputs);
    while (distil_ && f.n()) {
        const std::size_t leaves = victim_by_margin(f);
        if (f.scale * margin_without(f, f.basis["score"], leaves, s) <= beta_) break;
        forget(f, leaves, proposal.work);
    }
}

template <class T>
void RemoveByEvaluation::insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const {
    if (recent_) {
        if (memory.recent.n() == recent_) memory.recent.remove(oldest(memory.born));
        memory.recent.append(proposal.x);
        memory.born.back() = proposal.round.t;
        memory.y.back() = proposal.round.y;
    }
    if (proposal.coef) enter_scored(f, proposal, f.n() == budget_ ? victim(f, memory, proposal.work) : f.n());
}

template <class T>
std::size_t RemoveByEvaluation::victim(const Terms<T>& f, const Memory<T>& memory, Workspace<T>& work) {
    std::vector<double> mistakes(f.n(), 0);
    std::vector<double> s(f.outputs), without(f.outputs);
    const auto count_mistakes = [&](Row<T> x, double y) {  // does f without term i err on (x, y)?
        const std::size_t label = class_of(y, f.outputs);
        const T* k = f.row_of(x, work);
        for (std::size_t o = 0; o < f.outputs; ++o) s[o] = f.inner_score(k, o);
        for (std::size_t i = 0; i < f.n(); ++i) {
            for (std::size_t o = 0; o < f.outputs; ++o) {
                without[o] = s[o] - f.coef.values[o][i] * static_cast<double>(k[i]);
            }
            mistakes[i] += decided(without.data(), f.outputs) != label;
        }
    };
    for (std::size_t i = 0; i < f.n(); ++i) {
        count_mistakes(f.basis.row(i, work), own_label(f, i));
    }
    const std::unordered_set<double> stored(f.born.begin(), f.born.end());
    for (std::size_t i = 0; i < memory.recent.n(); ++i) {
        if (!stored.count(memory.born[i])) count_mistakes(memory.recent.row(i, work), memory.y[i]);
    }
    const double fewest = *std::min_element(mistakes.begin(), mistakes.end());
    return victim_by_margin(f, [&](std::size_t i) { return mistakes[i] <= fewest; });
}

Started<RunningBudget> RemoveByMargin::start(const Run& run) const { return started(*this, run); }
Started<RunningBudget> RemoveByEvaluation::start(const Run& run) const { return started(*this, run); }

}  // namespace onkel
