#include "merging.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace onkel {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t grid = 400;      // nodes of the table, in each direction
constexpr int solver_steps = 100'000;  // most of them in one round; reached where `precision` is below rounding
constexpr double later = 0.5;          // a made row is born after the example of its round

// visit(column, x_j, z_j) for every column in which one of two rows has a value.
template <class T, class Visit>
void walk(Row<T> x, Row<T> z, Visit visit) {
    constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
    const auto column = [](Row<T> row, std::size_t e) {
        return e == row.count ? end : row.index ? row.index[e] : static_cast<std::int64_t>(e);
    };
    for (std::size_t a = 0, b = 0; a < x.count || b < z.count;) {
        const std::int64_t j = column(x, a);
        const std::int64_t l = column(z, b);
        visit(std::min(j, l), j <= l ? static_cast<double>(x.values[a]) : 0,
              l <= j ? static_cast<double>(z.values[b]) : 0);
        a += j <= l;
        b += l <= j;
    }
}

// Terms m and n become one with the coefficients `coef`, at x_n + share * (x_m - x_n).
template <class T>
void join(Expansion<T>& f, std::size_t m, std::size_t n, double share, double t, const double* coef,
          Workspace<T>& work) {
    Workspace<T> other;
    std::vector<T> values;
    std::vector<std::int32_t> index;
    const bool sparse = f.basis.sparse();
    walk(f.basis.row(m, work), f.basis.row(n, other), [&](std::int64_t j, double xj, double zj) {
        const T value = static_cast<T>(zj + share * (xj - zj));
        if (sparse && value == 0) return;
        values.push_back(value);
        if (sparse) index.push_back(static_cast<std::int32_t>(j));
    });
    f.remove(std::max(m, n), work);
    f.remove(std::min(m, n), work);
    const Row<T> z{values.data(), sparse ? index.data() : nullptr, values.size()};
    f.append(z, t + later, f.length2(z), coef, work);
}

template <class T>
double inner_product(const Expansion<T>& f, std::size_t m, std::size_t n) {
    double total = 0;
    for (const auto& c : f.coef.values) total += c[m] * c[n];
    return total;
}

double distance_of(double kappa) {
    return -std::log(std::min(std::max(kappa, std::numeric_limits<double>::min()), 1.0));
}

// The h of the largest |a_z| for `count` pairs, to 2^-steps / 4; r has room for as many numbers.
void best_share(double mm, const double* nn, const double* mn, const double* distance, std::size_t count, int steps,
                double* h, double* r) {
    std::fill(h, h + count, 0.25);
    double width = 0.125;
    for (int step = 0; step < steps; ++step, width /= 2) {
        for (std::size_t i = 0; i < count; ++i) r[i] = distance[i] * (1 - 2 * h[i]);
        simd<double>().decay(r, count, 1, 0, 1.0);
        for (std::size_t i = 0; i < count; ++i) {
            const double slope = (1 - h[i]) * mm * r[i] * r[i] + (1 - 2 * h[i]) * mn[i] * r[i] - h[i] * nn[i];
            h[i] += slope > 0 ? width : -width;
        }
    }
}

double degradation(double mm, double nn, double mn, double kappa, double u, double v) {
    return std::max(mm + nn + 2 * kappa * mn - (mm * u * u + nn * v * v + 2 * mn * u * v), 0.0);
}

// Where the largest value is; of those equal up to rounding the first.
std::size_t first_of_largest(const std::vector<double>& values, double slack) {
    const double limit = *std::max_element(values.begin(), values.end()) - slack;
    return static_cast<std::size_t>(
        std::find_if(values.begin(), values.end(), [=](double value) { return value >= limit; }) - values.begin());
}

// WD at a_m + a_n = 1, row by row for a_m in [0, 1/2], along kappa in [0, 1]; made once.
const std::vector<double>& table() {
    static const std::vector<double> made = [] {
        std::vector<double> wd(grid * grid), kappa(grid), distance(grid), nn(grid), mn(grid), h(grid), r(grid);
        const auto last = static_cast<double>(grid - 1);
        for (std::size_t j = 0; j < grid; ++j) kappa[j] = static_cast<double>(j) / last;
        for (std::size_t j = 0; j < grid; ++j) distance[j] = distance_of(kappa[j]);
        for (std::size_t i = 0; i < grid; ++i) {
            const double mu = 0.5 * static_cast<double>(i) / last;
            std::fill(nn.begin(), nn.end(), (1 - mu) * (1 - mu));
            std::fill(mn.begin(), mn.end(), mu * (1 - mu));
            best_share(mu * mu, nn.data(), mn.data(), distance.data(), grid, 30, h.data(), r.data());
            for (std::size_t j = 0; j < grid; ++j) {
                const double u = std::exp(-distance[j] * (1 - h[j]) * (1 - h[j]));
                const double v = std::exp(-distance[j] * h[j] * h[j]);
                wd[i * grid + j] = degradation(mu * mu, nn[j], mn[j], std::exp(-distance[j]), u, v);
            }
        }
        return wd;
    }();
    return made;
}

}  // namespace

// -- Merge

template <class T>
void Merge::enter(Expansion<T>& f, const Offer<T>& offer) {
    f.append(offer.x, offer.round.t, offer.round.kxx, offer.coef, offer.work);
    if (f.n() > budget_) merge(f, offer);
}

template <class T>
void Merge::merge(Expansion<T>& f, const Offer<T>& offer) {
    size_.assign(f.n(), 0);
    for (const auto& c : f.coef.values) {
        for (std::size_t i = 0; i < f.n(); ++i) size_[i] += c[i] * c[i];
    }
    const std::size_t m = oldest_of_least(size_, f.born);
    const T* kappa = f.row_of(f.basis.row(m, offer.work), offer.work);
    const std::size_t n = partner(f, m, kappa);
    if (n == f.n()) {
        f.remove(m, offer.work);
        return;
    }
    const double distance = distance_of(static_cast<double>(kappa[n]));
    double h = 0, r = 0;
    if (distance > 0) {
        const double along = inner_product(f, m, n);
        best_share(size_[m], &size_[n], &along, &distance, 1, 44, &h, &r);
    }
    const double u = std::exp(-distance * (1 - h) * (1 - h));
    const double v = std::exp(-distance * h * h);
    std::vector<double> coef(f.outputs);
    for (std::size_t o = 0; o < f.outputs; ++o) {
        coef[o] = f.scale * (f.coef.values[o][m] * u + f.coef.values[o][n] * v);
    }
    join(f, m, n, h, offer.round.t, coef.data(), offer.work);
}

template <class T>
std::size_t Merge::partner(const Expansion<T>& f, std::size_t m, const T* kappa) {
    if (by_table_ && f.outputs == 1) {
        const auto& a = f.coef.values[0];
        harm_.resize(f.n());
        simd<T>().interpolated(table().data(), grid, a[m], a.data(), kappa, f.n(), harm_.data());
        harm_[m] = infinity;
        const std::size_t best = oldest_of_least(harm_, f.born, size_[m]);
        return harm_[best] < infinity ? best : f.n();
    }
    for (auto* values : {&nn_, &mn_, &born_, &kappa_}) values->clear();
    others_.clear();
    for (std::size_t i = 0; i < f.n(); ++i) {
        const double along = inner_product(f, m, i);
        if (i == m || along <= 0) continue;
        others_.push_back(i);
        nn_.push_back(size_[i]);
        mn_.push_back(along);
        born_.push_back(f.born[i]);
        kappa_.push_back(static_cast<double>(kappa[i]));
    }
    if (others_.empty()) return f.n();
    search(size_[m]);
    return others_[oldest_of_least(harm_, born_, size_[m])];
}

void Merge::search(double mm) {
    const std::size_t count = kappa_.size();
    for (auto* values : {&distance_, &h_, &r_, &harm_}) values->resize(count);
    for (std::size_t e = 0; e < count; ++e) distance_[e] = distance_of(kappa_[e]);
    best_share(mm, nn_.data(), mn_.data(), distance_.data(), count, 20, h_.data(), r_.data());
    for (std::size_t e = 0; e < count; ++e) {
        r_[e] = distance_[e] * (1 - h_[e]) * (1 - h_[e]);
        h_[e] = distance_[e] * h_[e] * h_[e];
    }
    simd<double>().decay(r_.data(), count, 1, 0, 1.0);  // k(x_m, z)
    simd<double>().decay(h_.data(), count, 1, 0, 1.0);  // k(x_n, z)
    for (std::size_t e = 0; e < count; ++e) harm_[e] = degradation(mm, nn_[e], mn_[e], kappa_[e], r_[e], h_[e]);
}

// -- TwinVectors

double WeightedSvm::solve(const Square& K, bool bias, double precision) {
    const std::size_t n = v.size();
    const auto none = [](const std::vector<double>& values) {
        return std::all_of(values.begin(), values.end(), [](double value) { return value == 0; });
    };
    if (bias && (none(low) || none(high))) {  // one label only
        std::fill(v.begin(), v.end(), 0.0);
        return 0;
    }
    for (auto* values : {&corner_, &F_, &up_, &down_, &pull_, &gain_}) values->resize(n);
    if (bias) balance();
    double floor = 0;
    for (std::size_t i = 0; i < n; ++i) {
        corner_[i] = low[i] + high[i];
        v[i] = settled(i, v[i]);
        floor = std::max(floor, 1e-12 * K[i][i]);
    }
    for (std::size_t i = 0; i < n; ++i) F_[i] = simd<double>().dot(v.data(), K[i], n);
    double b = 0;
    for (int step = 0; step < solver_steps; ++step) {
        double most = -infinity;
        double least = infinity;
        for (std::size_t i = 0; i < n; ++i) {  // v_i wants to rise if b < up_i, to fall if b > down_i
            up_[i] = v[i] < high[i] ? (v[i] < corner_[i] ? 1 : -1) - F_[i] : -infinity;
            down_[i] = v[i] > low[i] ? (v[i] > corner_[i] ? -1 : 1) - F_[i] : infinity;
            most = std::max(most, up_[i]);
            least = std::min(least, down_[i]);
        }
        if (bias) b = (most + least) / 2;
        if ((bias ? most - least : std::max(most, -least)) <= precision) break;
        const std::size_t i = bias ? first_of_largest(up_, 1e-6 * precision) : n;
        const auto curvature = [&](std::size_t k) {
            const double own = K[k][k];
            return std::max(bias ? K[i][i] + own - 2 * K[i][k] : own, floor);
        };
        double best = 0;
        for (std::size_t k = 0; k < n; ++k) {
            pull_[k] = std::max(bias ? up_[i] - down_[k] : std::max(up_[k], -down_[k]), 0.0);
            gain_[k] = pull_[k] * pull_[k] / curvature(k);
            best = std::max(best, gain_[k]);
        }
        const std::size_t j = first_of_largest(gain_, 1e-9 * best);
        const bool falls = bias || up_[j] <= 0;
        double length = std::min(pull_[j] / curvature(j), std::abs(next_end(j, !falls) - v[j]));
        if (bias) length = std::min(length, std::abs(next_end(i, true) - v[i]));
        if (bias) move(K, i, length);
        move(K, j, falls ? -length : length);
    }
    return b;
}

// Positive and negative parts of v must cancel; they do not where a twin has left.
void WeightedSvm::balance() {
    double rise = 0;
    double fall = 0;
    for (const double value : v) (value > 0 ? rise : fall) += std::abs(value);
    if (rise == fall) return;
    for (double& value : v) value *= (value > 0 ? fall : rise) / std::max(rise, fall);
}

// The value, or the bound or corner it cannot be told from: b depends on who is at one.
double WeightedSvm::settled(std::size_t i, double value) const {
    for (const double end : {low[i], corner_[i], high[i]}) {
        if (std::abs(end - value) <= 1e-12 * (high[i] - low[i])) return end;
    }
    return value;
}

// Where v_i next meets a corner or a bound.
double WeightedSvm::next_end(std::size_t i, bool rises) const {
    if (rises) return v[i] < corner_[i] ? corner_[i] : high[i];
    return v[i] > corner_[i] ? corner_[i] : low[i];
}

void WeightedSvm::move(const Square& K, std::size_t i, double change) {
    v[i] = settled(i, v[i] + change);
    simd<double>().axpy(F_.data(), change, K[i], v.size());
}

template <class T>
void TwinVectors::enter(Expansion<T>& f, const Offer<T>& offer) {
    const Round& round = offer.round;
    const double s = round.s[0];
    if ((by_margin_ ? round.y * s : std::abs(s)) > admit_ || round.kxx <= 0) return;
    if (!sane(C_ * round.weight)) throw Diverged(beyond("C times the sample weight is ", C_ * round.weight));
    if (kernel_.n() != f.n() || version_ != doubles_.version(f)) remember(f);
    const bool full = f.n() == budget_;
    std::vector<double> depths;  // -|f| of the twins
    for (std::size_t i = 0; full && i < f.n(); ++i) {
        const double value = f.scale * simd<double>().dot(f.coef.values[0].data(), kernel_[i], f.n());
        depths.push_back(-std::abs(value + (bias_ ? f.bias[0] : 0)));
    }
    const double none = 0;
    f.append(offer.x, round.t, round.kxx, &none, offer.work);
    f.kept[round.y > 0 ? 0 : 1]->values[0].back() = round.weight / f.scale;
    note(f);
    if (full) {
        depths.push_back(-std::abs(s));
        const std::size_t far = oldest_of_least(depths, f.born);
        if (-depths[far] > drop_) {
            f.remove(far, offer.work);
            forget(far);
        } else {
            merge(f, offer);
        }
    }
    solve(f);
}

template <class T>
void TwinVectors::merge(Expansion<T>& f, const Offer<T>& offer) {
    const auto [i, j] = nearest_pair(f.born);
    const auto count = [&](std::size_t k) { return f.kept[0]->values[0][k] + f.kept[1]->values[0][k]; };
    const auto sum = [i = i, j = j](const Vectors<double>& values) { return values[i] + values[j]; };
    const double share = count(i) / (count(i) + count(j));
    const double coef = f.scale * sum(f.coef.values[0]);
    const double positive = sum(f.kept[0]->values[0]);
    const double negative = sum(f.kept[1]->values[0]);
    join(f, i, j, share, offer.round.t, &coef, offer.work);
    f.kept[0]->values[0].back() = positive;
    f.kept[1]->values[0].back() = negative;
    forget(std::max(i, j));
    forget(std::min(i, j));
    note(f);
}

// The two that are nearest to each other; of those equal up to rounding, the oldest.
std::pair<std::size_t, std::size_t> TwinVectors::nearest_pair(std::span<const double> born) const {
    const std::size_t n = squares_.n();
    double least = infinity;
    double most = 0;
    for (std::size_t i = 1; i < n; ++i) {
        const auto [low, high] = std::minmax_element(squares_[i], squares_[i] + i);
        least = std::min(least, *low);
        most = std::max(most, *high);
    }
    std::pair<std::size_t, std::size_t> best{n, n};
    const auto entered = [&](std::pair<std::size_t, std::size_t> pair) {
        return std::pair(born[pair.first], born[pair.second]);
    };
    for (std::size_t i = 1; i < n; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (squares_[i][j] > least + 1e-12 * most) continue;
            const auto pair = born[i] < born[j] ? std::pair(i, j) : std::pair(j, i);
            if (best.first == n || entered(pair) < entered(best)) best = pair;
        }
    }
    return best;
}

template <class T>
void TwinVectors::solve(Expansion<T>& f) {
    const std::size_t n = f.n();
    for (auto* values : {&svm_.low, &svm_.high, &svm_.v}) values->resize(n);
    for (std::size_t i = 0; i < n; ++i) {
        svm_.high[i] = C_ * f.scale * f.kept[0]->values[0][i];
        svm_.low[i] = -C_ * f.scale * f.kept[1]->values[0][i];
        svm_.v[i] = f.scale * f.coef.values[0][i];
    }
    const double b = svm_.solve(kernel_, bias_, precision_);
    for (std::size_t i = 0; i < n; ++i) f.change(i, 0, svm_.v[i] / f.scale);
    if (bias_) f.bias[0] = b;
}

// The term that has just entered meets the others. Kernel values are always those of the later one's row as the
// example, so that they come out the same when they are made again.
template <class T>
void TwinVectors::note(const Expansion<T>& f) {
    Workspace<T> work;
    const std::size_t last = f.n() - 1;
    doubles_.append(f, f.basis.row(last, work));
    kernel_.append(doubles_.row_of_term(f, last));
    squares_.append(squares_to(f, last).data());
}

template <class T>
std::vector<double> TwinVectors::squares_to(const Expansion<T>& f, std::size_t i) const {
    Workspace<T> work, other;
    const Row<T> x = f.basis.row(i, work);
    std::vector<double> squares(i + 1);
    for (std::size_t j = 0; j < i; ++j) {
        walk(x, f.basis.row(j, other),
             [&](std::int64_t, double xj, double zj) { squares[j] += (xj - zj) * (xj - zj); });
    }
    return squares;
}

void TwinVectors::forget(std::size_t i) {
    doubles_.remove(i);
    kernel_.remove(i);
    squares_.remove(i);
}

// All that `note` would know.
template <class T>
void TwinVectors::remember(const Expansion<T>& f) {
    version_ = doubles_.version(f);
    kernel_.clear();
    squares_.clear();
    std::vector<std::vector<double>> rows;
    for (std::size_t i = 0; i < f.n(); ++i) {
        const double* k = doubles_.row_of_term(f, i);
        rows.emplace_back(k, k + f.n());
        for (std::size_t j = 0; j < i; ++j) {
            if (f.born[j] > f.born[i]) rows[i][j] = rows[j][i];
        }
        kernel_.append(rows[i].data());
        squares_.append(squares_to(f, i).data());
    }
}

void TwinVectors::forget_all() {
    kernel_.clear();
    squares_.clear();
}

void TwinVectors::widen(std::size_t columns) {
    doubles_.widen(columns);
    forget_all();  // rows may lie otherwise now
}

void TwinVectors::load(const Store& store, std::size_t, bool, bool) {
    doubles_.load(store, store.shape("basis.born")[0]);
    forget_all();
}

template void Merge::enter(Expansion<float>&, const Offer<float>&);
template void Merge::enter(Expansion<double>&, const Offer<double>&);
template void TwinVectors::enter(Expansion<float>&, const Offer<float>&);
template void TwinVectors::enter(Expansion<double>&, const Offer<double>&);

}  // namespace onkel
