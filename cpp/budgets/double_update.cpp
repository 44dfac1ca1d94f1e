#include "budgets/double_update.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ties.hpp"

namespace onkel {

namespace {

constexpr double ridge = 1e-10;  // as SOLUTION_RIDGE in onkel/budgets/double_update.py
constexpr double infinity = std::numeric_limits<double>::infinity();

double sign(double v) { return (v > 0) - (v < 0); }

struct BestStep {
    double g;
    double q;
};

// The best weight g <= limit of the new term and growth q <= room of term b, for w <= 0 and positive losses.
BestStep double_step(double k, double k_b, double w, double loss, double loss_b, double limit, double room) {
    const double determinant = k * k_b - w * w;
    if (determinant > 1e-12 * k * k_b) {
        const BestStep inside{(k_b * loss - w * loss_b) / determinant, (k * loss_b - w * loss) / determinant};
        if (inside.g <= limit && inside.q <= room) return inside;
    }
    const auto gain = [&](const BestStep& e) {
        return e.g * (loss - k * e.g / 2 - w * e.q) + e.q * (loss_b - k_b * e.q / 2);
    };
    const BestStep first{limit, std::min((loss_b - w * limit) / k_b, room)};
    const BestStep second{std::min((loss - w * room) / k, limit), room};
    return gain(second) > gain(first) ? second : first;
}

// Up to here a loss is none where an old term is chosen, or one is removed: steps that meet no bound leave margins at
// exactly 1, and rounding must not decide.
template <class T>
constexpr double rounding = sizeof(T) == sizeof(float) ? 1e-5 : 1e-9;

// The term of least y_i y k_i among those of a margin below 1, or n.
template <class T>
std::size_t in_conflict(const Terms<T>& f, const T* k, double y) {
    const AlignedVector<double>& score = f.basis["score"].values[0];
    bool any = false;
    std::vector<double> w(f.n());
    for (std::size_t i = 0; i < f.n(); ++i) {
        const double own = sign(f.coef.values[0][i]);
        const bool open = own * f.scale * score[i] < 1 - rounding<T>;
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
    void find_step(const std::vector<double>& v, std::vector<double>& step) {
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
    void find_step(const std::vector<double>& v, std::vector<double>& step) {
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
        solver.find_step(v, step);
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

// The coefficient of term i (still without scale, as its limit) becomes c; rounding stays in the box.
template <class T>
void change_in_box(Terms<T>& f, std::size_t i, double c, double limit) {
    const double y = sign(f.coef.values[0][i]);
    f.change(i, 0, y * std::clamp(y * c, 0.0, limit));
}

}  // namespace

double Boxed::limit_of(const Round& round) const {
    const double limit = C_ * round.weight;
    if (!sane(limit)) throw Diverged("C times the sample weight is", limit);
    return limit;
}

template <class T>
bool Boxed::climb(Terms<T>& f, const Proposal<T>& proposal, double limit) const {
    AlignedVector<double>& score = f.basis["score"].values[0];
    AlignedVector<double>& limits = f.basis["limit"].values[0];
    const double y = proposal.round.y, kxx = proposal.round.kxx;
    double s = f.scale * f.inner_score(proposal.k, 0);
    const double loss = 1 - y * s;
    if (loss <= 0) return false;
    BestStep step{std::min(limit, loss / kxx), 0};
    const std::size_t b = in_conflict(f, proposal.k, y);
    const double y_b = b < f.n() ? sign(f.coef.values[0][b]) : 0;
    const double w = b < f.n() ? y_b * y * static_cast<double>(proposal.k[b]) : infinity;
    if (w <= -rho_) {
        const double a = f.coef.values[0][b];
        const double room = std::max(f.scale * (limits[b] - std::abs(a)), 0.0);
        step = double_step(kxx, f.diagonal[b], w, loss, 1 - y_b * f.scale * score[b], limit, room);
        const double inner = step.q * y_b / f.scale;
        const T* k = f.row_of(f.basis.row(b, proposal.work), proposal.work);
        simd<T>().axpy(score.data(), inner, k, f.n());
        change_in_box(f, b, a + inner, limits[b]);
        s += step.q * y_b * static_cast<double>(proposal.k[b]);
    }
    const double coef = step.g * y;
    simd<T>().axpy(score.data(), coef / f.scale, proposal.k, f.n());
    f.append(proposal.x, proposal.round.t, kxx, &coef, proposal.work);
    score.back() = (s + coef * kxx) / f.scale;
    limits.back() = limit / f.scale;
    return true;
}

template <class T>
void DoubleUpdate::insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const {
    climb(f, proposal, limit_of(proposal.round));
}

// ---- Box ----

template <class T>
Box::Box(const Terms<T>& f) : a(f.n()), slack(f.n()), least(f.n()), most(f.n()) {
    const AlignedVector<double>& score = f.basis["score"].values[0];
    const AlignedVector<double>& limits = f.basis["limit"].values[0];
    for (std::size_t i = 0; i < f.n(); ++i) {
        a[i] = f.scale * f.coef.values[0][i];
        const double y = sign(a[i]), end = y * f.scale * limits[i];
        slack[i] = y - f.scale * score[i];
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

void Gram::append(const double* k, double kxx) {
    row_.assign(k, k + n());
    row_.push_back(kxx);
    factor.append(k, kxx * (1 + ridge));
    K_.append(row_.data());
}

void Gram::remove(std::size_t i) {
    K_.remove(i);
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
}

// ---- DualAscent ----

template <class T>
void DualAscent::insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const {
    const bool full = f.n() == budget_;
    if (full && proposal.round.loss <= rounding<T>) return;  // no room for a loss that is none
    const double limit = limit_of(proposal.round);
    if (full) make_room(f, memory, proposal.work);
    if (!climb(f, proposal, limit)) return;
    if (near_) {
        const double* k = memory.neighbours.row(f, proposal);
        memory.k.assign(k, k + f.n() - 1);
        memory.k.push_back(proposal.round.kxx);
        memory.neighbours.append(f, proposal.x, memory.k);
    }
    if (solves()) {
        memory.gram.append(memory.doubles.row(f, proposal), proposal.round.kxx);
        memory.doubles.append(f, proposal.x);
    }
}

template <class T>
void DualAscent::make_room(Terms<T>& f, Memory<T>& memory, Workspace<T>& work) const {
    const Box box(f);
    const std::size_t j = victim(f, box, memory);
    AlignedVector<double>& score = f.basis["score"].values[0];
    const AlignedVector<double>& limits = f.basis["limit"].values[0];
    std::vector<double> v(f.n());
    if (solves()) {
        v = share(box, j, memory.gram);
        simd<double>().axpy(score.data(), -1 / f.scale, memory.gram.times(v).data(), f.n());
    } else {
        v[j] = box.a[j];
        const double part = to_nearest(f, box, j, memory.neighbours);
        if (part != 0) v[static_cast<std::size_t>(memory.neighbours.nearest(j))] = -part;
        for (std::size_t i = 0; i < f.n(); ++i) {
            if (v[i] == 0) continue;
            simd<T>().axpy(score.data(), -v[i] / f.scale, f.row_of(f.basis.row(i, work), work), f.n());
        }
    }
    for (std::size_t i = 0; i < f.n(); ++i) {
        if (v[i] != 0) change_in_box(f, i, (box.a[i] - v[i]) / f.scale, limits[i]);
    }
    for (std::size_t i = f.n(); i-- > 0;) {
        if (std::abs(f.coef.values[0][i]) > 1e-12 * limits[i]) continue;
        f.remove(i, work);
        if (near_) memory.neighbours.remove(f, i);
        if (solves()) {
            memory.gram.remove(i);
            memory.doubles.remove(i);
        }
    }
}

template <class T>
inline double DualAscent::to_nearest(const Terms<T>& f, const Box& box, std::size_t j,
                                     const Neighbours<T>& neighbours) const {
    if (!near_ || neighbours.nearest(j) == Neighbours<T>::none) return 0;
    const auto i = static_cast<std::size_t>(neighbours.nearest(j));
    const double whole = box.a[j] * neighbours.affinity(j) / f.diagonal[i];
    return std::min(std::max(whole, box.least[i] - box.a[i]), box.most[i] - box.a[i]);  // without branches
}

// The term of the largest dual ascent.
template <class T>
std::size_t DualAscent::victim(const Terms<T>& f, const Box& box, Memory<T>& memory) const {
    const Neighbours<T>& neighbours = memory.neighbours;
    std::vector<double> descent(f.n()), sizes(f.n());
    double largest = 0;
    for (const double s : box.slack) largest = std::max(largest, std::abs(s));
    for (std::size_t j = 0; j < f.n(); ++j) {
        const double length2 = box.a[j] * box.a[j] * f.diagonal[j];
        descent[j] = box.a[j] * box.slack[j] + length2 / 2;
        sizes[j] = std::abs(box.a[j]) * (2 + largest) + length2;  // y - f(x) is a difference, f(x) a sum over all terms
    }
    if (near_ && !cheap_) {
        for (std::size_t j = 0; j < f.n(); ++j) {
            if (neighbours.nearest(j) == Neighbours<T>::none) continue;
            const auto i = static_cast<std::size_t>(neighbours.nearest(j));
            const double part = to_nearest(f, box, j, neighbours);
            descent[j] -= part * (box.slack[i] + box.a[j] * neighbours.affinity(j) - part * f.diagonal[i] / 2);
        }
    } else if (solves() && !cheap_) {
        const Square P = memory.gram.factor.inverse();
        for (std::size_t j = 0; j < f.n(); ++j) {
            const std::vector<double> v = share(box, j, memory.gram, &P);
            const double lost2 = approximate_ ? memory.gram.length2(v, j, P[j])
                                              : simd<double>().dot(v.data(), memory.gram.times(v).data(), v.size());
            descent[j] = simd<double>().dot(v.data(), box.slack.data(), v.size()) + lost2 / 2;
        }
    }
    return oldest_of_least(descent, f.born, sizes);
}

std::vector<double> DualAscent::share(const Box& box, std::size_t j, Gram& gram, const Square* P) const {
    std::vector<double> v = P ? std::vector<double>((*P)[j], (*P)[j] + P->n()) : residual(j, gram);
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
        descend(gram, v, least, most);
        make_smallest(v, least, most, gram, ByInverse(*P));
    } else {
        make_smallest(v, least, most, gram, ByMatrix(gram));
    }
    return v;
}

// Coefficients of k(x_j, .) less its projection on the other terms: v_j = 1, and K v is 0 elsewhere. Two corrections
// take the bias of the ridge away, but for directions of eigenvalues near the ridge and below.
std::vector<double> DualAscent::residual(std::size_t j, Gram& gram) {
    const std::size_t n = gram.n();
    std::vector<double> v(n), p(n), q(n);
    v[j] = 1;
    gram.factor.project(v.data(), 0, p.data());
    for (std::size_t i = 0; i < n; ++i) v[i] = p[i] / p[j];
    for (int correction = 0; correction < 2; ++correction) {
        std::vector<double> wrong = gram.times(v);
        wrong[j] = 0;
        gram.factor.project(wrong.data(), 0, q.data());
        for (std::size_t i = 0; i < n; ++i) v[i] -= q[i] - p[i] * (q[j] / p[j]);
    }
    return v;
}

template <class T>
void DualAscent::Memory<T>::widen(std::size_t) {
    neighbours.widen();
    doubles.widen();
}

template <class T>
void DualAscent::Memory<T>::save(Store& store) const {
    if (part.near_) neighbours.save(store);
    if (part.solves()) gram.save(store);
}

template <class T>
void DualAscent::Memory<T>::load(const Store& store, std::size_t terms) {
    if (part.near_) neighbours.load(store, terms);
    if (!part.solves()) return;
    gram.load(store);
    doubles.load(gram.n(), terms);
}

Started<RunningBudget> DoubleUpdate::start(const Run& run) const { return started(*this, run); }
Started<RunningBudget> DualAscent::start(const Run& run) const { return started(*this, run); }

}  // namespace onkel
