#include "core/linalg.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/errors.hpp"
#include "core/simd.hpp"
#include "core/vectors.hpp"

namespace onkel {

namespace {

// Q' A Q is tridiagonal, with diagonal d and off-diagonal e (e[i] between i and i + 1); returns Q transposed.
void to_tridiagonal(std::vector<double>& A, std::size_t n, std::vector<double>& d, std::vector<double>& e,
                    std::vector<double>& Q) {
    const auto [dot, axpy] = std::pair(simd<double>().dot, simd<double>().axpy);
    std::vector<double> v(n), p(n);
    std::vector<std::vector<double>> reflections;  // I - v v', |v|^2 = 2, on the last elements
    for (std::size_t k = 0; k + 1 < n; ++k) {
        const std::size_t m = n - k - 1;
        double* below = A.data() + k * n + k + 1;  // row k right of the diagonal
        const double length = std::sqrt(dot(below, below, m));
        const double to = below[0] > 0 ? -length : length;
        d[k] = A[k * n + k];
        e[k] = to;
        reflections.emplace_back(m, 0.0);
        if (length == 0) continue;
        v.assign(below, below + m);
        v[0] -= to;
        const double half = std::sqrt(dot(v.data(), v.data(), m) / 2);
        for (double& x : v) x /= half;
        reflections.back() = v;
        for (std::size_t i = 0; i < m; ++i) p[i] = dot(A.data() + (k + 1 + i) * n + k + 1, v.data(), m);
        const double own = dot(p.data(), v.data(), m) / 2;
        for (std::size_t i = 0; i < m; ++i) p[i] -= own * v[i];
        for (std::size_t i = 0; i < m; ++i) {
            double* row = A.data() + (k + 1 + i) * n + k + 1;
            axpy(row, -v[i], p.data(), m);
            axpy(row, -p[i], v.data(), m);
        }
    }
    d[n - 1] = A[n * n - 1];
    Q.assign(n * n, 0);
    for (std::size_t i = 0; i < n; ++i) Q[i * n + i] = 1;
    for (std::size_t k = reflections.size(); k-- > 0;) {  // rows of the transposed Q are its columns
        const std::vector<double>& w = reflections[k];
        for (std::size_t i = k + 1; i < n; ++i) {
            double* row = Q.data() + i * n + k + 1;
            axpy(row, -dot(row, w.data(), w.size()), w.data(), w.size());
        }
    }
}

}  // namespace

void eigen(std::vector<double> A, std::size_t n, std::vector<double>& values, std::vector<double>& vectors) {
    constexpr double epsilon = std::numeric_limits<double>::epsilon();
    std::vector<double>& d = values;
    std::vector<double> e(n, 0.0);
    d.assign(n, 0);
    vectors.assign(n * n, 0);
    double largest = 0;
    for (const double a : A) largest = std::max(largest, std::abs(a));
    const double unit = largest > 0 ? std::ldexp(1.0, std::ilogb(largest)) : 1;  // squares do not over- or underflow
    for (double& a : A) a /= unit;
    if (n == 0) return;
    to_tridiagonal(A, n, d, e, vectors);
    double negligible = 0;  // small eigenvalues of a kernel matrix are noise: no need to get them right
    for (std::size_t i = 0; i < n; ++i) negligible = std::max(negligible, epsilon * (std::abs(d[i]) + std::abs(e[i])));
    for (std::size_t l = 0; l < n; ++l) {
        for (int sweep = 0;; ++sweep) {
            std::size_t m = l;
            while (m + 1 < n && std::abs(e[m]) > negligible) ++m;
            if (m == l) break;
            if (sweep == 60) throw Diverged("an eigenvalue of the kernel matrix is", d[l]);  // does not converge
            double g = (d[l + 1] - d[l]) / (2 * e[l]);
            g = d[m] - d[l] + e[l] / (g + std::copysign(std::hypot(g, 1.0), g));
            double s = 1, c = 1, shift = 0;
            std::size_t i = m;
            for (; i-- > l;) {
                const double f = s * e[i], b = c * e[i];
                const double r = std::sqrt(f * f + g * g);
                e[i + 1] = r;
                if (r == 0) {  // deflation
                    d[i + 1] -= shift;
                    e[m] = 0;
                    break;
                }
                s = f / r;
                c = g / r;
                g = d[i + 1] - shift;
                const double t = (d[i] - g) * s + 2 * c * b;
                shift = s * t;
                d[i + 1] = g + shift;
                g = c * t - b;
                double* below = vectors.data() + (i + 1) * n;
                simd<double>().rotate(c, s, below, vectors.data() + i * n, below, n);
            }
            if (i != l - 1) continue;
            d[l] -= shift;
            e[l] = g;
            e[m] = 0;
        }
    }
    for (double& value : values) {
        value *= unit;
        if (!sane(value)) throw Diverged("an eigenvalue of the kernel matrix is", value);
    }
}

// ---- Square ----

void Square::append(const double* row) {
    if (n_ == stride_) {
        const std::size_t wider = std::max(2 * stride_, std::size_t{16});
        std::vector<double> values(wider * wider);
        for (std::size_t i = 0; i < n_; ++i) std::copy_n((*this)[i], n_, values.data() + i * wider);
        values_.swap(values);
        stride_ = wider;
    }
    for (std::size_t j = 0; j <= n_; ++j) set(n_, j, row[j]);
    ++n_;
}

void Square::remove(std::size_t i) {
    const std::size_t last = --n_;
    values_[last * stride_ + i] = values_[last * stride_ + last];  // becomes the diagonal element of i
    for (std::size_t j = 0; j < last; ++j) {
        values_[i * stride_ + j] = values_[j * stride_ + i] = values_[last * stride_ + j];
    }
}

std::vector<double> Square::values(double on_diagonal) const {
    std::vector<double> out;
    for (std::size_t i = 0; i < n_; ++i) {
        out.insert(out.end(), (*this)[i], (*this)[i] + n_);
        out[i * n_ + i] *= on_diagonal;
    }
    return out;
}

// ---- Factor ----

namespace {

constexpr double ridge = 1e-15;  // as RIDGE in onkel/core/linalg.py

}  // namespace

void Factor::reserve(std::size_t n) {
    if (n <= capacity_) return;
    const std::size_t wider = std::max<std::size_t>({2 * capacity_, n, 64});
    const auto grown_from = [&](const std::vector<double>& table) {
        std::vector<double> grown(wider * wider);
        for (std::size_t i = 0; i < capacity_; ++i) {
            std::copy_n(table.begin() + static_cast<std::ptrdiff_t>(i * capacity_), capacity_,
                        grown.begin() + static_cast<std::ptrdiff_t>(i * wider));
        }
        return grown;
    };
    std::vector<double> columns = grown_from(columns_);
    if (inverse_) rows_ = grown_from(rows_);  // from here on nothing is allocated
    columns_ = std::move(columns);
    capacity_ = wider;
}

void Factor::make_room() {
    reserve(n() + 1);
    onkel::reserve(slots_, n() + 1);
    if (inverse_) onkel::reserve(squares_, n() + 1);
}

double Factor::forward(const double* k, double kxx) {
    u_.resize(n());
    for (std::size_t i = 0; i < n(); ++i) u_[i] = k[slots_[i]];
    simd<double>().forward(columns_.data(), capacity_, n(), u_.data());
    const double rest = kxx - simd<double>().dot(u_.data(), u_.data(), n());
    const double distance2 = rest > threshold_ * kxx ? rest : 0;
    length_ = std::sqrt(distance2 + ridge * kxx);
    return distance2;
}

void Factor::backward() {
    d_ = u_;
    simd<double>().backward(columns_.data(), capacity_, n(), d_.data());
}

void Factor::by_slot(const std::vector<double>& values, double* out) const {
    for (std::size_t i = 0; i < n(); ++i) out[slots_[i]] = values[i];
}

double Factor::project(const double* k, double kxx, double* d) {
    const double distance2 = forward(k, kxx);
    backward();
    by_slot(d_, d);
    return distance2;
}

void Factor::append(const double* k, double kxx) {
    forward(k, kxx);
    if (inverse_) backward();
    append();
}

void Factor::append() {
    const std::size_t at = n();
    reserve(at + 1);
    for (std::size_t j = 0; j < at; ++j) column(j)[at] = u_[j];
    column(at)[at] = length_;
    slots_.push_back(at);
    if (!inverse_) return;
    double* w = row(at);
    for (std::size_t j = 0; j < at; ++j) w[j] = -d_[j] / length_;
    w[at] = 1 / length_;
    count_squares(at);
}

void Factor::remove(std::size_t slot, double* d) {
    const std::size_t last = n() - 1;
    const auto p = static_cast<std::size_t>(std::find(slots_.begin(), slots_.end(), slot) - slots_.begin());
    std::vector<double> x(column(p) + p + 1, column(p) + n());  // column p of L below the diagonal
    // u_ becomes L^-1 k of the leaving term for the new L: row p of L, then left * x in terms of the new columns
    double left = column(p)[p];
    u_.resize(last);
    for (std::size_t j = 0; j < p; ++j) {
        u_[j] = column(j)[p];
        std::copy(column(j) + p + 1, column(j) + n(), column(j) + p);
    }
    // Givens rotations: the later columns become those of a factor of L L' + x x', one place to the left and up
    for (std::size_t j = p + 1; j < n(); ++j) {
        double* other = x.data() + (j - p - 1);
        const double* from = column(j) + j;
        const double h = std::hypot(from[0], other[0]);
        const double c = from[0] / h, s = other[0] / h;
        simd<double>().rotate(c, s, from, other, column(j - 1) + j - 1, n() - j);
        u_[j - 1] = left * s;
        left *= c;
    }
    if (inverse_) remove_from_inverse(p);
    slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(p));
    std::replace(slots_.begin(), slots_.end(), last, slot);
    ++removals_;
    if (!d) return;
    backward();
    by_slot(d_, d);
}

// Rotates column p into the last row, and drops both.
void Factor::remove_from_inverse(std::size_t p) {
    std::vector<double> carry(row(p), row(p) + n());
    std::fill(carry.begin() + static_cast<std::ptrdiff_t>(p) + 1, carry.end(), 0.0);
    squares_.clear();
    for (std::size_t r = 0; r + 1 < n(); ++r) {
        if (r >= p) {
            const double* next = row(r + 1);
            const double h = std::hypot(carry[p], next[p]);
            const double c = carry[p] / h, s = -next[p] / h;
            simd<double>().rotate(c, s, next, carry.data(), row(r), p);
            simd<double>().rotate(c, s, next + p + 1, carry.data() + p + 1, row(r) + p, r + 1 - p);
            carry[p] = h;
        }
        count_squares(r);
    }
}

// Row i of the inverse enters the sums of squares, after those above it.
void Factor::count_squares(std::size_t i) {
    const double* w = row(i);
    squares_.resize(i + 1);
    for (std::size_t j = 0; j <= i; ++j) squares_[j] += w[j] * w[j];
}

void Factor::diagonal(double* out) const { by_slot(squares_, out); }

Square Factor::inverse() const {
    std::vector<double> P(n() * n());  // below the diagonal, in the order of L
    for (std::size_t r = 0; r < n(); ++r) {
        const double* w = rows_.data() + r * capacity_;
        for (std::size_t i = 0; i <= r; ++i) simd<double>().axpy(P.data() + i * n(), w[i], w, i + 1);
    }
    Square out(n());
    for (std::size_t i = 0; i < n(); ++i) {
        for (std::size_t j = 0; j <= i; ++j) out.set(slots_[i], slots_[j], P[i * n() + j]);
    }
    return out;
}

void Factor::inverse_column(std::size_t slot, double* out) const {
    const auto p = static_cast<std::size_t>(std::find(slots_.begin(), slots_.end(), slot) - slots_.begin());
    for (std::size_t i = 0; i < n(); ++i) out[i] = i < p ? 0 : rows_[i * capacity_ + p];
}

void Factor::refresh(const std::vector<double>& K) {
    removals_ = 0;
    Factor fresh(inverse_, 0);
    fresh.reserve(n());
    std::vector<double> k(n());
    for (std::size_t i = 0; i < n(); ++i) {
        for (std::size_t j = 0; j <= i; ++j) k[j] = K[slots_[i] * n() + slots_[j]];
        if (fresh.forward(k.data(), k[i]) == 0) return;  // at the edge of dependence what we have is better
        if (inverse_) fresh.backward();
        fresh.append();
    }
    fresh.threshold_ = threshold_;
    fresh.slots_.swap(slots_);
    *this = std::move(fresh);
}

void Factor::save(Store& store, const std::string& prefix) const {
    std::vector<double> L(n() * n()), W(n() * n());
    for (std::size_t i = 0; i < n(); ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            L[i * n() + j] = columns_[j * capacity_ + i];
            if (inverse_) W[i * n() + j] = rows_[i * capacity_ + j];
        }
    }
    store.put(prefix + ".L", std::move(L), {n(), n()});
    if (inverse_) store.put(prefix + ".W", std::move(W), {n(), n()});
    store.put(prefix + ".slots", std::vector<std::int64_t>(slots_.begin(), slots_.end()), {n()});
    store.put(prefix + ".removals", static_cast<std::int64_t>(removals_));
}

void Factor::load(const Store& store, const std::string& prefix) {
    const auto slots = store.get<std::int64_t>(prefix + ".slots", 1);
    std::vector<bool> seen(slots.size());
    slots_.clear();
    for (const std::int64_t slot : slots) {
        if (slot < 0 || static_cast<std::size_t>(slot) >= slots.size() || seen[static_cast<std::size_t>(slot)]) {
            Store::refuse(prefix + ".slots", "is not a permutation of 0..n-1");
        }
        seen[static_cast<std::size_t>(slot)] = true;
        slots_.push_back(static_cast<std::size_t>(slot));
    }
    reserve(n());
    for (const char* name : {".L", ".W"}) {
        const bool is_inverse = name[1] == 'W';
        if (is_inverse && !inverse_) continue;
        const auto values = store.get<double>(prefix + name, 2);
        if (store.shape(prefix + name) != std::vector<std::size_t>{n(), n()} || values.size() != n() * n()) {
            Store::refuse(prefix + name, "has the wrong shape");
        }
        for (std::size_t i = 0; i < n(); ++i) {
            for (std::size_t j = 0; j <= i; ++j) (is_inverse ? row(i)[j] : column(j)[i]) = values[i * n() + j];
        }
    }
    squares_.clear();
    for (std::size_t i = 0; inverse_ && i < n(); ++i) count_squares(i);
    removals_ = static_cast<std::size_t>(store.get<std::int64_t>(prefix + ".removals"));
}

}  // namespace onkel
