#include "budgets.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "linalg.hpp"

namespace onkel {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class T>
void append(Expansion<T>& f, const Offer<T>& offer) {
    f.append(offer.x, offer.round.t, offer.round.kxx, offer.coef, offer.work);
}

template <class T>
void replace(Expansion<T>& f, const Offer<T>& offer, std::size_t leaves) {
    f.replace(leaves, offer.x, offer.round.t, offer.round.kxx, offer.coef, offer.work);
}

std::size_t oldest(std::span<const double> born) {
    return static_cast<std::size_t>(std::min_element(born.begin(), born.end()) - born.begin());
}

// f <- f * min(1, cap / max_i |coef_i|)
template <class T>
void limit_coefficients(Expansion<T>& f, double cap) {
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

// The output a perceptron term was made for: its only one, or the class with the positive entry.
template <class T>
std::size_t own_output(const Expansion<T>& f, std::size_t i) {
    std::size_t best = 0;
    for (std::size_t o = 1; o < f.outputs; ++o) {
        if (f.coef.values[o][i] > f.coef.values[best][i]) best = o;
    }
    return best;
}

double sign(double v) { return (v > 0) - (v < 0); }

// The margin a term's own example keeps if the term leaves, divided by scale.
template <class T>
double margin_without(const Expansion<T>& f, std::size_t i) {
    const auto value = [&](std::size_t o) { return f.score->values[o][i] - f.coef.values[o][i] * f.diagonal[i]; };
    if (f.outputs == 1) return sign(f.coef.values[0][i]) * value(0);
    const std::size_t own = own_output(f, i);
    double best = -infinity;
    for (std::size_t o = 0; o < f.outputs; ++o) {
        if (o != own) best = std::max(best, value(o));
    }
    return value(own) - best;
}

// The term with the largest such margin; those with `allowed` false stay.
template <class T, class Allowed>
std::size_t victim_by_margin(const Expansion<T>& f, Allowed allowed) {
    std::vector<double> negative(f.n());
    double size = 0;
    for (std::size_t i = 0; i < f.n(); ++i) {
        negative[i] = allowed(i) ? -margin_without(f, i) : infinity;
        for (const auto& c : f.coef.values) size = std::max(size, std::abs(c[i]) * f.diagonal[i]);
    }
    return oldest_of_least(negative, f.born, size);
}

template <class T>
std::size_t victim_by_margin(const Expansion<T>& f) {
    return victim_by_margin(f, [](std::size_t) { return true; });
}

// Remove term i and take its part out of the column `score`.
template <class T>
void forget(Expansion<T>& f, std::size_t i, Workspace<T>& work) {
    const T* k = f.row_of(f.basis.row(i, work), work);
    for (std::size_t o = 0; o < f.outputs; ++o) {
        simd<T>().axpy(f.score->values[o].data(), -f.coef.values[o][i], k, f.n());
    }
    f.remove(i, work);
}

// Add the term and its part to the column `score`; `leaves` is the slot that makes room, or n.
template <class T>
void enter_scored(Expansion<T>& f, const Offer<T>& offer, std::size_t leaves) {
    if (leaves < f.n()) forget(f, leaves, offer.work);
    std::vector<double> own(f.outputs);
    for (std::size_t o = 0; o < f.outputs; ++o) {
        const double inner = offer.coef[o] / f.scale;
        own[o] = f.inner_score(offer.k, o) + inner * offer.round.kxx;
        simd<T>().axpy(f.score->values[o].data(), inner, offer.k, f.n());
    }
    append(f, offer);
    for (std::size_t o = 0; o < f.outputs; ++o) f.score->values[o].back() = own[o];
}

}  // namespace

std::size_t oldest_of_least(const std::vector<double>& values, std::span<const double> born, double size) {
    const double least = simd<double>().least(values.data(), values.size());
    const double limit = least + 1e-9 * std::max(std::abs(least), size);
    std::size_t best = values.size();
    double entered = infinity;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] <= limit && born[i] < entered) {
            entered = born[i];
            best = i;
        }
    }
    return best;
}

template <class T>
void Unlimited::enter(Expansion<T>& f, const Offer<T>& offer) {
    append(f, offer);
}

template <class T>
void Truncate::enter(Expansion<T>& f, const Offer<T>& offer) {
    if (offer.coef) append(f, offer);
    if (f.n() == 0) return;
    const std::size_t i = oldest(f.born);
    if (f.born[i] <= offer.round.t - rounds_) f.remove(i, offer.work);
}

template <class T>
void Stop::enter(Expansion<T>& f, const Offer<T>& offer) {
    if (f.n() < budget_) append(f, offer);
}

template <Leaves who>
template <class T>
void Replace<who>::enter(Expansion<T>& f, const Offer<T>& offer) {
    const bool over = full(f, offer, budget_);
    if (over) {
        const auto n = static_cast<double>(f.n());
        const double factor = unbiased_ && n > 1 ? n / (n - 1) : 1;
        f.shrink(factor);
        replace(f, offer,
                who == Leaves::random   ? random_.below(f.n())
                : who == Leaves::oldest ? oldest(f.born)
                                        : smallest(f));
        if (cap_) limit_coefficients(f, *cap_);
    } else {
        append(f, offer);
    }
}

template <class T>
void RemoveWeighted::enter(Expansion<T>& f, const Offer<T>& offer) {
    const bool full = f.n() == budget_;
    if (full) {
        std::vector<double> weight(f.n());
        for (std::size_t i = 0; i < f.n(); ++i) weight[i] = std::sqrt(squared_norm(f, i)) * std::sqrt(f.diagonal[i]);
        const std::vector<double> keep = keep_probabilities(weight, static_cast<double>(f.n() - 1));
        double total = 0;
        for (const double q : keep) total += 1 - q;
        const double aim = random_.uniform() * total;
        std::size_t leaves = 0;
        double running = 1 - keep[0];
        while (running <= aim && leaves + 1 < f.n()) running += 1 - keep[++leaves];
        for (std::size_t i = 0; i < f.n(); ++i) {
            if (i == leaves) continue;
            for (std::size_t o = 0; o < f.outputs; ++o) f.change(i, o, f.coef.values[o][i] / keep[i]);
        }
        f.remove(leaves, offer.work);
    }
    append(f, offer);
    if (full && cap_) limit_coefficients(f, *cap_);
}

template <class T>
void RemoveSmallest::enter(Expansion<T>& f, const Offer<T>& offer) {
    append(f, offer);
    if (f.n() <= budget_) return;
    std::vector<double> size(f.n());
    for (std::size_t i = 0; i < f.n(); ++i) size[i] = squared_norm(f, i) * f.diagonal[i];
    f.remove(oldest_of_least(size, f.born), offer.work);
}

template <class T>
void RemoveByMargin::enter(Expansion<T>& f, const Offer<T>& offer) {
    enter_scored(f, offer, f.n() == budget_ ? victim_by_margin(f) : f.n());
    while (distil_ && f.n()) {
        const std::size_t leaves = victim_by_margin(f);
        if (f.scale * margin_without(f, leaves) <= beta_) break;
        forget(f, leaves, offer.work);
    }
}

template <>
std::unique_ptr<Recent<float>>& RemoveByEvaluation::recent() {
    return recent32_;
}
template <>
std::unique_ptr<Recent<double>>& RemoveByEvaluation::recent() {
    return recent64_;
}

template <class T>
void RemoveByEvaluation::enter(Expansion<T>& f, const Offer<T>& offer) {
    auto& seen = recent<T>();
    if (!seen) seen = std::make_unique<Recent<T>>(f.basis.columns(), f.basis.sparse());
    if (size_) {
        if (seen->basis.n() == size_) seen->basis.remove(oldest(seen->born));
        seen->basis.append(offer.x);
        seen->born.back() = offer.round.t;
        seen->y.back() = offer.round.y;
    }
    if (offer.coef) enter_scored(f, offer, f.n() == budget_ ? victim(f, offer.work) : f.n());
}

template <class T>
std::size_t RemoveByEvaluation::victim(const Expansion<T>& f, Workspace<T>& work) {
    std::vector<double> mistakes(f.n(), 0);
    std::vector<double> s(f.outputs);
    const auto judge = [&](Row<T> x, double y) {  // does f without term i err on (x, y)?
        const T* k = f.row_of(x, work);
        for (std::size_t o = 0; o < f.outputs; ++o) s[o] = f.inner_score(k, o);
        for (std::size_t i = 0; i < f.n(); ++i) {
            if (f.outputs == 1) {
                mistakes[i] += (s[0] - f.coef.values[0][i] * static_cast<double>(k[i]) >= 0) != (y > 0);
                continue;
            }
            std::size_t best = 0;
            double top = -infinity;
            for (std::size_t o = 0; o < f.outputs; ++o) {
                const double v = s[o] - f.coef.values[o][i] * static_cast<double>(k[i]);
                if (v > top) {
                    top = v;
                    best = o;
                }
            }
            mistakes[i] += best != static_cast<std::size_t>(y);
        }
    };
    for (std::size_t i = 0; i < f.n(); ++i) {
        const double label = f.outputs == 1 ? sign(f.coef.values[0][i]) : static_cast<double>(own_output(f, i));
        judge(f.basis.row(i, work), label);
    }
    const std::unordered_set<double> stored(f.born.begin(), f.born.end());
    auto& seen = recent<T>();
    for (std::size_t i = 0; i < seen->basis.n(); ++i) {
        if (!stored.count(seen->born[i])) judge(seen->basis.row(i, work), seen->y[i]);
    }
    const double fewest = *std::min_element(mistakes.begin(), mistakes.end());
    return victim_by_margin(f, [&](std::size_t i) { return mistakes[i] <= fewest; });
}

void RemoveByEvaluation::widen(std::size_t columns) {
    if (recent32_) recent32_->basis.widen(columns);
    if (recent64_) recent64_->basis.widen(columns);
}

void RemoveByEvaluation::save(Store& store) const {
    if (recent32_) recent32_->basis.save(store, "budget.recent");
    if (recent64_) recent64_->basis.save(store, "budget.recent");
}

void RemoveByEvaluation::load(const Store& store, std::size_t columns, bool sparse, bool single) {
    if (!store.has("budget.recent.born")) return;
    if (single) {
        recent32_ = std::make_unique<Recent<float>>(columns, sparse);
        recent32_->basis.load(store, "budget.recent");
    } else {
        recent64_ = std::make_unique<Recent<double>>(columns, sparse);
        recent64_->basis.load(store, "budget.recent");
    }
}

template <class T>
void Forget::enter(Expansion<T>& f, const Offer<T>& offer) {
    if (basic_) {
        enter_basic(f, offer);
        return;
    }
    const bool over = full(f, offer, budget_);
    append(f, offer);
    M_ += 1;
    if (!over) return;
    const std::size_t r = oldest(f.born);
    const std::size_t own = own_output(f, r);
    const T* k = f.row_of(f.basis.row(r, offer.work), offer.work);
    const double a = f.scale * f.coef.values[own][r];
    const double fx = f.scale * f.inner_score(k, own);
    const double s = std::abs(a);
    const double mu = absolute_ ? std::abs(fx) : std::copysign(1.0, a) * fx;
    const double phi = factor(s, mu, 15.0 / 32.0 * M_ - Q_);
    Q_ += (s * phi) * (s * phi) + 2 * s * phi * (1 - phi * mu);
    f.shrink(phi);
    f.remove(r, offer.work);
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
void Forget::enter_basic(Expansion<T>& f, const Offer<T>& offer) {
    const auto over = static_cast<double>(budget_ + 1);
    double norm2 = norm2_;
    for (std::size_t o = 0; o < f.outputs; ++o) {
        const double c = offer.coef[o];
        norm2 += 2 * c * f.scale * f.inner_score(offer.k, o) + c * c * offer.round.kxx;
    }
    const bool removes = full(f, offer, budget_);
    append(f, offer);
    const double bound = std::sqrt(over / std::log(over)) / 4;
    const double phi = std::min(std::pow(over, -1 / (2 * over)), norm2 > 0 ? bound / std::sqrt(norm2) : 1.0);
    f.shrink(phi);
    norm2 *= phi * phi;
    if (removes) {
        const std::size_t r = oldest(f.born);
        const T* k = f.row_of(f.basis.row(r, offer.work), offer.work);
        for (std::size_t o = 0; o < f.outputs; ++o) {
            const double a = f.scale * f.coef.values[o][r];
            norm2 += a * a * static_cast<double>(k[r]) - 2 * a * f.scale * f.inner_score(k, o);
        }
        f.remove(r, offer.work);
    }
    norm2_ = std::max(norm2, 0.0);
}

void Forget::save(Store& store) const {
    if (basic_) {
        store.put("budget.norm2", norm2_);
    } else {
        store.put("budget.M", M_);
        store.put("budget.Q", Q_);
    }
}

void Forget::load(const Store& store, std::size_t, bool, bool) {
    if (basic_) {
        norm2_ = store.get<double>("budget.norm2");
    } else {
        M_ = store.get<double>("budget.M");
        Q_ = store.get<double>("budget.Q");
    }
}

template <class T>
std::size_t smallest(const Expansion<T>& f) {
    std::vector<double> size(f.n());
    for (std::size_t i = 0; i < f.n(); ++i) size[i] = std::sqrt(squared_norm(f, i));
    return oldest_of_least(size, f.born);
}

template <class T>
void Landmarks::enter(Expansion<T>& f, const Offer<T>& offer) {
    if (f.n() < budget_) {
        append(f, offer);
        if (eager_ && f.n() == budget_) become_linear(f);
        return;
    }
    if (transform_.empty()) become_linear(f);
    const T* step = step_along(offer.k);
    for (std::size_t o = 0; o < f.outputs; ++o) f.add(o, offer.coef[o] / f.scale, step);
}

template <class T>
const T* Landmarks::step_along(T* k) {
    auto& matrix = [this]() -> auto& {
        if constexpr (sizeof(T) == sizeof(float)) {
            return single_;
        } else {
            return double_;
        }
    }();
    const std::size_t rank = transform_.size() / budget_;
    if (!matrix) {
        std::vector<double> transposed(transform_.size());
        for (std::size_t r = 0; r < rank; ++r) {
            for (std::size_t i = 0; i < budget_; ++i) transposed[i * rank + r] = transform_[r * budget_ + i];
        }
        matrix = std::make_unique<Matrix<T>>(transposed, budget_, rank);
    }
    static thread_local Vectors<T> z, step;
    z.resize(rank);
    step.resize(matrix->padded());
    std::fill(k + budget_, k + matrix->padded(), T(0));  // up to whole tiles, which may hold anything
    matrix->multiply_transposed(k, z.data());
    matrix->multiply({z.data(), nullptr, nullptr, 1, rank}, step.data(), 0);
    return step.data();
}

template <class T>
void Landmarks::become_linear(Expansion<T>& f) {
    const std::size_t n = budget_;
    const std::vector<double> K = f.kernel_matrix();
    std::vector<double> values, vectors;
    eigen(K, n, values, vectors);
    std::vector<std::size_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
    const double least = (sizeof(T) == sizeof(float) ? 1e-5 : 1e-10) * std::max(values[order[0]], 0.0);
    transform_.clear();
    std::vector<std::vector<double>> projected(f.outputs, std::vector<double>(n, 0.0));
    for (std::size_t r = 0; r < rank_ && values[order[r]] > least; ++r) {
        const double* v = vectors.data() + order[r] * n;
        for (std::size_t i = 0; i < n; ++i) transform_.push_back(v[i] / std::sqrt(values[order[r]]));
        for (std::size_t o = 0; o < f.outputs; ++o) {
            const double along = simd<double>().dot(v, f.coef.values[o].data(), n);
            simd<double>().axpy(projected[o].data(), along, v, n);
        }
    }
    for (std::size_t o = 0; o < f.outputs; ++o) {
        for (std::size_t i = 0; i < n; ++i) f.change(i, o, projected[o][i]);
    }
}

void Landmarks::save(Store& store) const {
    const std::size_t rows = transform_.size() / budget_;
    store.put("budget.transform", transform_, {rows, rows ? budget_ : 0});
}

void Landmarks::load(const Store& store, std::size_t, bool, bool) {
    transform_ = store.get<double>("budget.transform", 2);
    single_.reset();
    double_.reset();
    const std::vector<std::size_t>& shape = store.shape("budget.transform");
    if (!transform_.empty() && (shape[1] != budget_ || shape[0] > rank_)) {
        Store::refuse("budget.transform", "has the wrong shape");
    }
}

template void Unlimited::enter(Expansion<float>&, const Offer<float>&);
template void Unlimited::enter(Expansion<double>&, const Offer<double>&);
template void Truncate::enter(Expansion<float>&, const Offer<float>&);
template void Truncate::enter(Expansion<double>&, const Offer<double>&);
template void Stop::enter(Expansion<float>&, const Offer<float>&);
template void Stop::enter(Expansion<double>&, const Offer<double>&);
template void Landmarks::enter(Expansion<float>&, const Offer<float>&);
template void Landmarks::enter(Expansion<double>&, const Offer<double>&);
template std::size_t smallest(const Expansion<float>&);
template std::size_t smallest(const Expansion<double>&);
template void RemoveRandom::enter(Expansion<float>&, const Offer<float>&);
template void RemoveRandom::enter(Expansion<double>&, const Offer<double>&);
template void RemoveOldest::enter(Expansion<float>&, const Offer<float>&);
template void RemoveOldest::enter(Expansion<double>&, const Offer<double>&);
template void ReplaceSmallest::enter(Expansion<float>&, const Offer<float>&);
template void ReplaceSmallest::enter(Expansion<double>&, const Offer<double>&);
template void RemoveWeighted::enter(Expansion<float>&, const Offer<float>&);
template void RemoveWeighted::enter(Expansion<double>&, const Offer<double>&);
template void RemoveSmallest::enter(Expansion<float>&, const Offer<float>&);
template void RemoveSmallest::enter(Expansion<double>&, const Offer<double>&);
template void RemoveByMargin::enter(Expansion<float>&, const Offer<float>&);
template void RemoveByMargin::enter(Expansion<double>&, const Offer<double>&);
template void RemoveByEvaluation::enter(Expansion<float>&, const Offer<float>&);
template void RemoveByEvaluation::enter(Expansion<double>&, const Offer<double>&);
template void Forget::enter(Expansion<float>&, const Offer<float>&);
template void Forget::enter(Expansion<double>&, const Offer<double>&);

}  // namespace onkel
