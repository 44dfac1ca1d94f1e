// Budgets that remove a term, or refuse one. The definitions are in onkel/budgets/removal.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "budgets/base.hpp"
#include "core/random.hpp"

namespace onkel {

class Truncate final : public Budget {
public:
    explicit Truncate(double rounds) : rounds_(rounds) {}
    Started<RunningBudget> start(const Run& run) const override;
    BudgetTraits traits() const override { return {.every_round = true}; }
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const;

private:
    double rounds_;
};

class Stop final : public Budget {
public:
    explicit Stop(std::size_t budget) : budget_(budget) {}
    Started<RunningBudget> start(const Run& run) const override;
    bool keeps_terms(std::size_t n, const PartMemory&) const { return n == budget_; }
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const;

private:
    std::size_t budget_;
};

// The memory of budgets that draw the term to remove.
struct Draws : PartMemory {
    Draws(const Budget&, const Run& run) : random(run.seed, "removal") {}
    void save(Store& store) const { store.put("budget.random", random.state); }
    void load(const Store& store, std::size_t) { random.state = store.get<std::uint64_t>("budget.random"); }

    Random random;
};

// One term leaves when a new one finds no room: drawn at random, the oldest, or that of least |coef|.
enum class Leaves { random, oldest, smallest };

template <Leaves who>
class Replace final : public Budget {
public:
    template <class T>
    using Memory = std::conditional_t<who == Leaves::random, Draws, PartMemory>;

    Replace(std::size_t budget, bool unbiased, std::optional<double> cap)
        : budget_(budget), unbiased_(unbiased), cap_(cap) {}
    Started<RunningBudget> start(const Run& run) const override;
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const;

private:
    template <class T>
    static std::size_t victim(const Terms<T>& f, Memory<T>& memory);

    std::size_t budget_;
    bool unbiased_;
    std::optional<double> cap_;
};

using RemoveRandom = Replace<Leaves::random>;
using RemoveOldest = Replace<Leaves::oldest>;
using ReplaceSmallest = Replace<Leaves::smallest>;

class RemoveWeighted final : public Budget {
public:
    template <class T>
    using Memory = Draws;

    RemoveWeighted(std::size_t budget, std::optional<double> cap) : budget_(budget), cap_(cap) {}
    Started<RunningBudget> start(const Run& run) const override;
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, Draws& memory) const;

private:
    std::size_t budget_;
    std::optional<double> cap_;
};

class RemoveSmallest final : public Budget {
public:
    explicit RemoveSmallest(std::size_t budget) : budget_(budget) {}
    Started<RunningBudget> start(const Run& run) const override;
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const;

private:
    std::size_t budget_;
};

}  // namespace onkel
