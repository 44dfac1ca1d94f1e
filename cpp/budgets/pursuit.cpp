#include "budgets/pursuit.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "core/ties.hpp"

namespace onkel {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class T>
void append(Terms<T>& f, const Proposal<T>& proposal, const double* coef) {
    f.append(proposal.x, proposal.round.t, proposal.round.kxx, coef, proposal.work);
}

// The coefficients of all terms move by step * coef.
template <class T>
void move_all(Terms<T>& f, const std::vector<double>& step, const double* coef) {
    for (std::size_t o = 0; o < f.outputs; ++o) f.add(o, coef[o] / f.scale, step.data());
}

// The places of the `count` least values in ascending order; the oldest first among equals.
std::vector<std::size_t> ranked(std::vector<double> values, std::span<const double> born, std::size_t count) {
    std::vector<std::size_t> order;
    while (order.size() < count) {
        order.push_back(oldest_of_least(values, born));
        values[order.back()] = infinity;
    }
    return order;
}

// k(x_i, x) / sqrt(k(x_i, x_i) k(x, x))
template <class T>
double cosine(const Terms<T>& f, const double* k, double kxx, std::size_t i) {
    return k[i] / std::sqrt(f.diagonal[i] * kxx);
}

// |x_i - x| of the terms, in the space of the inputs
template <class T>
std::vector<double> distances(const Terms<T>& f, const Proposal<T>& proposal) {
    static thread_local std::vector<T> squares;
    squares.resize(f.basis.padded(f.n()));
    Workspace<T>& work = proposal.work;
    work.starts[0] = 0;
    work.starts[1] = static_cast<std::int64_t>(proposal.x.count);
    // as sharp as can be: summed by differences, so that a duplicate is at distance 0
    const Pair pair{PairKind::square, 0, infinity};
    f.basis.sums(pair,
                 {proposal.x.values, proposal.x.index, proposal.x.index ? work.starts : nullptr, 1, proposal.x.count},
                 f.basis.all(), work, squares.data(), 0);
    std::vector<double> away(f.n());
    for (std::size_t i = 0; i < f.n(); ++i) away[i] = std::sqrt(static_cast<double>(squares[i]));
    return away;
}

double least(const std::vector<double>& values) {
    return values.empty() ? infinity : *std::min_element(values.begin(), values.end());
}

// coef / by (coef may be null: zeros), refused where that leaves the range of numbers
std::vector<double> divided(const double* coef, std::size_t outputs, double by) {
    std::vector<double> step(outputs, 0.0);
    for (std::size_t o = 0; coef && o < outputs; ++o) {
        step[o] = coef[o] / by;
        if (!sane(step[o])) throw Diverged("the step is", step[o]);
    }
    return step;
}

}  // namespace

// ---- Compressor ----

template <class T>
std::vector<double> Compressor::costs(const Terms<T>& f, const Memory<T>& memory) {
    std::vector<double> cost(f.n());
    memory.span.factor.diagonal(cost.data());
    for (std::size_t i = 0; i < f.n(); ++i) cost[i] = f.scale * f.scale * f.squared_norm(i) / cost[i];
    return cost;
}

// Gram-Schmidt on the columns of L^-1: with K^-1[Q, Q] = R' R, the coefficients of Q become z = R'^-1 coef.
template <class T>
std::vector<double> Compressor::joint_costs(const Terms<T>& f, const Memory<T>& memory,
                                            const std::vector<std::size_t>& slots) {
    const std::size_t n = f.n();
    std::vector<double> Q(n * slots.size()), z(f.outputs * slots.size()), cost;
    double total = 0;
    for (std::size_t j = 0; j < slots.size(); ++j) {
        double* q = Q.data() + j * n;
        double* own = z.data() + j * f.outputs;
        memory.span.factor.inverse_column(slots[j], q);
        for (std::size_t o = 0; o < f.outputs; ++o) own[o] = f.scale * f.coef.values[o][slots[j]];
        for (std::size_t i = 0; i < j; ++i) {
            const double* before = Q.data() + i * n;
            const double along = simd<double>().dot(before, q, n);
            simd<double>().axpy(q, -along, before, n);
            for (std::size_t o = 0; o < f.outputs; ++o) own[o] -= along * z[i * f.outputs + o];
        }
        const double length = std::sqrt(simd<double>().dot(q, q, n));
        for (std::size_t i = 0; i < n; ++i) q[i] /= length;
        for (std::size_t o = 0; o < f.outputs; ++o) {
            own[o] /= length;
            total += own[o] * own[o];
        }
        cost.push_back(total);
    }
    return cost;
}

template <class T>
void Compressor::remove_together(Terms<T>& f, Memory<T>& memory, std::vector<std::size_t> slots, Workspace<T>& work) {
    std::sort(slots.begin(), slots.end(), std::greater<>());  // the last term takes the place of one that leaves
    for (const std::size_t i : slots) memory.remove_and_project(f, i, work);
}

template <class T>
void Compressor::pursue(Terms<T>& f, Memory<T>& memory, double allowed, Workspace<T>& work) {
    double spent = 0;
    while (f.n()) {
        const std::vector<double> cost = costs(f, memory);
        const std::size_t cheapest = oldest_of_least(cost, f.born);
        spent += cost[cheapest];
        if (spent > allowed) return;
        memory.remove_and_project(f, cheapest, work);
    }
}

// ---- Compress ----

template <class Self>
template <class T, class Remembered>
void Compress<Self>::insert(Terms<T>& f, const Proposal<T>& proposal, Remembered& memory) const {
    if (proposal.coef) memory.append_or_project(f, proposal);
    const double error = error_ / schedule_.slowdown2(proposal.round.t);
    static_cast<const Self&>(*this).compress(f, memory, error * error, proposal.work);
}

template <class T>
void Pursue::compress(Terms<T>& f, Memory<T>& memory, double allowed, Workspace<T>& work) const {
    pursue(f, memory, allowed, work);
}

template <class T>
void PursueTogether::compress(Terms<T>& f, Memory<T>& memory, double allowed, Workspace<T>& work) const {
    const std::vector<double> cost = costs(f, memory);
    std::vector<std::size_t> cheap;
    for (std::size_t i = 0; i < f.n(); ++i) {
        if (cost[i] < allowed) cheap.push_back(i);
    }
    std::sort(cheap.begin(), cheap.end(), [&](std::size_t a, std::size_t b) { return f.born[a] < f.born[b]; });
    std::vector<double> joint = joint_costs(f, memory, cheap);
    if (cheap.size() > 1 && joint.back() > allowed) {
        std::vector<std::size_t> order;  // in which they are put back
        if (memory.random) {
            for (std::vector<std::size_t> left = cheap; !left.empty();) {
                const auto drawn = left.begin() + static_cast<std::ptrdiff_t>(memory.random->below(left.size()));
                order.push_back(*drawn);
                left.erase(drawn);
            }
        } else {
            std::vector<double> negative(f.n(), infinity);
            for (const std::size_t i : cheap) negative[i] = -cost[i];
            order = ranked(negative, f.born, cheap.size());
        }
        cheap.assign(order.rbegin(), order.rend());  // the last to be put back comes first: as many leave as may
        joint = joint_costs(f, memory, cheap);
        const auto fits = std::upper_bound(joint.begin(), joint.end(), allowed) - joint.begin();
        cheap.resize(std::max<std::size_t>(1, static_cast<std::size_t>(fits)));
    }
    remove_together(f, memory, cheap, work);
}

template <class T>
PursueTogether::Memory<T>::Memory(const PursueTogether& budget, const Run& run) : Spanned::Memory<T>(budget, run) {
    if (budget.draws_) random.emplace(run.seed, "put back");
}

template <class T>
void PursueTogether::Memory<T>::save(Store& store) const {
    Spanned::Memory<T>::save(store);
    if (random) store.put("budget.random", random->state);
}

template <class T>
void PursueTogether::Memory<T>::load(const Store& store, std::size_t terms) {
    Spanned::Memory<T>::load(store, terms);
    if (random) random->state = store.get<std::uint64_t>("budget.random");
}

template <class T>
void SelectSubset::compress(Terms<T>& f, Memory<T>& memory, double allowed, Workspace<T>& work) const {
    std::size_t count = std::min(candidates_, f.n());
    std::vector<std::size_t> cheapest = ranked(costs(f, memory), f.born, count);
    const std::vector<double> joint = joint_costs(f, memory, cheapest);
    while (count && joint[count - 1] > allowed) count /= 2;
    cheapest.resize(count);
    remove_together(f, memory, cheapest, work);
}

template <class T>
void InsertRemove::insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const {
    if (proposal.coef) {
        const double kxx = proposal.round.kxx;
        const double* k = memory.span.row(f, proposal);
        memory.d.resize(f.n());
        const double distance2 = memory.span.factor.project(k, kxx, memory.d.data());
        if (inner(proposal.coef, proposal.coef, f.outputs) * distance2 > insert_cost_) {
            append(f, proposal, proposal.coef);
            memory.span.append(f, proposal.x);
        } else {
            move_all(f, memory.d, proposal.coef);
        }
    }
    pursue(f, memory, remove_cost_, proposal.work);
}

// ---- admission ----

template <class T>
void Dissimilarity::insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const {
    const double kxx = proposal.round.kxx;
    const double* k = memory.span.row(f, proposal);
    bool similar = false;
    for (std::size_t i = 0; i < f.n(); ++i) similar |= !(cosine(f, k, kxx, i) < 1 / threshold_);
    if (!similar) {
        memory.append_or_project(f, proposal);
        return;
    }
    memory.d.resize(f.n());
    memory.span.factor.project(k, kxx, memory.d.data());
    move_all(f, memory.d, proposal.coef);
}

template <class T>
void Quantise::insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const {
    const std::vector<double> away = distances(f, proposal);
    if (!(least(away) <= radius_)) {
        append(f, proposal, proposal.coef);
        return;
    }
    const std::size_t nearest = oldest_of_least(away, f.born);
    for (std::size_t o = 0; o < f.outputs; ++o) {
        f.change(nearest, o, f.coef.values[o][nearest] + proposal.coef[o] / f.scale);
    }
}

template <class T>
void Novelty::insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const {
    const Round& round = proposal.round;
    const bool far = least(distances(f, proposal)) > distance_;
    if (far && std::sqrt(inner(round.slope, round.slope, round.outputs)) >= surprise_) {
        append(f, proposal, proposal.coef);
    } else if (moves_all_) {
        move_all(f, {proposal.k, proposal.k + f.n()}, proposal.coef);
    }
}

template <class T>
void Coherence::insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const {
    const double kxx = proposal.round.kxx;
    if (kxx <= 0) return;
    const std::vector<double> k(proposal.k, proposal.k + f.n());
    bool fresh = true;
    for (std::size_t i = 0; i < f.n(); ++i) fresh &= std::abs(cosine(f, k.data(), kxx, i)) <= coherence_;
    const double own = fresh ? kxx : 0;
    std::vector<double> step = divided(proposal.coef, f.outputs, ridge_ + inner(k.data(), k.data(), f.n()) + own * own);
    move_all(f, k, step.data());
    if (!fresh) return;
    for (double& s : step) s *= own;
    append(f, proposal, step.data());
}

template <class T>
void AlmostLinearDependence::insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const {
    const double kxx = proposal.round.kxx;
    const std::size_t n = f.n();
    if (kxx <= 0) return;
    const double* k = memory.span.row(f, proposal);
    std::vector<double> a(n);
    const double distance2 = memory.span.factor.project(k, kxx, a.data());
    if (distance2 > (n ? nu_ : 0) && n != budget_) {
        const std::vector<double> step = divided(proposal.coef, f.outputs, distance2);
        for (double& v : a) v = -v;
        move_all(f, a, step.data());
        append(f, proposal, step.data());
        memory.span.append(f, proposal.x);
        std::vector<double> wider((n + 1) * (n + 1));
        for (std::size_t i = 0; i < n; ++i) {
            std::copy_n(memory.covariance.data() + i * n, n, wider.data() + i * (n + 1));
        }
        wider.back() = 1;
        memory.covariance = std::move(wider);
        return;
    }
    std::vector<double> Ca(n);
    for (std::size_t i = 0; i < n; ++i) Ca[i] = simd<double>().dot(memory.covariance.data() + i * n, a.data(), n);
    const double total = 1 + inner(a.data(), Ca.data(), n);
    memory.d.resize(n);
    memory.span.factor.project(Ca.data(), 0, memory.d.data());
    move_all(f, memory.d, divided(proposal.coef, f.outputs, total).data());
    for (double& v : Ca) v /= std::sqrt(total);
    for (std::size_t i = 0; i < n; ++i) simd<double>().axpy(memory.covariance.data() + i * n, -Ca[i], Ca.data(), n);
}

template <class T>
void AlmostLinearDependence::Memory<T>::save(Store& store) const {
    Spanned::Memory<T>::save(store);
    const std::size_t n = this->span.factor.n();
    store.put("budget.covariance", covariance, {n, n});
}

template <class T>
void AlmostLinearDependence::Memory<T>::load(const Store& store, std::size_t terms) {
    Spanned::Memory<T>::load(store, terms);
    const std::size_t n = this->span.factor.n();
    covariance = store.get<double>("budget.covariance", 2);
    if (store.shape("budget.covariance") != std::vector<std::size_t>{n, n} || covariance.size() != n * n) {
        Store::refuse("budget.covariance", "has the wrong shape");
    }
}

template <class Self>
Started<RunningBudget> Compress<Self>::start(const Run& run) const {
    return started(static_cast<const Self&>(*this), run);
}

template class Compress<Pursue>;
template class Compress<PursueTogether>;
template class Compress<SelectSubset>;

Started<RunningBudget> InsertRemove::start(const Run& run) const { return started(*this, run); }
Started<RunningBudget> Dissimilarity::start(const Run& run) const { return started(*this, run); }
Started<RunningBudget> Quantise::start(const Run& run) const { return started(*this, run); }
Started<RunningBudget> Novelty::start(const Run& run) const { return started(*this, run); }
Started<RunningBudget> Coherence::start(const Run& run) const { return started(*this, run); }
Started<RunningBudget> AlmostLinearDependence::start(const Run& run) const { return started(*this, run); }

}  // namespace onkel
