#include "budgets/landmarks.hpp"

#include <algorithm>
#include <cmath>

#include "core/linalg.hpp"

namespace onkel {

template <class T>
void Landmarks::insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const {
    if (f.n() < budget_) {
        append(f, proposal);
        if (eager_ && f.n() == budget_) become_linear(f, memory);
        return;
    }
    if (memory.transform.empty()) become_linear(f, memory);
    const T* step = step_along(proposal.k, memory);
    for (std::size_t o = 0; o < f.outputs; ++o) f.add(o, proposal.coef[o] / f.scale, step);
}

template <class T>
const T* Landmarks::step_along(T* k, Memory<T>& memory) const {
    std::optional<Matrix<T>>& matrix = memory.matrix;
    const std::size_t rank = memory.transform.size() / budget_;
    if (!matrix) {
        std::vector<double> transposed(memory.transform.size());
        for (std::size_t r = 0; r < rank; ++r) {
            for (std::size_t i = 0; i < budget_; ++i) transposed[i * rank + r] = memory.transform[r * budget_ + i];
        }
        matrix.emplace(transposed, budget_, rank);
    }
    static thread_local AlignedVector<T> z, step;
    z.resize(rank);
    step.resize(matrix->padded());
    std::fill(k + budget_, k + matrix->padded(), T(0));  // up to whole tiles, which may hold anything
    matrix->multiply_transposed(k, z.data());
    matrix->multiply({z.data(), nullptr, nullptr, 1, rank}, step.data(), 0);
    return step.data();
}

template <class T>
void Landmarks::become_linear(Terms<T>& f, Memory<T>& memory) const {
    const std::size_t n = budget_;
    const std::vector<double> K = f.kernel_matrix();
    std::vector<double> values, vectors;
    eigen(K, n, values, vectors);
    std::vector<std::size_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
    const double least = (sizeof(T) == sizeof(float) ? 1e-5 : 1e-10) * std::max(values[order[0]], 0.0);
    memory.transform.clear();
    std::vector<std::vector<double>> projected(f.outputs, std::vector<double>(n, 0.0));
    for (std::size_t r = 0; r < rank_ && values[order[r]] > least; ++r) {
        const double* v = vectors.data() + order[r] * n;
        for (std::size_t i = 0; i < n; ++i) memory.transform.push_back(v[i] / std::sqrt(values[order[r]]));
        for (std::size_t o = 0; o < f.outputs; ++o) {
            const double along = simd<double>().dot(v, f.coef.values[o].data(), n);
            simd<double>().axpy(projected[o].data(), along, v, n);
        }
    }
    for (std::size_t o = 0; o < f.outputs; ++o) {
        for (std::size_t i = 0; i < n; ++i) f.change(i, o, projected[o][i]);
    }
}

template <class T>
void Landmarks::Memory<T>::save(Store& store) const {
    const std::size_t rows = transform.size() / part.budget_;
    store.put("budget.transform", transform, {rows, rows ? part.budget_ : 0});
}

template <class T>
void Landmarks::Memory<T>::load(const Store& store, std::size_t) {
    transform = store.get<double>("budget.transform", 2);
    matrix.reset();
    const std::vector<std::size_t>& shape = store.shape("budget.transform");
    if (!transform.empty() && (shape[1] != part.budget_ || shape[0] > part.rank_)) {
        Store::refuse("budget.transform", "has the wrong shape");
    }
}

Started<RunningBudget> Landmarks::start(const Run& run) const { return started(*this, run); }

}  // namespace onkel
