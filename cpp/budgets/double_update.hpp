// Double updates and dual ascent: budgets whose terms stay in boxes. The definitions are in
// onkel/budgets/double_update.py.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "budgets/base.hpp"
#include "budgets/projection.hpp"
#include "budgets/span.hpp"
#include "core/linalg.hpp"

namespace onkel {

// What both have: the step, and each term's own score and limit: f(x_i), and how large |coef_i| may be.
class Boxed : public Budget {
public:
    Boxed(double C, double rho) : C_(C), rho_(rho) {}
    std::vector<BudgetColumn> columns() const override {
        return {{"score", BudgetColumn::scores}, {"limit", BudgetColumn::weight}};
    }

protected:
    // The largest weight of the new term.
    double limit_of(const Round& round) const;
    // The double update, where there is a loss. Did a term enter?
    template <class T>
    bool climb(Terms<T>& f, const Proposal<T>& proposal, double limit) const;

private:
    double C_;
    double rho_;
};

class DoubleUpdate final : public Boxed {
public:
    using Boxed::Boxed;
    Started<RunningBudget> start(const Run& run) const override;
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const;
};

// The terms as a point of the dual, with the factor `scale` in.
struct Box {
    template <class T>
    explicit Box(const Terms<T>& f);
    // Clips v so that all a - v stay in their boxes and that of term j becomes 0. Returns whether v was clipped.
    bool clip(std::vector<double>& v, std::size_t j) const;

    std::vector<double> a;
    std::vector<double> slack;  // y_i - f(x_i)
    std::vector<double> least;  // of a
    std::vector<double> most;
};

// The kernel matrix of the terms by slot, in double, and its factor with a ridge.
class Gram {
public:
    explicit Gram(bool inverse) : factor(inverse, 0) {}

    std::size_t n() const { return K_.n(); }
    const Square& matrix() const { return K_; }
    std::vector<double> times(const std::vector<double>& v) const;
    // v'Kv for v = u clipped to the boxes, where u = (v_j / P_jj) * row j of P, the inverse of K with the ridge.
    // (K + ridge) u is 0 except at j, so only entry j and the clipped entries contribute.
    double length2(const std::vector<double>& v, std::size_t j, const double* row) const;

    // A term of this kernel row has entered the expansion, or one has left it.
    void append(const double* k, double kxx);
    void remove(std::size_t i);

    void save(Store& store) const;
    void load(const Store& store);

    Factor factor;

private:
    Square K_;
    std::vector<double> row_;  // of the new example, itself included
};

class DualAscent final : public Boxed {
public:
    template <class T>
    struct Memory : PartMemory {
        Memory(const DualAscent& budget, const Run&) : part(budget), gram(!budget.cheap_) {}
        void widen(std::size_t columns);
        void save(Store& store) const;
        void load(const Store& store, std::size_t terms);

        const DualAscent& part;
        Neighbours<T> neighbours;
        Gram gram;
        Doubles<T> doubles;     // for its rows
        std::vector<double> k;  // the row of the new example, itself included
    };

    DualAscent(std::size_t budget, double C, double rho, const std::string& maintenance, bool cheap)
        : Boxed(C, rho),
          budget_(budget),
          near_(maintenance == "nearest"),
          approximate_(maintenance == "approximate"),
          project_(maintenance == "project"),
          cheap_(cheap || maintenance == "remove") {}
    Started<RunningBudget> start(const Run& run) const override;
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const;

private:
    bool solves() const { return approximate_ || project_; }
    template <class T>
    void make_room(Terms<T>& f, Memory<T>& memory, Workspace<T>& work) const;
    template <class T>
    std::size_t victim(const Terms<T>& f, const Box& box, Memory<T>& memory) const;
    // The change of the coefficient of the term nearest to j when j is removed.
    template <class T>
    double to_nearest(const Terms<T>& f, const Box& box, std::size_t j, const Neighbours<T>& neighbours) const;
    // The v of giving up term j; from P = K^-1 where a rough answer will do.
    std::vector<double> share(const Box& box, std::size_t j, Gram& gram, const Square* P = nullptr) const;
    static std::vector<double> residual(std::size_t j, Gram& gram);

    std::size_t budget_;
    bool near_;
    bool approximate_;
    bool project_;
    bool cheap_;
};

}  // namespace onkel
