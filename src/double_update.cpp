#include "double_update.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace onkel {

namespace {

constexpr double ridge = 1e-10;  // as RIDGE in onkel/double_update.py
constexpr double infinity = std::numeric_limits<double>::infinity();

double sign(double v) { return (v > 0) - (v < 0); }

struct Weights {
    double g;
    double q;
};

// The best weight g <= limit of the new term and growth q <= room of term b, for w <= 0 and positive losses.
Weights double_step(double k, double k_b, double w, double loss, double loss_b, double limit, double room) {
    const double determinant = k * k_b - w * w;
    if (determinant > 1e-12 * k * k_b) {
        const Weights inside{(k_b * loss - w * loss_b) / determinant, (k * loss_b - w * loss) / determinant};
        if (inside.g <= limit && inside.q <= room) return inside;
    }
    const auto gain = [&](const Weights& e) {
        return e.g * (loss - k * e.g / 2 - w * e.q) + e.q * (loss_b - k_b * e.q / 2);
    };
    const Weights first{limit, std::min((loss_b - w * limit) / k_b, room)};
    const Weights second{std::min((loss - w * room) / k, limit), room};
    return gain(second) > gain(first) ? second : first;
}

// Up to here a loss is none: steps that meet no bound leave margins at exactly 1, and rounding must not decide.
template <class T>
constexpr double rounding = sizeof(T) == sizeof(float) ? 1e-5 : 1e-9;

// The term of least y_i y k_i among those of a margin below 1, or n.
template <class T>
std::size_t in_conflict(const Expansion<T>& f, const T* k, double y) {
    bool any = false;
    std::vector<double> w(f.n());
    for (std::size_t i = 0; i < f.n(); ++i) {
        const double own = sign(f.coef.values[0][i]);
        const bool open = own * f.scale * f.score->values[0][i] < 1 - rounding<T>;
        any |= open;
        w[i] = open ? own * y * static_cast<double>(k[i]) : infinity;
    }
    return any ? oldest_of_least(w, f.born) : f.n();
}

// The rows and columns of a symmetric matrix that belong to some of its indices, factored.
class Submatrix {
public:
    explicit Submatrix(const Square& matrix, double relative_ridge = 0)
        : matrix_(matrix), ridge_(relative_ridge), factor_(false, 0) {}

    const std::vector<std::size_t>& members() const { return members_; }
    void add(std::size_t i) {
        row_.clear();
        for (const std::size_t j : members_) row_.push_back(matrix_[i][j]);
        factor_.append(row_.data(), matrix_[i][i] * (1 + ridge_));
        members_.push_back(i);
    }
    void drop(std::size_t i) {
        const auto slot = std::find(members_.begin(), members_.end(), i);
        factor_.remove(static_cast<std::size_t>(slot - members_.begin()));
        *slot = members_.back();
        members_.pop_back();
    }
    // Its inverse times these entries of a vector, in the order of members.
    const std::vector<double>& solve(const std::vector<double>& entries) {
        row_.clear();
        for (const std::size_t i : members_) row_.push_back(entries[i]);
        solution_.resize(row_.size());
        factor_.project(row_.data(), 0, solution_.data());
        return solution_;
    }

private:
    const Square& matrix_;
    double ridge_;
    Factor factor_;
    std::vector<std::size_t> members_;
    std::vector<double> row_, solution_;
};

// The least of v'Kv over its free entries, from K: as true as can be.
class ByMatrix {
public:
    static constexpr double rounding = 1e-14;  // of slopes, relative to those there can be

    explicit ByMatrix(const Gram& gram) : gram_(gram), free_(gram.matrix(), ridge) {}

    void start(const std::vector<bool>& free) {
        for (std::size_t i = 0; i < free.size(); ++i) {
            if (free[i]) release(i);
        }
    }
    void fix(std::size_t i) { free_.drop(i); }
    void release(std::size_t i) { free_.add(i); }
    // What leads from v to the least.
    void aim(const std::vector<double>& v, std::vector<double>& step) {
        const std::vector<double>& x = free_.solve(slopes(v));
        for (std::size_t slot = 0; slot < x.size(); ++slot) step[free_.members()[slot]] = -x[slot];
    }
    // K v, after a whole step.
    const std::vector<double>& slopes(const std::vector<double>& v) {
        slopes_ = gram_.times(v);
        for (std::size_t i = 0; i < v.size(); ++i) slopes_[i] += ridge * gram_.matrix()[i][i] * v[i];
        return slopes_;
    }

private:
    const Gram& gram_;
    Submatrix free_;
    std::vector<double> slopes_;
};

// The same from P = K^-1, where a rough answer will do: at the least Kv is 0 but for the fixed entries, few of n, whose
// slopes solve P Kv = v among themselves.
class ByInverse {
public:
    static constexpr double rounding = 1e-10;

    explicit ByInverse(const Square& P) : P_(P), fixed_(P), slopes_(P.n()) {}

    void start(const std::vector<bool>& free) {
        for (std::size_t i = 0; i < free.size(); ++i) {
            if (!free[i]) fix(i);
        }
    }
    void fix(std::size_t i) { fixed_.add(i); }
    void release(std::size_t i) { fixed_.drop(i); }
    void aim(const std::vector<double>& v, std::vector<double>& step) {
        const std::vector<double>& x = fixed_.solve(v);
        std::fill(slopes_.begin(), slopes_.end(), 0.0);
        for (std::size_t i = 0; i < v.size(); ++i) step[i] = -v[i];
        for (std::size_t slot = 0; slot < x.size(); ++slot) {
            const std::size_t i = fixed_.members()[slot];
            slopes_[i] = x[slot];
            simd<double>().axpy(step.data(), x[slot], P_[i], v.size());
        }
        for (const std::size_t i : fixed_.members()) step[i] = 0;
    }
    const std::vector<double>& slopes(const std::vector<double>&) const { return slopes_; }

private:
    const Square& P_;
    Submatrix fixed_;
    std::vector<double> slopes_;
};

// A few rounds of coordinate descent: many of the entries that belong to a bound go there, which would take the method
// below a step each.
void descend(const Gram& gram, std::vector<double>& v, const std::vector<double>& least,
             const std::vector<double>& most) {
    std::vector<double> slope = gram.times(v);
    for (int round = 0; round < 4; ++round) {
        for (std::size_t i = 0; i < v.size(); ++i) {
            const double* k = gram.matrix()[i];
            const double to = std::clamp(v[i] - slope[i] / k[i], least[i], most[i]);
            if (to == v[i]) continue;
            simd<double>().axpy(slope.data(), to - v[i], k, v.size());
            v[i] = to;
        }
    }
}

// The v of least v'Kv (with the ridge) between its bounds, from one that is there: an active set method.
template <class Solver>
void make_smallest(std::vector<double>& v, const std::vector<double>& least, const std::vector<double>& most,
                   const Gram& gram, Solver solver) {
    const std::size_t n = v.size();
    double enough = 0, diagonal = 0;
    std::vector<double> step(n);
    std::vector<bool> free(n);
    for (std::size_t i = 0; i < n; ++i) {
        enough = std::max({enough, std::abs(least[i]), std::abs(most[i])});
        diagonal = std::max(diagonal, gram.matrix()[i][i]);
        free[i] = least[i] < v[i] && v[i] < most[i];
    }
    enough *= Solver::rounding * diagonal;
    solver.start(free);
    for (std::size_t rounds = 100 + 10 * n; rounds-- > 0;) {  // it ends sooner, but for kernels that are none
        solver.aim(v, step);
        double length = 1;
        std::size_t first = n;
        for (std::size_t i = 0; i < n; ++i) {
            if (!free[i] || step[i] == 0) continue;
            const double reach = (step[i] > 0 ? most[i] - v[i] : v[i] - least[i]) / std::abs(step[i]);
            if (reach >= length) continue;
            length = reach;
            first = i;
        }
        for (std::size_t i = 0; i < n; ++i) {
            if (free[i]) v[i] = std::clamp(v[i] + length * step[i], least[i], most[i]);
        }
        if (first < n) {
            v[first] = step[first] > 0 ? most[first] : least[first];
            free[first] = false;
            solver.fix(first);
            continue;
        }
        const std::vector<double>& slope = solver.slopes(v);
        double most_wished = enough;
        for (std::size_t i = 0; i < n; ++i) {
            const double wish = std::max(v[i] < most[i] ? -slope[i] : 0, v[i] > least[i] ? slope[i] : 0);
            if (free[i] || wish <= most_wished) continue;
            most_wished = wish;
            first = i;
        }
        if (first == n) return;
        free[first] = true;
        solver.release(first);
    }
}

// The coefficient of term i (still without scale) becomes c; rounding stays in the box.
template <class T>
void change_in_box(Expansion<T>& f, std::size_t i, double c) {
    const double y = sign(f.coef.values[0][i]);
    f.change(i, 0, y * std::clamp(y * c, 0.0, f.limit->values[0][i]));
}

}  // namespace

double Boxed::limit_of(const Round& round) const {
    const double limit = C_ * round.weight;
    if (!sane(limit)) throw Diverged(beyond("C times the sample weight is ", limit));
    return limit;
}

template <class T>
bool Boxed::climb(Expansion<T>& f, const Offer<T>& offer, double limit) const {
    Vectors<double>& score = f.score->values[0];
    const double y = offer.round.y, kxx = offer.round.kxx;
    double s = f.scale * f.inner_score(offer.k, 0);
    const double loss = 1 - y * s;
    if (loss <= 0) return false;
    Weights step{std::min(limit, loss / kxx), 0};
    const std::size_t b = in_conflict(f, offer.k, y);
    const double y_b = b < f.n() ? sign(f.coef.values[0][b]) : 0;
    const double w = b < f.n() ? y_b * y * static_cast<double>(offer.k[b]) : infinity;
    if (w <= -rho_) {
        const double a = f.coef.values[0][b];
        const double room = std::max(f.scale * (f.limit->values[0][b] - std::abs(a)), 0.0);
        step = double_step(kxx, f.diagonal[b], w, loss, 1 - y_b * f.scale * score[b], limit, room);
        const double inner = step.q * y_b / f.scale;
        const T* k = f.row_of(f.basis.row(b, offer.work), offer.work);
        simd<T>().axpy(score.data(), inner, k, f.n());
        change_in_box(f, b, a + inner);
        s += step.q * y_b * static_cast<double>(offer.k[b]);
    }
    const double coef = step.g * y;
    simd<T>().axpy(score.data(), coef / f.scale, offer.k, f.n());
    f.append(offer.x, offer.round.t, kxx, &coef, offer.work);
    score.back() = (s + coef * kxx) / f.scale;
    f.limit->values[0].back() = limit / f.scale;
    return true;
}

template <class T>
void DoubleUpdate::enter(Expansion<T>& f, const Offer<T>& offer) {
    climb(f, offer, limit_of(offer.round));
}

// ---- Box ----

template <class T>
Box::Box(const Expansion<T>& f) : a(f.n()), slack(f.n()), least(f.n()), most(f.n()) {
    for (std::size_t i = 0; i < f.n(); ++i) {
        a[i] = f.scale * f.coef.values[0][i];
        const double y = sign(a[i]), end = y * f.scale * f.limit->values[0][i];
        slack[i] = y - f.scale * f.score->values[0][i];
        least[i] = std::min(0.0, end);
        most[i] = std::max(0.0, end);
    }
}

bool Box::clip(std::vector<double>& v, std::size_t j) const {
    bool cut = false;
    v[j] = a[j];
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double inside = std::clamp(v[i], a[i] - most[i], a[i] - least[i]);
        cut |= inside != v[i];
        v[i] = inside;
    }
    return cut;
}

// ---- Gram ----

std::vector<double> Gram::times(const std::vector<double>& v) const {
    std::vector<double> out(n());
    for (std::size_t i = 0; i < n(); ++i) out[i] = simd<double>().dot(K_[i], v.data(), n());
    return out;
}

double Gram::length2(const std::vector<double>& v, std::size_t j, const double* row) const {
    const double along = v[j] / row[j];
    double total = along * v[j];
    std::vector<std::size_t> cut;
    std::vector<double> by(n());
    for (std::size_t i = 0; i < n(); ++i) {
        total -= ridge * K_[i][i] * v[i] * v[i];
        by[i] = i == j ? 0 : v[i] - along * row[i];
        if (by[i] != 0) cut.push_back(i);
    }
    for (const std::size_t p : cut) {
        double sum = ridge * K_[p][p] * by[p];
        for (const std::size_t q : cut) sum += K_[p][q] * by[q];
        total += by[p] * sum;
    }
    return total;
}

template <class T>
void Gram::append(const Expansion<T>& f, const Offer<T>& offer) {
    const double* k = terms_.row(f, offer);
    row_.assign(k, k + n());
    row_.push_back(offer.round.kxx);
    factor.append(k, offer.round.kxx * (1 + ridge));
    K_.append(row_.data());
    terms_.append(f, offer.x);
}

void Gram::remove(std::size_t i) {
    K_.remove(i);
    terms_.remove(i);
    factor.remove(i);
    if (factor.stale()) factor.refresh(K_.values(1 + ridge));
}

void Gram::save(Store& store) const {
    store.put("budget.K", K_.values(), {n(), n()});
    factor.save(store, "budget.factor");
}

void Gram::load(const Store& store) {
    const auto K = store.get<double>("budget.K", 2);
    factor.load(store, "budget.factor");
    const std::size_t size = factor.n();
    if (store.shape("budget.K") != std::vector<std::size_t>{size, size}) {
        Store::refuse("budget.K", "has the wrong shape");
    }
    K_.clear();
    for (std::size_t i = 0; i < size; ++i) K_.append(K.data() + i * size);
    terms_.load(store, size);
}

// ---- DualAscent ----

template <class T>
void DualAscent::enter(Expansion<T>& f, const Offer<T>& offer) {
    const bool full = f.n() == budget_;
    if (full && offer.round.loss <= rounding<T>) return;  // no room for a loss that is none
    const double limit = limit_of(offer.round);
    if (full) make_room(f, offer.work);
    if (!climb(f, offer, limit)) return;
    if (near_) {
        const double* k = neighbours_.row(f, offer);
        k_.assign(k, k + f.n() - 1);
        k_.push_back(offer.round.kxx);
        neighbours_.meet(f, offer.x, k_);
    }
    if (solves()) gram_.append(f, offer);
}

template <class T>
void DualAscent::make_room(Expansion<T>& f, Workspace<T>& work) {
    const Box box(f);
    const std::size_t j = victim(f, box);
    Vectors<double>& score = f.score->values[0];
    std::vector<double> v(f.n());
    if (solves()) {
        v = share(box, j);
        simd<double>().axpy(score.data(), -1 / f.scale, gram_.times(v).data(), f.n());
    } else {
        v[j] = box.a[j];
        const double part = to_nearest(f, box, j);
        if (part != 0) v[static_cast<std::size_t>(neighbours_.nearest(j))] = -part;
        for (std::size_t i = 0; i < f.n(); ++i) {
            if (v[i] == 0) continue;
            simd<T>().axpy(score.data(), -v[i] / f.scale, f.row_of(f.basis.row(i, work), work), f.n());
        }
    }
    for (std::size_t i = 0; i < f.n(); ++i) {
        if (v[i] != 0) change_in_box(f, i, (box.a[i] - v[i]) / f.scale);
    }
    for (std::size_t i = f.n(); i-- > 0;) {
        if (std::abs(f.coef.values[0][i]) > 1e-12 * f.limit->values[0][i]) continue;
        f.remove(i, work);
        if (near_) neighbours_.miss(f, i);
        if (solves()) gram_.remove(i);
    }
}

template <class T>
inline double DualAscent::to_nearest(const Expansion<T>& f, const Box& box, std::size_t j) const {
    if (!near_ || neighbours_.nearest(j) == Neighbours::none) return 0;
    const auto i = static_cast<std::size_t>(neighbours_.nearest(j));
    const double whole = box.a[j] * neighbours_.affinity(j) / f.diagonal[i];
    return std::min(std::max(whole, box.least[i] - box.a[i]), box.most[i] - box.a[i]);  // without branches
}

// The term of the largest dual ascent.
template <class T>
std::size_t DualAscent::victim(const Expansion<T>& f, const Box& box) {
    std::vector<double> descent(f.n());
    double size = 0;
    for (std::size_t j = 0; j < f.n(); ++j) {
        const double alone = box.a[j] * box.slack[j], length2 = box.a[j] * box.a[j] * f.diagonal[j];
        size = std::max(size, std::abs(alone) + length2);
        descent[j] = alone + length2 / 2;
    }
    if (near_ && !cheap_) {
        for (std::size_t j = 0; j < f.n(); ++j) {
            if (neighbours_.nearest(j) == Neighbours::none) continue;
            const auto i = static_cast<std::size_t>(neighbours_.nearest(j));
            const double part = to_nearest(f, box, j);
            descent[j] -= part * (box.slack[i] + box.a[j] * neighbours_.affinity(j) - part * f.diagonal[i] / 2);
        }
    } else if (solves() && !cheap_) {
        const Square P = gram_.factor.inverse();
        for (std::size_t j = 0; j < f.n(); ++j) {
            const std::vector<double> v = share(box, j, &P);
            const double lost2 = approximate_ ? gram_.length2(v, j, P[j])
                                              : simd<double>().dot(v.data(), gram_.times(v).data(), v.size());
            descent[j] = simd<double>().dot(v.data(), box.slack.data(), v.size()) + lost2 / 2;
        }
    }
    return oldest_of_least(descent, f.born, size);
}

std::vector<double> DualAscent::share(const Box& box, std::size_t j, const Square* P) {
    std::vector<double> v = P ? std::vector<double>((*P)[j], (*P)[j] + P->n()) : without_others(j);
    const double factor = box.a[j] / v[j];
    for (double& entry : v) entry *= factor;
    const bool cut = box.clip(v, j);
    if (!project_ || (P && !cut)) return v;  // uncut, a row of P is the best there is
    std::vector<double> least(v.size()), most(v.size());
    for (std::size_t i = 0; i < v.size(); ++i) {
        least[i] = i == j ? v[j] : box.a[i] - box.most[i];
        most[i] = i == j ? v[j] : box.a[i] - box.least[i];
    }
    if (P) {
        descend(gram_, v, least, most);
        make_smallest(v, least, most, gram_, ByInverse(*P));
    } else {
        make_smallest(v, least, most, gram_, ByMatrix(gram_));
    }
    return v;
}

// Coefficients of k(x_j, .) less its projection on the other terms: v_j = 1, and K v is 0 elsewhere. Two corrections
// take the bias of the ridge away.
std::vector<double> DualAscent::without_others(std::size_t j) {
    const std::size_t n = gram_.n();
    std::vector<double> v(n), p(n), q(n);
    v[j] = 1;
    gram_.factor.project(v.data(), 0, p.data());
    for (std::size_t i = 0; i < n; ++i) v[i] = p[i] / p[j];
    for (int correction = 0; correction < 2; ++correction) {
        std::vector<double> wrong = gram_.times(v);
        wrong[j] = 0;
        gram_.factor.project(wrong.data(), 0, q.data());
        for (std::size_t i = 0; i < n; ++i) v[i] -= q[i] - p[i] * (q[j] / p[j]);
    }
    return v;
}

void DualAscent::widen(std::size_t columns) {
    neighbours_.widen(columns);
    gram_.widen(columns);
}

void DualAscent::save(Store& store) const {
    if (near_) neighbours_.save(store);
    if (solves()) gram_.save(store);
}

void DualAscent::load(const Store& store, std::size_t, bool, bool) {
    if (near_) neighbours_.load(store);
    if (solves()) gram_.load(store);
}

template void DoubleUpdate::enter(Expansion<float>&, const Offer<float>&);
template void DoubleUpdate::enter(Expansion<double>&, const Offer<double>&);
template void DualAscent::enter(Expansion<float>&, const Offer<float>&);
template void DualAscent::enter(Expansion<double>&, const Offer<double>&);

}  // namespace onkel
