// Hypotheses: the function being learned, what is stored of it and how it scores. The definitions, in array notation,
// are in onkel/hypotheses/.
#pragma once

#include <cstddef>

#include "core/basis.hpp"
#include "core/part.hpp"
#include "core/row.hpp"
#include "core/store.hpp"
#include "updates/base.hpp"

namespace onkel {

struct FunctionTraits {
    bool unit = false;               // is k(x, x), or |z(x)|^2, 1 for every x?
    bool may_overflow = true;        // can numbers of an example overflow? Then `check` is called
    bool idle_without_step = false;  // is nothing to be done in a round without a step?
};

// What an update proposes in a round: the example x, its kernel values or features k, and the coefficients of the new
// term, one for each output (null: no step). If each weight has a step of its own, also `steps`, (outputs, features).
template <class T>
struct Proposal {
    const Round& round;
    Row<T> x;
    T* k;
    const double* coef;
    Workspace<T>& work;
    const double* steps = nullptr;
};

class Map;

// The function that a learner holds: f(x) = scale * sum_i coef_i k_i, with `row` giving the numbers k_i of an example.
template <class T>
class Function {
public:
    explicit Function(const Run& run) : outputs(run.outputs), run_(run) {}
    virtual ~Function() = default;
    Function(const Function&) = delete;
    Function& operator=(const Function&) = delete;

    bool averages() const { return run_.average != Average::none; }
    virtual std::size_t n() const = 0;         // stored terms
    virtual std::size_t features() const = 0;  // weights of an explicit map, for each output; 0 if there are also terms
    virtual std::size_t columns() const = 0;

    virtual FunctionTraits traits() const = 0;
    // Refuse an example whose numbers would overflow: throws TooLarge.
    virtual void check(Row<T> x) const = 0;
    // The same for an example that is only scored. Default: none is refused, as scores do not need k(x, x).
    virtual void check_query(Row<T>) const {}
    // The row of example i of X, which is about to be learned from: its kernel values or features.
    virtual T* row(const Rows<T>& X, std::size_t i, Workspace<T>& work) = 0;
    // With explicit features: how many rows are computed together, and stay in place until the next ones are computed.
    virtual std::size_t block_rows() const { return 1; }
    // Forget the rows that were computed: their examples may no longer be read.
    virtual void drop_block() = 0;
    // k(x, x), or |z(x)|^2
    virtual double length2(Row<T> x) const = 0;

    virtual void scores(const T* k, double* s) const = 0;
    // The average after t rounds: of the models before each of them and the current one.
    virtual void average_scores(Row<T> x, const T* k, double t, Workspace<T>& work, double* s) const = 0;
    // Scores of many examples, written row by row.
    virtual void predict(const Rows<T>& X, bool averaged, double t, double* out) const = 0;

    // With averages: a round begins; adds the current model to the sums over the rounds.
    virtual void add_to_average() = 0;
    // Undoes `add_to_average`, for a round that diverged before anything moved.
    virtual void remove_from_average() = 0;
    // Refuse a factor that would take coefficients out of range.
    virtual void check_scale(double factor) const = 0;
    // Refuse a step that is out of range.
    virtual void check_step(const double* /*coef*/) const {}
    // Allocates what the tables need for a new term at x, before the round changes anything.
    virtual void make_room_for(Row<T> /*x*/) {}
    virtual void move(double shrink, const Proposal<T>& proposal) = 0;

    // New features: there are `columns` now, and `map` is drawn for those that are new (null: nothing is drawn).
    // `make_room` allocates all that is needed, and changes nothing that can be noticed; then `widen` cannot fail.
    virtual void make_room(std::size_t columns, const Map* map) = 0;
    virtual void widen(std::size_t columns) = 0;
    // New outputs, whose coefficients are 0; there were three or more. Again, only the first step may fail.
    virtual void make_places(std::size_t count) = 0;
    virtual void join(const Places& at) = 0;
    virtual void save(Store& store) const = 0;
    virtual void load(const Store& store) = 0;

    std::size_t outputs;

protected:
    Run run_;
};

// A function whose coefficients have a common factor, `scale`. To add such a model to the average needs no pass over
// the coefficients: the sum of scale * coef_i over the rounds is cumulative * coef_i + base_i, so that base_i changes
// only when coef_i does, or when the scale is multiplied into the coefficients ("folded").
//
// `Self` defines `empty()`, `check_coefficients(factor)` (by `check_each`) and `fold()` (by `fold_into`). Calls of them
// are direct, as `Self` is known.
template <class Self, class T>
class ScaledFunction : public Function<T> {
public:
    using Function<T>::Function;

    void add_to_average() override {
        cumulative_before_ = cumulative;
        cumulative += scale;
    }
    void remove_from_average() override { cumulative = cumulative_before_; }

    void check_scale(double factor) const final {
        if (!self().empty() && must_fold(scale * factor)) self().check_coefficients(factor);
    }

    // f <- factor * f
    void shrink(double factor) {
        if (factor == 1 || self().empty()) return;
        check_scale(factor);
        scale *= factor;
        if (!must_fold(scale)) return;
        static_cast<Self*>(this)->fold();
        reset_scale();
    }

    double scale = 1;
    double cumulative = 0;  // sum of scale over the rounds since it was last reset to 1

protected:
    // The same sum with the current scale, for the average.
    double total() const { return cumulative + scale; }

    void reset_scale() {
        scale = 1;
        cumulative = 0;
    }

    // refuse(c) for every coefficient c, the scale and another factor included; `coef` has one vector per output.
    template <class Coef, class Refuse>
    void check_each(const Coef& coef, double factor, Refuse refuse) const {
        for (const auto& values : coef) {
            for (const auto c : values) refuse(c * scale * factor);
        }
    }

    // Multiplies the scale into the coefficients; `base` may be null: no averages.
    template <class Coef, class Base>
    void fold_into(Coef& coef, Base* base) const {
        for (std::size_t o = 0; o < coef.size(); ++o) {
            for (std::size_t i = 0; i < coef[o].size(); ++i) {
                if (base) (*base)[o][i] += cumulative * coef[o][i];
                coef[o][i] = static_cast<typename Coef::value_type::value_type>(scale * coef[o][i]);
            }
        }
    }

private:
    // Is the scale so far from 1 that the average would lose digits? Then it is folded.
    static bool must_fold(double factor) { return !(factor > 1e-3 && factor < 1e3); }
    const Self& self() const { return static_cast<const Self&>(*this); }

    double cumulative_before_ = 0;
};

// What is learned. `start(run)` makes the function f = 0, which holds everything that is stored.
class Hypothesis {
public:
    virtual ~Hypothesis() = default;
    virtual Started<Function> start(const Run& run) const = 0;
};

}  // namespace onkel
