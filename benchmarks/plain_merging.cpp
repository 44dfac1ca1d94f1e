// The plain twin of BSGD by merging: every partner of the smallest term by golden section to 0.01, as the papers write
// it, with powers of kappa, or (`spare`) with one exponential for each of them and one new point a step.
#include <cmath>
#include <cstddef>
#include <vector>

#include "plain.hpp"

namespace {

struct Pair {
    double a_m, a_n, distance, kappa;

    template <bool spare>
    double merged(double h) const {
        if (spare) return a_m * std::exp(-distance * (1 - h) * (1 - h)) + a_n * std::exp(-distance * h * h);
        return a_m * std::pow(kappa, (1 - h) * (1 - h)) + a_n * std::pow(kappa, h * h);
    }

    template <bool spare>
    double best() const {
        const double ratio = (std::sqrt(5.0) - 1) / 2;
        const double sign = a_m > 0 ? 1 : -1;
        double low = 0, high = 0.5;
        double left = high - ratio * (high - low), right = low + ratio * (high - low);
        double at_left = sign * merged<spare>(left), at_right = sign * merged<spare>(right);
        while (high - low > 0.01) {
            const bool lower = at_left >= at_right;
            (lower ? high : low) = lower ? right : left;
            const double l = high - ratio * (high - low), r = low + ratio * (high - low);
            const double known = lower ? at_left : at_right;  // at the point that stays
            at_left = spare && !lower ? known : sign * merged<spare>(l);
            at_right = spare && lower ? known : sign * merged<spare>(r);
            left = l;
            right = r;
        }
        return (low + high) / 2;
    }
};

// Every example enters with y / t; f is shrunk by 1 - 1/t before.
template <class T, bool spare>
Counts merge(const T* X, std::size_t n, std::size_t columns, const double* y, double gamma, std::size_t budget) {
    Counts counts;
    std::vector<T> rows;
    std::vector<double> a;
    for (std::size_t t = 0; t < n; ++t) {
        const auto shrink = 1 - 1 / static_cast<double>(t + 1);
        for (double& c : a) c *= shrink;
        rows.insert(rows.end(), X + t * columns, X + (t + 1) * columns);
        a.push_back(y[t] / static_cast<double>(t + 1));
        if (a.size() <= budget) continue;
        std::size_t m = 0, partner = a.size();
        for (std::size_t i = 1; i < a.size(); ++i) m = std::abs(a[i]) < std::abs(a[m]) ? i : m;
        double least = 1e300, share = 0, coef = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            if (i == m || a[i] * a[m] <= 0) continue;
            double square = 0;
            for (std::size_t j = 0; j < columns; ++j) {
                const double difference = rows[m * columns + j] - rows[i * columns + j];
                square += difference * difference;
            }
            const Pair pair{a[m], a[i], gamma * square, std::exp(-gamma * square)};
            const double h = pair.best<spare>(), merged = pair.merged<spare>(h);
            const double harm = a[m] * a[m] + a[i] * a[i] + 2 * pair.kappa * a[m] * a[i] - merged * merged;
            if (harm >= least) continue;
            least = harm;
            partner = i;
            share = h;
            coef = merged;
        }
        ++counts.steps;
        for (std::size_t j = 0; j < columns; ++j) {
            T* own = rows.data() + j;
            if (partner < a.size()) {
                own[partner * columns] =
                    static_cast<T>(share * own[m * columns] + (1 - share) * own[partner * columns]);
            }
            own[m * columns] = own[(a.size() - 1) * columns];
        }
        if (partner < a.size()) a[partner] = coef;
        a[m] = a.back();
        a.pop_back();
        rows.resize(a.size() * columns);
    }
    counts.terms = static_cast<std::int64_t>(a.size());
    return counts;
}

}  // namespace

extern "C" void plain_merging(int single, const void* X, const void*, const void*, std::size_t n, std::size_t columns,
                              const double* y, Counts* out, double gamma, std::size_t budget, std::size_t spare) {
    if (single) {
        *out = (spare ? merge<float, true> : merge<float, false>)(static_cast<const float*>(X), n, columns, y, gamma,
                                                                  budget);
    } else {
        *out = (spare ? merge<double, true> : merge<double, false>)(static_cast<const double*>(X), n, columns, y, gamma,
                                                                    budget);
    }
}
