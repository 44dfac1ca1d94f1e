#include "budgets/projection.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "core/errors.hpp"
#include "core/scores.hpp"
#include "core/ties.hpp"
#include "losses.hpp"

namespace onkel {

template <class T>
bool Spanned::Memory<T>::append_or_project(Terms<T>& f, const Proposal<T>& proposal) {
    const double kxx = proposal.round.kxx;
    const double* k = span.row(f, proposal);
    d.resize(f.n());
    if (span.factor.project(k, kxx, d.data()) == 0) {
        for (std::size_t o = 0; o < f.outputs; ++o) f.add(o, proposal.coef[o] / f.scale, d.data());
        return false;
    }
    f.append(proposal.x, proposal.round.t, kxx, proposal.coef, proposal.work);
    span.append(f, proposal.x);
    return true;
}

template <class T>
void Spanned::Memory<T>::remove_and_project(Terms<T>& f, std::size_t i, Workspace<T>& work) {
    std::vector<double> a;
    for (const auto& c : f.coef.values) a.push_back(c[i]);
    f.remove(i, work);
    d.resize(f.n());
    span.remove(f, i, d.data());
    for (std::size_t o = 0; o < f.outputs; ++o) f.add(o, a[o], d.data());
}

template struct Spanned::Memory<float>;
template struct Spanned::Memory<double>;

Project::Project(std::optional<std::size_t> budget, double tolerance, bool squared,
                 const std::optional<std::string>& rule, std::optional<double> U, bool strict_sign)
    : Spanned(false),
      budget_(budget),
      tolerance_(tolerance),
      squared_(squared),
      icml_(rule == "icml"),
      jmlr_(rule == "jmlr"),
      U_(U        ? *U
         : budget ? norm_bound(*budget)
                  : 0),
      strict_sign_(strict_sign) {}

template <class T>
void Project::insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const {
    const double kxx = proposal.round.kxx;
    const double* k = memory.span.row(f, proposal);
    const bool full = budget_ && f.n() == *budget_;
    const Round& round = proposal.round;
    const bool margin = (icml_ || jmlr_) && !is_mistake(round.y, round.s, round.outputs, strict_sign_);
    memory.d.resize(f.n());
    const double distance2 = memory.span.factor.project(k, kxx, memory.d.data());
    double tau = 1;
    if (margin) {
        tau = margin_step(round, distance2);
    } else if (f.n() == 0 || (distance2 > 0 && !near(distance2) && !full)) {
        f.append(proposal.x, proposal.round.t, kxx, proposal.coef, proposal.work);
        memory.span.append(f, proposal.x);
        return;
    }
    for (std::size_t o = 0; o < f.outputs; ++o) f.add(o, tau * proposal.coef[o] / f.scale, memory.d.data());
}

bool Project::near(double distance2) const { return (squared_ ? distance2 : std::sqrt(distance2)) <= tolerance_; }

double Project::margin_step(const Round& round, double distance2) const {
    const double p = round.kxx - distance2;
    const double delta = std::sqrt(distance2);
    if (p <= 0 || round.loss >= 1) return 0;
    if (icml_) {
        const double tau = std::min(round.loss / p, 1.0);
        return 2 * round.loss - tau * p - 2 * U_ * delta >= 0 ? tau : 0;
    }
    if (delta > 0 && tolerance_ == 0) return 0;
    const double spare = round.loss - (delta > 0 ? delta / tolerance_ : 0);
    return spare > 0 ? std::min({round.loss / p, 2 * spare / p, 1.0}) : 0;
}

template <class T>
void ProjectSmallest::insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const {
    if (!memory.append_or_project(f, proposal) || f.n() <= budget_) return;
    memory.remove_and_project(f, smallest_term(f), proposal.work);
}

// ---- Neighbours ----

namespace {

// A kernel value, or 0 if it cannot be told from 0: what is far away is then equally far.
double zero_if_negligible(double k, double diagonal) { return std::abs(k) < 1e-9 * diagonal ? 0 : k; }

}  // namespace

template <class T>
void Neighbours<T>::append(const Terms<T>& f, Row<T> x, const std::vector<double>& k) {
    const std::size_t last = f.n() - 1;
    terms_.append(f, x);
    for (std::size_t i = 0; i < last; ++i) {
        const auto own = static_cast<std::size_t>(nearest_[i]);
        const double value = zero_if_negligible(k[i], f.diagonal[i]);
        if (nearest_[i] != none && f.diagonal[own] - 2 * affinity_[i] <= f.diagonal[last] - 2 * value) continue;
        nearest_[i] = static_cast<std::int64_t>(last);
        affinity_[i] = value;
    }
    nearest_.push_back(none);
    affinity_.push_back(0);
    find_nearest(f, last, k.data());
}

template <class T>
void Neighbours<T>::remove(const Terms<T>& f, std::size_t i) {
    const auto gone = static_cast<std::int64_t>(i), last = static_cast<std::int64_t>(f.n());
    terms_.remove(i);
    nearest_[i] = nearest_.back();
    affinity_[i] = affinity_.back();
    nearest_.pop_back();
    affinity_.pop_back();
    std::vector<std::size_t> orphans;
    for (std::size_t j = 0; j < f.n(); ++j) {
        if (nearest_[j] == gone) {
            orphans.push_back(j);
            nearest_[j] = none;
        } else if (nearest_[j] == last) {
            nearest_[j] = gone;
        }
    }
    // For one far from all others these are equals, if their lengths are too: the oldest is its nearest.
    const auto begin = f.diagonal.begin(), end = f.diagonal.end();
    const bool far = std::any_of(orphans.begin(), orphans.end(), [&](std::size_t j) { return affinity_[j] == 0; });
    const bool equal = far && std::adjacent_find(begin, end, std::not_equal_to<>()) == end;
    const auto oldest = equal ? std::min_element(f.born.begin(), f.born.end()) - f.born.begin() : 0;
    for (const std::size_t j : orphans) {
        if (equal && affinity_[j] == 0 && oldest != static_cast<std::ptrdiff_t>(j)) {
            nearest_[j] = oldest;
        } else {
            find_nearest(f, j, terms_.row_of_term(f, j));
        }
    }
}

// The term nearest to term i in feature space, the oldest among equals.
template <class T>
void Neighbours<T>::find_nearest(const Terms<T>& f, std::size_t i, const double* k) {
    nearest_[i] = none;
    affinity_[i] = 0;
    if (f.n() == 1) return;
    static thread_local std::vector<double> distance2, sizes;
    for (auto* values : {&distance2, &sizes}) values->resize(f.n());
    for (std::size_t j = 0; j < f.n(); ++j) {
        distance2[j] = f.diagonal[j] - 2 * zero_if_negligible(k[j], f.diagonal[j]) + f.diagonal[i];
        sizes[j] = f.diagonal[j] + f.diagonal[i];
    }
    distance2[i] = std::numeric_limits<double>::infinity();
    const std::size_t j = oldest_of_least(distance2, f.born, sizes);
    nearest_[i] = static_cast<std::int64_t>(j);
    affinity_[i] = zero_if_negligible(k[j], f.diagonal[j]);
}

template <class T>
void Neighbours<T>::save(Store& store) const {
    store.put("budget.nearest", nearest_, {nearest_.size()});
    store.put("budget.affinity", affinity_, {affinity_.size()});
}

template <class T>
void Neighbours<T>::load(const Store& store, std::size_t terms) {
    nearest_ = store.get<std::int64_t>("budget.nearest", 1);
    affinity_ = store.get<double>("budget.affinity", 1);
    terms_.load(nearest_.size(), terms);
    const auto n = static_cast<std::int64_t>(nearest_.size());
    bool sound = affinity_.size() == nearest_.size();
    for (const std::int64_t i : nearest_) sound &= i >= none && i < n;
    if (!sound) Store::refuse("budget.nearest", "does not fit");
}

template class Neighbours<float>;
template class Neighbours<double>;

// ---- Refit ----

template <class T>
void Refit::insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const {
    if (projects_) {
        const bool over = full(f, proposal, budget_);
        if (!memory.append_or_project(f, proposal) || !over) return;
        std::vector<double> residual(f.n());
        memory.span.factor.diagonal(residual.data());
        for (double& r : residual) r = 1 / r;
        memory.remove_and_project(f, cheapest(f, residual), proposal.work);
        return;
    }
    if (near_) {
        const double* k = memory.neighbours.row(f, proposal);
        memory.k.assign(k, k + f.n());
    } else {
        memory.k.assign(proposal.k, proposal.k + f.n());
    }
    memory.k.push_back(proposal.round.kxx);
    const bool over = full(f, proposal, budget_);
    f.append(proposal.x, proposal.round.t, proposal.round.kxx, proposal.coef, proposal.work);
    std::size_t leaves = 0;
    try {
        if (over) leaves = plain_ ? dispensable(f, proposal.round, memory.k) : redistribute(f, memory);
    } catch (const Diverged&) {  // the new term leaves again, as the memory does not know it yet
        f.remove(f.n() - 1, proposal.work);
        throw;
    }
    if (near_) memory.neighbours.append(f, proposal.x, memory.k);
    if (!over) return;
    f.remove(leaves, proposal.work);
    if (near_) memory.neighbours.remove(f, leaves);
}

// Who leaves, from the squared residuals of the terms; the last one stays.
template <class T>
std::size_t Refit::cheapest(const Terms<T>& f, const std::vector<double>& residual) {
    static thread_local std::vector<double> cost, sizes;
    for (auto* values : {&cost, &sizes}) values->resize(f.n() - 1);
    for (std::size_t i = 0; i < cost.size(); ++i) {
        const double a2 = f.squared_norm(i);
        cost[i] = a2 * residual[i];
        sizes[i] = a2 * f.diagonal[i];
    }
    return oldest_of_least(cost, f.born, sizes);
}

// Who leaves, after the new term, and perhaps its nearest, got its share.
template <class T>
std::size_t Refit::redistribute(Terms<T>& f, const Memory<T>& memory) const {
    const Neighbours<T>& neighbours = memory.neighbours;
    const std::vector<double>& k = memory.k;
    const std::size_t last = f.n() - 1;
    const double kxx = k[last];
    struct Share {
        double on_new;
        double on_nearest;
        std::size_t nearest;
        double residual;
    };
    const auto alone = [&](std::size_t r) -> Share {
        const double u = k[r] / kxx;
        return {u, 0, last, f.diagonal[r] - k[r] * u};
    };
    const auto share = [&](std::size_t r) -> Share {
        if (!near_ || neighbours.nearest(r) == Neighbours<T>::none) return alone(r);
        const auto n = static_cast<std::size_t>(neighbours.nearest(r));
        const double own = neighbours.affinity(r), knn = f.diagonal[n], kn = k[n];
        const double determinant = kxx * knn - kn * kn;
        if (determinant <= dependence_threshold * kxx * knn) return alone(r);
        const double part = 1 / determinant;
        const double u = (knn * k[r] - kn * own) * part, w = (kxx * own - kn * k[r]) * part;
        // |k(x_r, .) - its projection|^2 as a square: then errors of u and w, which may be large, hardly matter
        return {u, w, n, f.diagonal[r] - u * (2 * k[r] - u * kxx) - w * (2 * own - w * knn - 2 * u * kn)};
    };
    static thread_local std::vector<double> residual;
    residual.resize(last);
    for (std::size_t r = 0; r < last; ++r) residual[r] = std::max(share(r).residual, 0.0);
    const std::size_t leaves = cheapest(f, residual);
    const Share to = share(leaves);
    for (std::size_t o = 0; o < f.outputs; ++o) {
        const auto& c = f.coef.values[o];
        f.change(to.nearest, o, c[to.nearest] + to.on_nearest * c[leaves]);
        f.change(last, o, c[last] + to.on_new * c[leaves]);
    }
    return leaves;
}

// Who can leave as it is: the least |f^r - f|^2 / 2 + C l(f^r).
template <class T>
std::size_t Refit::dispensable(const Terms<T>& f, const Round& round, const std::vector<double>& k) const {
    const std::size_t last = f.n() - 1;
    const Hinge hinge(1, false);
    const double C = C_ * round.weight;
    std::vector<double> objective(last), sizes(last), s(f.outputs), without(f.outputs), slope(f.outputs);
    for (std::size_t o = 0; o < f.outputs; ++o) {
        s[o] = f.scale * simd<double>().dot(f.coef.values[o].data(), k.data(), f.n());
    }
    const double scale2 = f.scale * f.scale, own = scale2 * f.squared_norm(last) * k[last];
    for (std::size_t r = 0; r < last; ++r) {
        double both = 0, largest = 0;
        for (std::size_t o = 0; o < f.outputs; ++o) {
            const double a = f.scale * f.coef.values[o][r];
            both += a * f.scale * f.coef.values[o][last];
            without[o] = s[o] - a * k[r];
            largest = std::max(largest, std::abs(without[o]));
        }
        const double lengths2 = scale2 * f.squared_norm(r) * f.diagonal[r] + own;
        const double loss = hinge(round.y, without.data(), f.outputs, hinge.threshold(), slope.data());
        objective[r] = (lengths2 - 2 * both * k[r]) / 2 + C * loss;
        sizes[r] = lengths2 + (loss > 0 ? C * (1 + largest) : 0);
    }
    return oldest_of_least(objective, f.born, sizes);
}

template <class T>
void Refit::Memory<T>::widen(std::size_t columns) {
    Spanned::Memory<T>::widen(columns);
    neighbours.widen();
}

template <class T>
void Refit::Memory<T>::save(Store& store) const {
    if (part.projects_) Spanned::Memory<T>::save(store);
    if (part.near_) neighbours.save(store);
}

template <class T>
void Refit::Memory<T>::load(const Store& store, std::size_t terms) {
    if (part.projects_) Spanned::Memory<T>::load(store, terms);
    if (part.near_) neighbours.load(store, terms);
}

Started<RunningBudget> Project::start(const Run& run) const { return started(*this, run); }
Started<RunningBudget> ProjectSmallest::start(const Run& run) const { return started(*this, run); }
Started<RunningBudget> Refit::start(const Run& run) const { return started(*this, run); }

}  // namespace onkel
