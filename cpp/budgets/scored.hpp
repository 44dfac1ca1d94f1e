// Budgets that know f at every stored example, and remove a term that is not needed to classify examples well. The
// definitions are
// in onkel/budgets/scored.py.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "budgets/base.hpp"

namespace onkel {

// They keep f(x_i) in the column `score`.
class Scored : public Budget {
public:
    std::vector<BudgetColumn> columns() const override { return {{"score", BudgetColumn::scores}}; }
};

class RemoveByMargin final : public Scored {
public:
    RemoveByMargin(std::size_t budget, double beta, bool distil) : budget_(budget), beta_(beta), distil_(distil) {}
    Started<RunningBudget> start(const Run& run) const override;
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const;

private:
    std::size_t budget_;
    double beta_;
    bool distil_;
};

class RemoveByEvaluation final : public Scored {
public:
    // The last examples of the stream with their targets.
    template <class T>
    struct Memory : PartMemory {
        Memory(const RemoveByEvaluation&, const Run& run) : recent(run.columns, run.sparse) {}
        void make_room(std::size_t columns) { recent.make_room(columns); }
        void widen(std::size_t columns) { recent.widen(columns); }
        void join(const Places& at) {
            for (const std::size_t place : at) {
                for (double& label : y) label += label >= static_cast<double>(place);
            }
        }
        void save(Store& store) const { recent.save(store, "budget.recent"); }
        void load(const Store& store, std::size_t) { recent.load(store, "budget.recent"); }

        Basis<T> recent;
        AlignedVector<double>& born = recent.declare("born", 1).values[0];
        AlignedVector<double>& y = recent.declare("y", 1).values[0];
    };

    RemoveByEvaluation(std::size_t budget, std::optional<std::size_t> recent)
        : budget_(budget), recent_(recent.value_or(budget)) {}
    Started<RunningBudget> start(const Run& run) const override;
    BudgetTraits traits() const override { return {.every_round = true}; }
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const;

private:
    template <class T>
    static std::size_t victim(const Terms<T>& f, const Memory<T>& memory, Workspace<T>& work);

    std::size_t budget_;
    std::size_t recent_;
};

}  // namespace onkel
