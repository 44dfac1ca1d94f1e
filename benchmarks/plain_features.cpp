// The plain twins on explicit features: directions and landmarks in rows one after the other, scalar loops, exp,
// sin and cos from the C library, everything in the type of the data. All take steps of the hinge loss.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plain.hpp"

namespace {

// A CSR matrix; without `indices` a row-major array.
template <class T>
struct Rows {
    const T* values;
    const std::int32_t* indices;
    const std::int64_t* starts;
    std::size_t n;
    std::size_t columns;

    const T* operator[](std::size_t i) const { return values + i * columns; }

    T product(std::size_t i, const T* a) const {
        T total = 0;
        if (indices) {
            for (std::int64_t e = starts[i]; e < starts[i + 1]; ++e) total += values[e] * a[indices[e]];
        } else {
            for (std::size_t j = 0; j < columns; ++j) total += (*this)[i][j] * a[j];
        }
        return total;
    }
};

template <class T>
T dot(const std::vector<T>& w, const std::vector<T>& z) {
    T total = 0;
    for (std::size_t i = 0; i < w.size(); ++i) total += w[i] * z[i];
    return total;
}

// Counts a round, and says if it has a step.
template <class T>
bool steps(Counts& counts, T y, T score) {
    counts.mistakes += (score >= 0) != (y > 0);
    const bool inside = y * score < 1;
    counts.steps += inside;
    return inside;
}

// w <- w + eta y z with z = [cos q, sin q] / sqrt(D), q = <directions, x>
template <class T>
Counts fourier(Rows<T> X, const double* y, const T* directions, std::size_t D, T eta) {
    Counts counts;
    std::vector<T> w(2 * D), z(2 * D);
    const T scale = 1 / std::sqrt(static_cast<T>(D));
    for (std::size_t i = 0; i < X.n; ++i) {
        for (std::size_t c = 0; c < D; ++c) {
            const T q = X.product(i, directions + c * X.columns);
            z[c] = scale * std::cos(q);
            z[D + c] = scale * std::sin(q);
        }
        const T target = static_cast<T>(y[i]);
        if (!steps(counts, target, dot(w, z))) continue;
        for (std::size_t c = 0; c < 2 * D; ++c) w[c] += eta * target * z[c];
    }
    return counts;
}

// w <- w + eta y z with z = M k, k the kernel's values at B landmarks; M is (rank, B)
template <class T>
Counts nystrom(Rows<T> X, const double* y, const T* landmarks, std::size_t B, const T* M, std::size_t rank,
               const T* start, T eta, T gamma) {
    Counts counts;
    std::vector<T> w(start, start + rank), z(rank), k(B);
    for (std::size_t i = 0; i < X.n; ++i) {
        for (std::size_t b = 0; b < B; ++b) {
            T distance = 0;
            for (std::size_t j = 0; j < X.columns; ++j) {
                const T difference = X[i][j] - landmarks[b * X.columns + j];
                distance += difference * difference;
            }
            k[b] = std::exp(-gamma * distance);
        }
        for (std::size_t r = 0; r < rank; ++r) {
            T total = 0;
            for (std::size_t b = 0; b < B; ++b) total += M[r * B + b] * k[b];
            z[r] = total;
        }
        const T target = static_cast<T>(y[i]);
        if (!steps(counts, target, dot(w, z))) continue;
        for (std::size_t r = 0; r < rank; ++r) w[r] += eta * target * z[r];
    }
    return counts;
}

// As fourier, with directions exp(g_j) e_cj and a step in g, too
template <class T>
Counts widths(Rows<T> X, const double* y, const T* e, std::size_t D, T start, T eta, T eta_kernel) {
    Counts counts;
    std::vector<T> w(2 * D), z(2 * D), g(X.columns, start), width(X.columns), slope(X.columns),
        directions(D * X.columns);
    const T scale = 1 / std::sqrt(static_cast<T>(D));
    for (std::size_t i = 0; i < X.n; ++i) {
        for (std::size_t j = 0; j < X.columns; ++j) width[j] = std::exp(g[j]);
        for (std::size_t c = 0; c < D; ++c) {
            for (std::size_t j = 0; j < X.columns; ++j) directions[c * X.columns + j] = width[j] * e[c * X.columns + j];
        }
        for (std::size_t c = 0; c < D; ++c) {
            const T q = X.product(i, &directions[c * X.columns]);
            z[c] = scale * std::cos(q);
            z[D + c] = scale * std::sin(q);
        }
        const T target = static_cast<T>(y[i]);
        if (!steps(counts, target, dot(w, z))) continue;
        std::fill(slope.begin(), slope.end(), T(0));
        for (std::size_t c = 0; c < D; ++c) {  // -y df/dg
            const T v = target * (w[c] * z[D + c] - w[D + c] * z[c]);
            for (std::size_t j = 0; j < X.columns; ++j) slope[j] += v * directions[c * X.columns + j] * X[i][j];
        }
        for (std::size_t j = 0; j < X.columns; ++j) g[j] -= eta_kernel * slope[j];
        for (std::size_t c = 0; c < 2 * D; ++c) w[c] += eta * target * z[c];
    }
    return counts;
}

template <class T>
Rows<T> rows(const void* values, const std::int32_t* indices, const std::int64_t* starts, std::size_t n,
             std::size_t columns) {
    return {static_cast<const T*>(values), indices, starts, n, columns};
}

// Calls f with a number of the type of the data.
template <class F>
Counts typed(int single, F f) {
    return single ? f(float()) : f(double());
}

}  // namespace

extern "C" {

void plain_fourier(int single, const void* values, const std::int32_t* indices, const std::int64_t* starts,
                   std::size_t n, std::size_t columns, const double* y, Counts* out, const void* directions,
                   std::size_t D, double eta) {
    *out = typed(single, [&]<class T>(T) {
        return fourier<T>(rows<T>(values, indices, starts, n, columns), y, static_cast<const T*>(directions), D,
                          static_cast<T>(eta));
    });
}

void plain_nystrom(int single, const void* values, const std::int32_t* indices, const std::int64_t* starts,
                   std::size_t n, std::size_t columns, const double* y, Counts* out, const void* landmarks,
                   std::size_t B, const void* M, std::size_t rank, const void* start, double eta, double gamma) {
    *out = typed(single, [&]<class T>(T) {
        return nystrom<T>(rows<T>(values, indices, starts, n, columns), y, static_cast<const T*>(landmarks), B,
                          static_cast<const T*>(M), rank, static_cast<const T*>(start), static_cast<T>(eta),
                          static_cast<T>(gamma));
    });
}

void plain_widths(int single, const void* values, const std::int32_t* indices, const std::int64_t* starts,
                  std::size_t n, std::size_t columns, const double* y, Counts* out, const void* e, std::size_t D,
                  double start, double eta, double eta_kernel) {
    *out = typed(single, [&]<class T>(T) {
        return widths<T>(rows<T>(values, indices, starts, n, columns), y, static_cast<const T*>(e), D,
                         static_cast<T>(start), static_cast<T>(eta), static_cast<T>(eta_kernel));
    });
}
}
