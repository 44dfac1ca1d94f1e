// Budgets: the way a new term enters an expansion. Their memory is their state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hypothesis.hpp"
#include "matrix.hpp"
#include "random.hpp"
#include "updates.hpp"

namespace onkel {

// Writes the overloads for float and double from one template `enter` of the derived class.
template <class Self, class Base = Budget>
class BudgetFor : public Base {
public:
    using Base::Base;
    void insert(Expansion<float>& f, const Offer<float>& offer) final { static_cast<Self&>(*this).enter(f, offer); }
    void insert(Expansion<double>& f, const Offer<double>& offer) final { static_cast<Self&>(*this).enter(f, offer); }
};

class Unlimited final : public BudgetFor<Unlimited> {
public:
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);
};

class Truncate final : public BudgetFor<Truncate> {
public:
    explicit Truncate(double rounds) : rounds_(rounds) {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);
    bool watches() const override { return true; }

private:
    double rounds_;
};

class Stop final : public BudgetFor<Stop> {
public:
    explicit Stop(std::size_t budget) : budget_(budget) {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);

    bool settled(std::size_t n) const override { return n == budget_; }

private:
    std::size_t budget_;
};

// The first `budget` terms become the landmarks of a Nyström map, and steps are taken in its features.
class Landmarks final : public BudgetFor<Landmarks> {
public:
    Landmarks(std::size_t budget, std::size_t rank, const std::string& change)
        : budget_(budget), rank_(rank), eager_(change == "eager") {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);
    void save(Store& store) const override;
    void load(const Store& store, std::size_t columns, bool sparse, bool single) override;

    bool settled(std::size_t) const override { return !transform_.empty(); }

private:
    template <class T>
    void become_linear(Expansion<T>& f);
    // M'M k, with M the transform as T; k has room for whole tiles
    template <class T>
    const T* step_along(T* k);

    std::size_t budget_;
    std::size_t rank_;
    bool eager_;
    std::vector<double> transform_;          // M = D^-1/2 V', row by row; empty before the switch
    std::unique_ptr<Matrix<float>> single_;  // M' in tiles, made when it is first used
    std::unique_ptr<Matrix<double>> double_;
};

// Where the least value is; among those equal up to rounding, the term that entered first. `size` is that of the
// numbers the values are differences of.
std::size_t oldest_of_least(const std::vector<double>& values, std::span<const double> born, double size = 0);

// |coef_i|^2, without scale
template <class T>
double squared_norm(const Expansion<T>& f, std::size_t i) {
    double total = 0;
    for (const auto& c : f.coef.values) total += c[i] * c[i];
    return total;
}

// Is there no room for another term?
template <class T>
bool full(const Expansion<T>& f, const Offer<T>& offer, std::size_t budget) {
    return f.n() == budget || offer.round.room <= 0;
}

// The term of least |coef|; among equals the one that entered first.
template <class T>
std::size_t smallest(const Expansion<T>& f);

// One term leaves when a new one finds no room: drawn at random, the oldest, or that of least |coef|.
enum class Leaves { random, oldest, smallest };

template <Leaves who>
class Replace final : public BudgetFor<Replace<who>> {
public:
    Replace(std::size_t budget, bool unbiased, std::optional<double> cap)
        : budget_(budget), unbiased_(unbiased), cap_(cap) {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);
    void start(std::uint64_t seed) override { random_ = Random(seed, "removal"); }
    void save(Store& store) const override {
        if (who == Leaves::random) store.put("budget.random", random_.state);
    }
    void load(const Store& store, std::size_t, bool, bool) override {
        if (who == Leaves::random) random_.state = store.get<std::uint64_t>("budget.random");
    }

private:
    std::size_t budget_;
    bool unbiased_;
    std::optional<double> cap_;
    Random random_;
};

using RemoveRandom = Replace<Leaves::random>;
using RemoveOldest = Replace<Leaves::oldest>;
using ReplaceSmallest = Replace<Leaves::smallest>;

class RemoveWeighted final : public BudgetFor<RemoveWeighted> {
public:
    RemoveWeighted(std::size_t budget, std::optional<double> cap) : budget_(budget), cap_(cap) {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);
    void start(std::uint64_t seed) override { random_ = Random(seed, "removal"); }
    void save(Store& store) const override { store.put("budget.random", random_.state); }
    void load(const Store& store, std::size_t, bool, bool) override {
        random_.state = store.get<std::uint64_t>("budget.random");
    }

private:
    std::size_t budget_;
    std::optional<double> cap_;
    Random random_;
};

class RemoveSmallest final : public BudgetFor<RemoveSmallest> {
public:
    explicit RemoveSmallest(std::size_t budget) : budget_(budget) {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);

private:
    std::size_t budget_;
};

class RemoveByMargin final : public BudgetFor<RemoveByMargin> {
public:
    RemoveByMargin(std::size_t budget, double beta, bool distil) : budget_(budget), beta_(beta), distil_(distil) {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);
    std::vector<std::string> columns() const override { return {"score"}; }

private:
    std::size_t budget_;
    double beta_;
    bool distil_;
};

// The last examples of the stream with their targets.
template <class T>
struct Recent {
    explicit Recent(std::size_t columns, bool sparse)
        : basis(columns, sparse), born(basis.declare("born", 1).values[0]), y(basis.declare("y", 1).values[0]) {}
    Basis<T> basis;
    Vectors<double>& born;
    Vectors<double>& y;
};

class RemoveByEvaluation final : public BudgetFor<RemoveByEvaluation> {
public:
    RemoveByEvaluation(std::size_t budget, std::optional<std::size_t> recent)
        : budget_(budget), size_(recent.value_or(budget)) {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);
    bool watches() const override { return true; }
    std::vector<std::string> columns() const override { return {"score"}; }
    void widen(std::size_t columns) override;
    void save(Store& store) const override;
    void load(const Store& store, std::size_t columns, bool sparse, bool single) override;

private:
    template <class T>
    std::unique_ptr<Recent<T>>& recent();
    template <class T>
    std::size_t victim(const Expansion<T>& f, Workspace<T>& work);

    std::size_t budget_;
    std::size_t size_;
    std::unique_ptr<Recent<float>> recent32_;
    std::unique_ptr<Recent<double>> recent64_;
};

class Forget final : public BudgetFor<Forget> {
public:
    Forget(std::size_t budget, const std::string& variant, bool absolute, bool legacy_root)
        : budget_(budget), basic_(variant == "basic"), absolute_(absolute), legacy_root_(legacy_root) {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);
    void save(Store& store) const override;
    void load(const Store& store, std::size_t, bool, bool) override;

private:
    template <class T>
    void enter_basic(Expansion<T>& f, const Offer<T>& offer);
    double factor(double s, double mu, double room) const;

    std::size_t budget_;
    bool basic_;
    bool absolute_;
    bool legacy_root_;
    double M_ = 0;
    double Q_ = 0;
    double norm2_ = 0;
};

}  // namespace onkel
