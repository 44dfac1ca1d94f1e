#include "projections.hpp"

#include <algorithm>
#include <cmath>

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
    span_.append(f, offer.x, k, kxx);
    return true;
}

template <class T>
void Spanned::part_with(Expansion<T>& f, std::size_t i, Workspace<T>& work) {
    const std::size_t last = f.n() - 1;
    const double* row = span_.row_of_term(f, i);
    std::vector<double> k(row, row + f.n()), a;
    for (const auto& c : f.coef.values) a.push_back(c[i]);
    const double kxx = f.diagonal[i];
    k[i] = k[last];
    f.remove(i, work);
    span_.remove(f, i);
    d_.resize(last);
    span_.factor.project(k.data(), kxx, d_.data());
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
    if (!offer.coef) return;
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
        span_.append(f, offer.x, k, kxx);
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

template void Project::enter(Expansion<float>&, const Offer<float>&);
template void Project::enter(Expansion<double>&, const Offer<double>&);

}  // namespace onkel
