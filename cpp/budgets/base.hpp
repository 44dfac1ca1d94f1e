// What several budgets use: the test whether the budget is full, and functions that choose a term.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "core/ties.hpp"
#include "hypotheses/terms.hpp"

namespace onkel {

// Is there no room for another term?
template <class T>
bool full(const Terms<T>& f, const Proposal<T>& proposal, std::size_t budget) {
    return f.n() == budget || proposal.round.room <= 0;
}

template <class T>
void append(Terms<T>& f, const Proposal<T>& proposal) {
    f.append(proposal.x, proposal.round.t, proposal.round.kxx, proposal.coef, proposal.work);
}

template <class T>
void replace(Terms<T>& f, const Proposal<T>& proposal, std::size_t leaves) {
    f.replace(leaves, proposal.x, proposal.round.t, proposal.round.kxx, proposal.coef, proposal.work);
}

// The term that entered first.
inline std::size_t oldest(std::span<const double> born) {
    return static_cast<std::size_t>(std::min_element(born.begin(), born.end()) - born.begin());
}

// The slot of the term with the least |coef|^2 k(x, x); the oldest among equals.
template <class T>
std::size_t smallest_term(const Terms<T>& f) {
    std::vector<double> length2(f.n());
    for (std::size_t i = 0; i < f.n(); ++i) length2[i] = f.squared_norm(i) * f.diagonal[i];
    return oldest_of_least(length2, f.born);
}

// U = sqrt((B + 1) / ln(B + 1)) / 4 for the budget B: competitors up to this norm are covered by the Forgetron.
inline double norm_bound(std::size_t budget) {
    const auto more = static_cast<double>(budget + 1);
    return std::sqrt(more / std::log(more)) / 4;
}

// The output a perceptron term was made for: its only one, or the class with the positive entry.
template <class T>
std::size_t own_output(const Terms<T>& f, std::size_t i) {
    std::size_t best = 0;
    for (std::size_t o = 1; o < f.outputs; ++o) {
        if (f.coef.values[o][i] > f.coef.values[best][i]) best = o;
    }
    return best;
}

}  // namespace onkel
