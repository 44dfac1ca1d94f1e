#include "linalg.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace onkel {

namespace {

double dot(const double* a, const double* b, std::size_t n) {
    double sums[8] = {};  // so that the compiler may use vectors
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (std::size_t k = 0; k < 8; ++k) sums[k] += a[i + k] * b[i + k];
    }
    for (; i < n; ++i) sums[0] += a[i] * b[i];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// Q' A Q has the diagonal d and e beside it (e[i] between i and i + 1); Q comes transposed.
void to_three_diagonals(std::vector<double>& A, std::size_t n, std::vector<double>& d, std::vector<double>& e,
                        std::vector<double>& Q) {
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
            for (std::size_t j = 0; j < m; ++j) row[j] -= v[i] * p[j] + p[i] * v[j];
        }
    }
    d[n - 1] = A[n * n - 1];
    Q.assign(n * n, 0);
    for (std::size_t i = 0; i < n; ++i) Q[i * n + i] = 1;
    for (std::size_t k = reflections.size(); k-- > 0;) {  // rows of the transposed Q are its columns
        const std::vector<double>& w = reflections[k];
        for (std::size_t i = k + 1; i < n; ++i) {
            double* row = Q.data() + i * n + k + 1;
            const double along = dot(row, w.data(), w.size());
            for (std::size_t j = 0; j < w.size(); ++j) row[j] -= along * w[j];
        }
    }
}

void rotate(double* a, double* b, double c, double s, std::size_t n) {
    for (std::size_t k = 0; k < n; ++k) {
        const double f = b[k];
        b[k] = s * a[k] + c * f;
        a[k] = c * a[k] - s * f;
    }
}

}  // namespace

void eigen(std::vector<double> A, std::size_t n, std::vector<double>& values, std::vector<double>& vectors) {
    constexpr double epsilon = std::numeric_limits<double>::epsilon();
    std::vector<double>& d = values;
    std::vector<double> e(n, 0.0);
    d.assign(n, 0);
    vectors.assign(n * n, 0);
    if (n == 0) return;
    to_three_diagonals(A, n, d, e, vectors);
    for (std::size_t l = 0; l < n; ++l) {
        for (int sweep = 0;; ++sweep) {
            std::size_t m = l;
            while (m + 1 < n && std::abs(e[m]) > epsilon * (std::abs(d[m]) + std::abs(d[m + 1]))) ++m;
            if (m == l) break;
            if (sweep == 60) throw std::runtime_error("the eigenvalues of a kernel matrix do not converge");
            double g = (d[l + 1] - d[l]) / (2 * e[l]);
            g = d[m] - d[l] + e[l] / (g + std::copysign(std::hypot(g, 1.0), g));
            double s = 1, c = 1, shift = 0;
            std::size_t i = m;
            for (; i-- > l;) {
                const double f = s * e[i], b = c * e[i];
                const double r = std::hypot(f, g);
                e[i + 1] = r;
                if (r == 0) {  // it falls apart here
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
                rotate(vectors.data() + i * n, vectors.data() + (i + 1) * n, c, s, n);
            }
            if (i != l - 1) continue;
            d[l] -= shift;
            e[l] = g;
            e[m] = 0;
        }
    }
}

}  // namespace onkel
