#include "projections.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "losses.hpp"

namespace onkel {

template <class T>
bool Spanned::join(Expansion<T>& f, const Offer<T>& offer) {
    const double kxx = offer.round.kxx;
    const double* k = span_.row(f, offer);
    d_.resize(f.n());
    if (span_.factor.project(k, kxx, d_.data()) == 0) {
        for (std::size_t o = 0; o < f.outputs; ++o) f.add(o, offer.coef[o] / f.scale, d_.data());
        return false;
    }
    f.append(offer.x, offer.round.t, kxx, offer.coef, offer.work);
    span_.append(f, offer.x);
    return true;
}

template <class T>
void Spanned::part_with(Expansion<T>& f, std::size_t i, Workspace<T>& work) {
    std::vector<double> a;
    for (const auto& c : f.coef.values) a.push_back(c[i]);
    f.remove(i, work);
    d_.resize(f.n());
    span_.remove(f, i, d_.data());
    for (std::size_t o = 0; o < f.outputs; ++o) f.add(o, a[o], d_.data());
}

template bool Spanned::join(Expansion<float>&, const Offer<float>&);
template bool Spanned::join(Expansion<double>&, const Offer<double>&);
template void Spanned::part_with(Expansion<float>&, std::size_t, Workspace<float>&);
template void Spanned::part_with(Expansion<double>&, std::size_t, Workspace<double>&);

Project::Project(std::optional<std::size_t> budget, double tolerance, bool squared,
                 const std::optional<std::string>& rule, std::optional<double> U, bool strict_sign)
    : BudgetFor<Project, Spanned>(false),
      budget_(budget),
      tolerance_(tolerance),
      squared_(squared),
      icml_(rule == "icml"),
      jmlr_(rule == "jmlr"),
      U_(U.value_or(0)),
      strict_sign_(strict_sign) {
    if (!U && budget) {
        const auto more = static_cast<double>(*budget + 1);
        U_ = 0.25 * std::sqrt(more / std::log(more));
    }
}

template <class T>
void Project::enter(Expansion<T>& f, const Offer<T>& offer) {
    const double kxx = offer.round.kxx;
    const double* k = span_.row(f, offer);
    const bool full = budget_ && f.n() == *budget_;
    const bool margin = (icml_ || jmlr_) && !mistaken(offer.round);
    d_.resize(f.n());
    const double distance2 = span_.factor.project(k, kxx, d_.data());
    double tau = 1;
    if (margin) {
        tau = margin_step(offer.round, distance2);
    } else if (f.n() == 0 || (distance2 > 0 && !near(distance2) && !full)) {
        f.append(offer.x, offer.round.t, kxx, offer.coef, offer.work);
        span_.append(f, offer.x);
        return;
    }
    for (std::size_t o = 0; o < f.outputs; ++o) f.add(o, tau * offer.coef[o] / f.scale, d_.data());
}

bool Project::near(double distance2) const { return (squared_ ? distance2 : std::sqrt(distance2)) <= tolerance_; }

bool Project::mistaken(const Round& round) const {
    if (round.outputs == 1) {
        const bool right = strict_sign_ && round.s[0] == 0 && round.y > 0;
        return round.y * round.s[0] <= 0 && !right;
    }
    const auto best = static_cast<std::size_t>(std::max_element(round.s, round.s + round.outputs) - round.s);
    return best != static_cast<std::size_t>(round.y);
}

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
void ProjectSmallest::enter(Expansion<T>& f, const Offer<T>& offer) {
    if (!join(f, offer) || f.n() <= budget_) return;
    std::vector<double> size(f.n());
    for (std::size_t i = 0; i < f.n(); ++i) size[i] = squared_norm(f, i) * f.diagonal[i];
    part_with(f, oldest_of_least(size, f.born), offer.work);
}

// ---- Neighbours ----

namespace {

// A kernel value, or 0 if it cannot be told from it: what is far away is then equally far.
double without_dust(double k, double diagonal) { return std::abs(k) < 1e-9 * diagonal ? 0 : k; }

}  // namespace

template <class T>
void Neighbours::meet(const Expansion<T>& f, Row<T> x, const std::vector<double>& k) {
    const std::size_t last = f.n() - 1;
    terms_.append(f, x);
    for (std::size_t i = 0; i < last; ++i) {
        const auto own = static_cast<std::size_t>(nearest_[i]);
        const double value = without_dust(k[i], f.diagonal[i]);
        if (nearest_[i] != none && f.diagonal[own] - 2 * affinity_[i] <= f.diagonal[last] - 2 * value) continue;
        nearest_[i] = static_cast<std::int64_t>(last);
        affinity_[i] = value;
    }
    nearest_.push_back(none);
    affinity_.push_back(0);
    seek(f, last, k.data());
}

template <class T>
void Neighbours::miss(const Expansion<T>& f, std::size_t i) {
    const auto gone = static_cast<std::int64_t>(i), last = static_cast<std::int64_t>(f.n());
    terms_.remove(i);
    nearest_[i] = nearest_.back();
    affinity_[i] = affinity_.back();
    nearest_.pop_back();
    affinity_.pop_back();
    std::vector<std::size_t> bereft;
    for (std::size_t j = 0; j < f.n(); ++j) {
        if (nearest_[j] == gone) {
            bereft.push_back(j);
        } else if (nearest_[j] == last) {
            nearest_[j] = gone;
        }
    }
    // For one far from all others these are equals, if their lengths are too: the oldest is its nearest.
    const auto begin = f.diagonal.begin(), end = f.diagonal.end();
    const bool far = std::any_of(bereft.begin(), bereft.end(), [&](std::size_t j) { return affinity_[j] == 0; });
    const bool equal = far && std::adjacent_find(begin, end, std::not_equal_to<>()) == end;
    const auto oldest = equal ? std::min_element(f.born.begin(), f.born.end()) - f.born.begin() : 0;
    for (const std::size_t j : bereft) {
        if (equal && affinity_[j] == 0 && oldest != static_cast<std::ptrdiff_t>(j)) {
            nearest_[j] = oldest;
        } else {
            seek(f, j, terms_.row_of_term(f, j));
        }
    }
}

// The least k_jj - 2 k_ij, the oldest among equals.
template <class T>
void Neighbours::seek(const Expansion<T>& f, std::size_t i, const double* k) {
    nearest_[i] = none;
    affinity_[i] = 0;
    if (f.n() == 1) return;
    std::vector<double> distance(f.n());
    for (std::size_t j = 0; j < f.n(); ++j) distance[j] = f.diagonal[j] - 2 * without_dust(k[j], f.diagonal[j]);
    distance[i] = std::numeric_limits<double>::infinity();
    const std::size_t j = oldest_of_least(distance, f.born);
    nearest_[i] = static_cast<std::int64_t>(j);
    affinity_[i] = without_dust(k[j], f.diagonal[j]);
}

void Neighbours::save(Store& store) const {
    store.put("budget.nearest", nearest_, {nearest_.size()});
    store.put("budget.affinity", affinity_, {affinity_.size()});
}

void Neighbours::load(const Store& store) {
    nearest_ = store.get<std::int64_t>("budget.nearest", 1);
    affinity_ = store.get<double>("budget.affinity", 1);
    terms_.load(store, nearest_.size());
    const auto n = static_cast<std::int64_t>(nearest_.size());
    bool sound = affinity_.size() == nearest_.size();
    for (const std::int64_t i : nearest_) sound &= i >= none && i < n;
    if (!sound) Store::refuse("budget.nearest", "does not fit");
}

// ---- Refit ----

template <class T>
void Refit::enter(Expansion<T>& f, const Offer<T>& offer) {
    if (projects_) {
        const bool over = full(f, offer, budget_);
        if (!join(f, offer) || !over) return;
        std::vector<double> residual(f.n());
        span_.factor.diagonal(residual.data());
        for (double& r : residual) r = 1 / r;
        part_with(f, cheapest(f, residual), offer.work);
        return;
    }
    if (near_) {
        const double* k = neighbours_.row(f, offer);
        k_.assign(k, k + f.n());
    } else {
        k_.assign(offer.k, offer.k + f.n());
    }
    k_.push_back(offer.round.kxx);
    const bool over = full(f, offer, budget_);
    f.append(offer.x, offer.round.t, offer.round.kxx, offer.coef, offer.work);
    const std::size_t leaves = !over ? 0 : plain_ ? dispensable(f, offer.round) : hand_over(f);
    if (near_) neighbours_.meet(f, offer.x, k_);
    if (!over) return;
    f.remove(leaves, offer.work);
    if (near_) neighbours_.miss(f, leaves);
}

// Who leaves, from the squared residuals of the terms; the last one stays.
template <class T>
std::size_t Refit::cheapest(const Expansion<T>& f, const std::vector<double>& residual) const {
    std::vector<double> cost(f.n() - 1);
    double size = 0;
    for (std::size_t i = 0; i < cost.size(); ++i) {
        const double a2 = squared_norm(f, i);
        cost[i] = a2 * residual[i];
        size = std::max(size, a2 * f.diagonal[i]);
    }
    return oldest_of_least(cost, f.born, size);
}

// Who leaves, after the new term, and perhaps its nearest, got its share.
template <class T>
std::size_t Refit::hand_over(Expansion<T>& f) {
    const std::size_t last = f.n() - 1;
    const double kxx = k_[last];
    struct Share {
        double on_new;
        double on_nearest;
        std::size_t nearest;
    };
    const auto share = [&](std::size_t r) -> Share {
        const Share alone{k_[r] / kxx, 0, last};
        if (!near_ || neighbours_.nearest(r) == Neighbours::none) return alone;
        const auto n = static_cast<std::size_t>(neighbours_.nearest(r));
        const double own = neighbours_.affinity(r), knn = f.diagonal[n], kn = k_[n];
        const double determinant = kxx * knn - kn * kn;
        if (determinant <= dependent * kxx * knn) return alone;
        return {(knn * k_[r] - kn * own) / determinant, (kxx * own - kn * k_[r]) / determinant, n};
    };
    std::vector<double> residual(last);
    for (std::size_t r = 0; r < last; ++r) {
        const Share to = share(r);
        const double own = to.on_nearest == 0 ? 0 : neighbours_.affinity(r);
        residual[r] = std::max(f.diagonal[r] - k_[r] * to.on_new - own * to.on_nearest, 0.0);
    }
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
std::size_t Refit::dispensable(const Expansion<T>& f, const Round& round) const {
    const std::size_t last = f.n() - 1;
    const Hinge hinge(1, false);
    const double C = C_ * round.weight;
    std::vector<double> objective(last), s(f.outputs), without(f.outputs), slope(f.outputs);
    for (std::size_t o = 0; o < f.outputs; ++o) {
        s[o] = f.scale * simd<double>().dot(f.coef.values[o].data(), k_.data(), f.n());
    }
    const double scale2 = f.scale * f.scale, own = scale2 * squared_norm(f, last) * k_[last];
    for (std::size_t r = 0; r < last; ++r) {
        double both = 0;
        for (std::size_t o = 0; o < f.outputs; ++o) {
            const double a = f.scale * f.coef.values[o][r];
            both += a * f.scale * f.coef.values[o][last];
            without[o] = s[o] - a * k_[r];
        }
        const double length2 = scale2 * squared_norm(f, r) * f.diagonal[r] + own - 2 * both * k_[r];
        objective[r] = length2 / 2 + C * hinge(round.y, without.data(), f.outputs, hinge.threshold(), slope.data());
    }
    return oldest_of_least(objective, f.born, own);
}

void Refit::widen(std::size_t columns) {
    Spanned::widen(columns);
    neighbours_.widen(columns);
}

void Refit::save(Store& store) const {
    if (projects_) Spanned::save(store);
    if (near_) neighbours_.save(store);
}

void Refit::load(const Store& store, std::size_t columns, bool sparse, bool single) {
    if (projects_) Spanned::load(store, columns, sparse, single);
    if (near_) neighbours_.load(store);
}

template void Neighbours::meet(const Expansion<float>&, Row<float>, const std::vector<double>&);
template void Neighbours::meet(const Expansion<double>&, Row<double>, const std::vector<double>&);
template void Neighbours::miss(const Expansion<float>&, std::size_t);
template void Neighbours::miss(const Expansion<double>&, std::size_t);
template void Project::enter(Expansion<float>&, const Offer<float>&);
template void Project::enter(Expansion<double>&, const Offer<double>&);
template void ProjectSmallest::enter(Expansion<float>&, const Offer<float>&);
template void ProjectSmallest::enter(Expansion<double>&, const Offer<double>&);
template void Refit::enter(Expansion<float>&, const Offer<float>&);
template void Refit::enter(Expansion<double>&, const Offer<double>&);

}  // namespace onkel
