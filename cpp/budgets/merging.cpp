#include "budgets/merging.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/errors.hpp"
#include "core/ties.hpp"

namespace onkel {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t grid = 400;  // nodes of the table, in each direction
constexpr double later = 0.5;      // a made row is born after the example of its round

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
void merge_pair(Terms<T>& f, std::size_t m, std::size_t n, double share, double t, const double* coef,
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
double inner_product(const Terms<T>& f, std::size_t m, std::size_t n) {
    double total = 0;
    for (const auto& c : f.coef.values) total += c[m] * c[n];
    return total;
}

// |x_i - x_j|^2 of the terms j before i.
template <class T>
std::vector<double> squares_to(const Terms<T>& f, std::size_t i) {
    Workspace<T> work, other;
    const Row<T> x = f.basis.row(i, work);
    std::vector<double> squares(i + 1);
    for (std::size_t j = 0; j < i; ++j) {
        walk(x, f.basis.row(j, other),
             [&](std::int64_t, double xj, double zj) { squares[j] += (xj - zj) * (xj - zj); });
    }
    return squares;
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
void Merge::insert(Terms<T>& f, const Proposal<T>& proposal, Partners& memory) const {
    f.append(proposal.x, proposal.round.t, proposal.round.kxx, proposal.coef, proposal.work);
    if (f.n() > budget_) merge(f, proposal, memory);
}

template <class T>
void Merge::merge(Terms<T>& f, const Proposal<T>& proposal, Partners& memory) const {
    memory.size.assign(f.n(), 0);
    for (const auto& c : f.coef.values) {
        for (std::size_t i = 0; i < f.n(); ++i) memory.size[i] += c[i] * c[i];
    }
    const std::size_t m = oldest_of_least(memory.size, f.born);
    const T* kappa = f.row_of(f.basis.row(m, proposal.work), proposal.work);
    const std::size_t n = partner(f, m, kappa, memory);
    if (n == f.n()) {
        f.remove(m, proposal.work);
        return;
    }
    const double distance = distance_of(static_cast<double>(kappa[n]));
    double h = 0, r = 0;
    if (distance > 0) {
        const double along = inner_product(f, m, n);
        best_share(memory.size[m], &memory.size[n], &along, &distance, 1, 44, &h, &r);
    }
    const double u = std::exp(-distance * (1 - h) * (1 - h));
    const double v = std::exp(-distance * h * h);
    std::vector<double> coef(f.outputs);
    for (std::size_t o = 0; o < f.outputs; ++o) {
        coef[o] = f.scale * (f.coef.values[o][m] * u + f.coef.values[o][n] * v);
    }
    merge_pair(f, m, n, h, proposal.round.t, coef.data(), proposal.work);
}

template <class T>
std::size_t Merge::partner(const Terms<T>& f, std::size_t m, const T* kappa, Partners& memory) const {
    if (by_table_ && f.outputs == 1) {
        const auto& a = f.coef.values[0];
        memory.harm.resize(f.n());
        simd<T>().interpolated(table().data(), grid, a[m], a.data(), kappa, f.n(), memory.harm.data());
        memory.harm[m] = infinity;
        memory.both.resize(f.n());  // |a_m + a_n|^2, of whose size are the numbers that WD is the difference of
        for (std::size_t i = 0; i < f.n(); ++i) memory.both[i] = memory.size[m] + memory.size[i] + 2 * a[m] * a[i];
        const std::size_t best = oldest_of_least(memory.harm, f.born, memory.both);
        return memory.harm[best] < infinity ? best : f.n();
    }
    for (auto* values : {&memory.nn, &memory.mn, &memory.born, &memory.kappa}) values->clear();
    memory.others.clear();
    for (std::size_t i = 0; i < f.n(); ++i) {
        const double along = inner_product(f, m, i);
        if (i == m || along <= 0) continue;
        memory.others.push_back(i);
        memory.nn.push_back(memory.size[i]);
        memory.mn.push_back(along);
        memory.born.push_back(f.born[i]);
        memory.kappa.push_back(static_cast<double>(kappa[i]));
    }
    if (memory.others.empty()) return f.n();
    memory.search(memory.size[m]);
    memory.both.resize(memory.others.size());
    for (std::size_t e = 0; e < memory.both.size(); ++e) {
        memory.both[e] = memory.size[m] + memory.nn[e] + 2 * memory.mn[e];
    }
    return memory.others[oldest_of_least(memory.harm, memory.born, memory.both)];
}

void Merge::Partners::search(double mm) {
    const std::size_t count = kappa.size();
    for (auto* values : {&distance, &h, &r, &harm}) values->resize(count);
    for (std::size_t e = 0; e < count; ++e) distance[e] = distance_of(kappa[e]);
    best_share(mm, nn.data(), mn.data(), distance.data(), count, 20, h.data(), r.data());
    for (std::size_t e = 0; e < count; ++e) {
        r[e] = distance[e] * (1 - h[e]) * (1 - h[e]);
        h[e] = distance[e] * h[e] * h[e];
    }
    simd<double>().decay(r.data(), count, 1, 0, 1.0);  // k(x_m, z)
    simd<double>().decay(h.data(), count, 1, 0, 1.0);  // k(x_n, z)
    for (std::size_t e = 0; e < count; ++e) harm[e] = degradation(mm, nn[e], mn[e], kappa[e], r[e], h[e]);
}

// -- TwinVectors

template <class T>
void TwinVectors::insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const {
    const Round& round = proposal.round;
    const double s = round.s[0];
    if ((by_margin_ ? round.y * s : std::abs(s)) > admit_ || round.kxx <= 0) return;
    if (!sane(C_ * round.weight)) throw Diverged("C times the sample weight is", C_ * round.weight);
    if (memory.kernel.n() != f.n() || memory.version != memory.doubles.version(f)) memory.compute(f);
    const bool full = f.n() == budget_;
    std::vector<double> depths;  // -|f| of the twins
    for (std::size_t i = 0; full && i < f.n(); ++i) {
        const double value = f.scale * simd<double>().dot(f.coef.values[0].data(), memory.kernel[i], f.n());
        depths.push_back(-std::abs(value + (bias_ ? f.bias[0] : 0)));
    }
    const double none = 0;
    f.append(proposal.x, round.t, round.kxx, &none, proposal.work);
    f.basis[round.y > 0 ? "positive" : "negative"].values[0].back() = round.weight / f.scale;
    memory.append(f);
    if (full) {
        depths.push_back(-std::abs(s));
        const std::size_t far = oldest_of_least(depths, f.born);
        if (-depths[far] > drop_) {
            f.remove(far, proposal.work);
            memory.remove(far);
        } else {
            merge(f, proposal, memory);
        }
    }
    solve(f, memory);
}

template <class T>
void TwinVectors::merge(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const {
    AlignedVector<double>& positive = f.basis["positive"].values[0];
    AlignedVector<double>& negative = f.basis["negative"].values[0];
    const auto [i, j] = memory.nearest_pair(f.born);
    const auto count = [&](std::size_t k) { return positive[k] + negative[k]; };
    const auto sum = [i = i, j = j](const AlignedVector<double>& values) { return values[i] + values[j]; };
    const double share = count(i) / (count(i) + count(j));
    const double coef = f.scale * sum(f.coef.values[0]);
    const double both[] = {sum(positive), sum(negative)};
    merge_pair(f, i, j, share, proposal.round.t, &coef, proposal.work);
    positive.back() = both[0];
    negative.back() = both[1];
    memory.remove(std::max(i, j));
    memory.remove(std::min(i, j));
    memory.append(f);
}

// The two that are nearest to each other; of those equal up to rounding, the oldest.
template <class T>
std::pair<std::size_t, std::size_t> TwinVectors::Memory<T>::nearest_pair(std::span<const double> born) const {
    const std::size_t n = squares.n();
    double least = infinity;
    for (std::size_t i = 1; i < n; ++i) least = std::min(least, *std::min_element(squares[i], squares[i] + i));
    std::pair<std::size_t, std::size_t> best{n, n};
    const auto entered = [&](std::pair<std::size_t, std::size_t> pair) {
        return std::pair(born[pair.first], born[pair.second]);
    };
    for (std::size_t i = 1; i < n; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (squares[i][j] > least + equal_share * least) continue;
            const auto pair = born[i] < born[j] ? std::pair(i, j) : std::pair(j, i);
            if (best.first == n || entered(pair) < entered(best)) best = pair;
        }
    }
    if (best.first == n) throw Diverged("the least squared distance of two terms is", least);
    return best;
}

template <class T>
void TwinVectors::solve(Terms<T>& f, Memory<T>& memory) const {
    const std::size_t n = f.n();
    const AlignedVector<double>& positive = f.basis["positive"].values[0];
    const AlignedVector<double>& negative = f.basis["negative"].values[0];
    WeightedSvm& svm = memory.svm;
    for (auto* values : {&svm.low, &svm.high, &svm.v}) values->resize(n);
    for (std::size_t i = 0; i < n; ++i) {
        svm.high[i] = C_ * f.scale * positive[i];
        svm.low[i] = -C_ * f.scale * negative[i];
        svm.v[i] = f.scale * f.coef.values[0][i];
    }
    const double b = svm.solve(memory.kernel, bias_, precision_);
    for (std::size_t i = 0; i < n; ++i) f.change(i, 0, svm.v[i] / f.scale);
    if (bias_) f.bias[0] = b;
}

// The term that has just entered meets the others. Kernel values are always those of the later one's row as the
// example, so that they come out the same when they are made again.
template <class T>
void TwinVectors::Memory<T>::append(const Terms<T>& f) {
    Workspace<T> work;
    const std::size_t last = f.n() - 1;
    doubles.append(f, f.basis.row(last, work));
    kernel.append(doubles.row_of_term(f, last));
    squares.append(squares_to(f, last).data());
}

template <class T>
void TwinVectors::Memory<T>::remove(std::size_t i) {
    doubles.remove(i);
    kernel.remove(i);
    squares.remove(i);
}

// All that `append` would know.
template <class T>
void TwinVectors::Memory<T>::compute(const Terms<T>& f) {
    version = doubles.version(f);
    kernel.clear();
    squares.clear();
    std::vector<std::vector<double>> rows;
    for (std::size_t i = 0; i < f.n(); ++i) {
        const double* k = doubles.row_of_term(f, i);
        rows.emplace_back(k, k + f.n());
        for (std::size_t j = 0; j < i; ++j) {
            if (f.born[j] > f.born[i]) rows[i][j] = rows[j][i];
        }
        kernel.append(rows[i].data());
        squares.append(squares_to(f, i).data());
    }
}

template <class T>
void TwinVectors::Memory<T>::clear() {
    kernel.clear();
    squares.clear();
}

template <class T>
void TwinVectors::Memory<T>::widen(std::size_t) {
    doubles.widen();
    clear();  // rows may lie otherwise now
}

template <class T>
void TwinVectors::Memory<T>::load(const Store&, std::size_t terms) {
    doubles.load(terms, terms);
    clear();
}

Started<RunningBudget> Merge::start(const Run& run) const { return started(*this, run); }
Started<RunningBudget> TwinVectors::start(const Run& run) const { return started(*this, run); }

}  // namespace onkel
