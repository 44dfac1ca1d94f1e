#include "budgets/forgetting.hpp"

#include <algorithm>
#include <cmath>

namespace onkel {

template <class T>
void Forget::insert(Terms<T>& f, const Proposal<T>& proposal, Totals& memory) const {
    if (basic_) {
        insert_basic(f, proposal, memory);
        return;
    }
    const bool over = full(f, proposal, budget_);
    append(f, proposal);
    memory.M += 1;
    if (!over) return;
    const std::size_t r = oldest(f.born);
    const std::size_t own = own_output(f, r);
    const T* k = f.row_of(f.basis.row(r, proposal.work), proposal.work);
    const double a = f.scale * f.coef.values[own][r];
    const double fx = f.scale * f.inner_score(k, own);
    const double s = std::abs(a);
    const double mu = absolute_ ? std::abs(fx) : std::copysign(1.0, a) * fx;
    const double phi = factor(s, mu, 15.0 / 32.0 * memory.M - memory.Q);
    memory.Q += (s * phi) * (s * phi) + 2 * s * phi * (1 - phi * mu);
    f.shrink(phi);
    f.remove(r, proposal.work);
}

// The largest phi in (0, 1] with A phi^2 + 2 s phi <= room.
double Forget::factor(double s, double mu, double room) const {
    const double A = s * s - 2 * s * mu;
    if (A + 2 * s <= room) return 1;
    if (A == 0) return room / (2 * s);
    const double root = std::sqrt(std::max(4 * s * s + 4 * A * room, 0.0));
    if (legacy_root_ && A < 0) return (-2 * s - root) / (2 * A);
    return 2 * room / (2 * s + root);
}

template <class T>
void Forget::insert_basic(Terms<T>& f, const Proposal<T>& proposal, Totals& memory) const {
    const auto over = static_cast<double>(budget_ + 1);
    double norm2 = memory.norm2;
    for (std::size_t o = 0; o < f.outputs; ++o) {
        const double c = proposal.coef[o];
        norm2 += 2 * c * f.scale * f.inner_score(proposal.k, o) + c * c * proposal.round.kxx;
    }
    const bool removes = full(f, proposal, budget_);
    append(f, proposal);
    const double limit = norm2 > 0 ? norm_bound(budget_) / std::sqrt(norm2) : 1.0;
    const double phi = std::min(std::pow(over, -1 / (2 * over)), limit);
    f.shrink(phi);
    norm2 *= phi * phi;
    if (removes) {
        const std::size_t r = oldest(f.born);
        const T* k = f.row_of(f.basis.row(r, proposal.work), proposal.work);
        for (std::size_t o = 0; o < f.outputs; ++o) {
            const double a = f.scale * f.coef.values[o][r];
            norm2 += a * a * static_cast<double>(k[r]) - 2 * a * f.scale * f.inner_score(k, o);
        }
        f.remove(r, proposal.work);
    }
    memory.norm2 = std::max(norm2, 0.0);
}

void Forget::Totals::save(Store& store) const {
    if (part.basic_) {
        store.put("budget.norm2", norm2);
    } else {
        store.put("budget.M", M);
        store.put("budget.Q", Q);
    }
}

void Forget::Totals::load(const Store& store, std::size_t) {
    if (part.basic_) {
        norm2 = store.get<double>("budget.norm2");
    } else {
        M = store.get<double>("budget.M");
        Q = store.get<double>("budget.Q");
    }
}

Started<RunningBudget> Forget::start(const Run& run) const { return started(*this, run); }

}  // namespace onkel
