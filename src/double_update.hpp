// Double updates and dual ascent: budgets whose terms stay in boxes. The definitions are in onkel/double_update.py.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "budgets.hpp"
#include "linalg.hpp"
#include "projections.hpp"
#include "span.hpp"

namespace onkel {

// What both have: the step, and each term's own score and limit.
class Boxed : public Budget {
public:
    Boxed(double C, double rho) : C_(C), rho_(rho) {}
    std::vector<std::string> columns() const override { return {"score", "limit"}; }

protected:
    // The largest weight of the new term.
    double limit_of(const Round& round) const;
    // The double update, where there is a loss. Did a term enter?
    template <class T>
    bool climb(Expansion<T>& f, const Offer<T>& offer, double limit) const;

private:
    double C_;
    double rho_;
};

class DoubleUpdate final : public BudgetFor<DoubleUpdate, Boxed> {
public:
    using BudgetFor<DoubleUpdate, Boxed>::BudgetFor;
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);
};

// The terms as a point of the dual, with the factor `scale` in.
struct Box {
    template <class T>
    explicit Box(const Expansion<T>& f);
    // The v nearest to this one whose coefficients a - v stay in their boxes, and which takes all of term j. Is it
    // another?
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
    // v'Kv for v_j / P_jj times row j of P, the inverse with the ridge, cut off where boxes end. Uncut, Kv would be
    // zero but at j, so that only what was cut off adds to it.
    double length2(const std::vector<double>& v, std::size_t j, const double* row) const;

    // A term has entered the expansion, or left it.
    template <class T>
    void append(const Expansion<T>& f, const Offer<T>& offer);
    void remove(std::size_t i);

    void widen(std::size_t columns) { terms_.widen(columns); }
    void save(Store& store) const;
    void load(const Store& store);

    Factor factor;

private:
    Doubles terms_;
    Square K_;
    std::vector<double> row_;  // of the new example, itself included
};

class DualAscent final : public BudgetFor<DualAscent, Boxed> {
public:
    DualAscent(std::size_t budget, double C, double rho, const std::string& maintenance, bool cheap)
        : BudgetFor<DualAscent, Boxed>(C, rho),
          budget_(budget),
          near_(maintenance == "nearest"),
          approximate_(maintenance == "approximate"),
          project_(maintenance == "project"),
          cheap_(cheap || maintenance == "remove"),
          gram_(!cheap_) {}
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);
    void widen(std::size_t columns) override;
    void save(Store& store) const override;
    void load(const Store& store, std::size_t columns, bool sparse, bool single) override;

private:
    bool solves() const { return approximate_ || project_; }
    template <class T>
    void make_room(Expansion<T>& f, Workspace<T>& work);
    template <class T>
    std::size_t victim(const Expansion<T>& f, const Box& box);
    // What the nearest of term j would take over.
    template <class T>
    double to_nearest(const Expansion<T>& f, const Box& box, std::size_t j) const;
    // The v of giving up term j; from P = K^-1 where a rough answer will do.
    std::vector<double> share(const Box& box, std::size_t j, const Square* P = nullptr);
    std::vector<double> without_others(std::size_t j);

    std::size_t budget_;
    bool near_;
    bool approximate_;
    bool project_;
    bool cheap_;
    Neighbours neighbours_;
    Gram gram_;
    std::vector<double> k_;  // the row of the new example, itself included
};

}  // namespace onkel
