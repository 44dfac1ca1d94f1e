// Hypotheses: the function being learned, what is stored of it and how it scores. The definitions, in array
// notation, are in onkel/hypothesis.py; Features and Dual are in features.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "basis.hpp"
#include "kernels.hpp"
#include "store.hpp"
#include "updates.hpp"

namespace onkel {

enum class Average { none, live, all };

// What a hypothesis is told when it begins.
struct Run {
    std::size_t outputs = 1;
    Average average = Average::none;
    std::uint64_t seed = 0;
    std::size_t columns = 0;
    bool sparse = false;
};

// One step: the example, its row, and its coefficients (null: the update offers none), or a step for each
// feature and output.
template <class T>
struct Offer {
    const Round& round;
    Row<T> x;
    T* k;
    const double* coef;
    Workspace<T>& work;
    const double* steps = nullptr;
};

class Map;

// f(x) = scale * sum_i coef_i k_i, with `row` giving the numbers k_i of an example.
template <class T>
class Hypothesis {
public:
    explicit Hypothesis(const Run& run) : outputs(run.outputs), average_(run.average) {}
    virtual ~Hypothesis() = default;
    Hypothesis(const Hypothesis&) = delete;
    Hypothesis& operator=(const Hypothesis&) = delete;

    bool averages() const { return average_ != Average::none; }
    virtual std::size_t n() const = 0;         // stored terms
    virtual std::size_t features() const = 0;  // weights of an explicit map, for each output
    virtual std::size_t columns() const = 0;

    // Can numbers of an example overflow? Then `check` refuses it, with a sentence.
    virtual bool wary() const { return true; }
    virtual void check(Row<T> x) const = 0;
    // The same for one to score only, where a number that is too large need not be a meaningless one.
    virtual void check_query(Row<T>) const {}
    // The row of example i of X, which is about to be learned from.
    virtual T* row(const Rows<T>& X, std::size_t i, Workspace<T>& work) = 0;
    // From an example that begins a block on, the rows of so many stay where they are.
    virtual std::size_t ahead() const { return 1; }
    // The examples it may have looked at beyond that one are gone.
    virtual void look_away() = 0;
    // k(x, x), or |z(x)|^2
    virtual double length2(Row<T> x) const = 0;
    // Is that 1 for every x?
    virtual bool normalized() const = 0;

    virtual void scores(const T* k, double* s) const = 0;
    // The average of the models of rounds 1..t.
    virtual void average_scores(Row<T> x, const T* k, double t, Workspace<T>& work, double* s) const = 0;
    // Scores of many examples, written row by row.
    virtual void predict(const Rows<T>& X, bool averaged, double t, double* out) const = 0;

    // With averages: a round begins, and the model as it is enters them.
    virtual void count() = 0;
    // Refuse a factor that would take coefficients out of range.
    virtual void foresee(double factor) const = 0;
    virtual void move(double shrink, const Offer<T>& offer) = 0;
    // Is nothing to be done in a round without a step?
    virtual bool rests() const { return !averages(); }

    // Make room for new features; `map` is drawn for all columns (null: nothing is drawn).
    virtual void widen(std::size_t columns, const Map* map) = 0;
    virtual void save(Store& store) const = 0;
    virtual void load(const Store& store) = 0;

    const std::size_t outputs;

protected:
    // Far from 1 the average would lose digits: then the coefficients take the scale over.
    static bool far(double scale) { return !(scale > 1e-3 && scale < 1e3); }

    Average average_;
};

template <class T>
class Expansion;

// How a new term enters an expansion; see budgets.hpp.
class Budget {
public:
    virtual ~Budget() = default;
    // The rounds that offer a term, and if it watches the others too.
    virtual void insert(Expansion<float>& f, const Offer<float>& offer) = 0;
    virtual void insert(Expansion<double>& f, const Offer<double>& offer) = 0;
    virtual bool watches() const { return false; }
    virtual void start(std::uint64_t /*seed*/) {}
    // Names of the values it keeps beside each term, one for each output and divided by scale.
    virtual std::vector<std::string> columns() const { return {}; }
    // Does it also set a number that is added to f?
    virtual bool intercept() const { return false; }
    // Will the n terms stay as they are for ever?
    virtual bool settled(std::size_t /*n*/) const { return false; }
    virtual void widen(std::size_t /*columns*/) {}
    virtual void save(Store&) const {}
    virtual void load(const Store&, std::size_t /*columns*/, bool /*sparse*/, bool /*single*/) {}
};

// f(x) = scale * sum_i coef_i k(x_i, x), and the average of its past selves.
//
// It looks ahead: the kernel rows of the next few examples are computed together, which costs little more than
// one of them when the table is large, and kept right while terms come and go. Every number comes out as if
// the examples had been met one by one.
template <class T>
class Expansion final : public Hypothesis<T> {
public:
    using Column = typename Basis<T>::Column;
    using Hypothesis<T>::outputs;
    using Hypothesis<T>::averages;

    Expansion(KernelPointer kernel, std::shared_ptr<Budget> budget, const Run& run)
        : Hypothesis<T>(run),
          basis(run.columns, run.sparse),
          dead(run.columns, run.sparse),
          coef(basis.declare("coef", run.outputs)),
          born(basis.declare("born", 1).values[0]),
          diagonal(basis.declare("diagonal", 1, false).values[0]),
          base(run.average == Average::none ? nullptr : &basis.declare("base", run.outputs)),
          kept(declare(basis, *budget, run.outputs)),
          score(find("score")),
          limit(find("limit")),
          bias(budget->intercept() ? run.outputs : 0),
          bias_sum(bias.size()),
          kernel_(std::move(kernel)),
          normalized_(kernel_->normalized()),
          budget_(std::move(budget)),
          watches_(budget_->watches()),
          dead_coef_(dead.declare("coef", run.outputs)),
          dead_born_(dead.declare("born", 1)) {
        for (Basis<T>* table : {&basis, &dead}) kernel_->prepare(*table);
        budget_->start(run.seed);
    }

    std::size_t n() const override { return basis.n(); }
    std::size_t features() const override { return 0; }
    std::size_t columns() const override { return basis.columns(); }

    // -- kernel rows

    bool wary() const override { return !normalized_; }
    void check(Row<T> x) const override {
        const double kxx = kernel_->diagonal(x);
        if (!std::isfinite(kxx)) {
            throw std::invalid_argument("k(x, x) is " + std::to_string(kxx) +
                                        "; its values are too large for the kernel: scale the features");
        }
    }
    double length2(Row<T> x) const override { return normalized_ ? 1 : kernel_->diagonal(x); }
    bool normalized() const override { return normalized_; }

    T* row(const Rows<T>& X, std::size_t i, Workspace<T>& work) override {
        if (i >= block_end_ || basis.version() != version_) look_ahead(X, i, work);
        now_ = i;
        return k_.data() + (i - block_begin_) * stride_;
    }
    void look_away() override { block_begin_ = block_end_ = now_ = 0; }

    // The kernel row of a stored example, in work.k.
    const T* row_of(Row<T> x, Workspace<T>& work) const {
        work.k.resize(basis.padded(n()));
        row(basis, x, work, work.k.data());
        return work.k.data();
    }

    const Kernel& kernel() const { return *kernel_; }

    // k(x_i, x_j) of all terms, in double whatever the rows are.
    std::vector<double> kernel_matrix() const {
        Workspace<T> work;
        Workspace<double> wide;
        Basis<double> table(columns(), basis.sparse());
        kernel_->prepare(table);
        std::vector<std::vector<double>> rows(n());
        for (std::size_t i = 0; i < n(); ++i) {
            const Row<T> x = basis.row(i, work);
            rows[i].assign(x.values, x.values + x.count);
            table.append({rows[i].data(), x.index, x.count});
        }
        std::vector<double> K(n() * n());
        std::vector<double> k(table.padded(n()));
        for (std::size_t i = 0; i < n(); ++i) {
            const Row<double> x = table.row(i, wide);
            wide.starts[0] = 0;
            wide.starts[1] = static_cast<std::int64_t>(x.count);
            kernel_->rows(table, {x.values, x.index, x.index ? wide.starts : nullptr, 1, x.count}, table.all(), wide,
                          k.data(), 0);
            std::copy(k.begin(), k.begin() + static_cast<std::ptrdiff_t>(n()), K.begin() + i * n());
        }
        return K;
    }

    // -- scoring

    // sum_i coef_i k_i, without scale
    double inner_score(const T* k, std::size_t output) const {
        return simd<T>().dot(coef.values[output].data(), k, n());
    }
    void scores(const T* k, double* s) const override {
        for (std::size_t o = 0; o < outputs; ++o) s[o] = scale * inner_score(k, o);
        for (std::size_t o = 0; o < bias.size(); ++o) s[o] += bias[o];
    }
    void average_scores(Row<T> x, const T* k, double t, Workspace<T>& work, double* s) const override {
        if (dead.n()) {
            work.k.resize(dead.padded(dead.n()));
            row(dead, x, work, work.k.data());
        }
        for (std::size_t o = 0; o < outputs; ++o) {
            double total = cumulative * inner_score(k, o) + simd<T>().dot(base->values[o].data(), k, n());
            total += simd<T>().dot(dead_coef_.values[o].data(), work.k.data(), dead.n());
            if (!bias.empty()) total += bias_sum[o];
            s[o] = total / std::max(t, 1.0);
        }
    }
    void predict(const Rows<T>& X, bool averaged, double t, double* out) const override {
        static thread_local Workspace<T> work;
        static thread_local Vectors<T> k;
        const std::size_t stride = basis.padded(n());
        k.resize(std::max(k.size(), std::min(most_ahead, X.n) * stride));
        for (std::size_t i = 0; i < X.n; i += most_ahead) {
            Rows<T> part = X.slice(i, std::min(most_ahead, X.n - i));
            basis.pack(part, work.ones);
            if (n()) kernel_->rows(basis, part, basis.all(), work, k.data(), stride);
            for (std::size_t q = 0; q < part.n; ++q) {
                const T* kq = k.data() + q * stride;
                double* s = out + (i + q) * outputs;
                averaged ? average_scores(part[q], kq, t, work, s) : scores(kq, s);
            }
        }
    }

    // -- moving

    void count() override {
        cumulative += scale;
        for (std::size_t o = 0; o < bias.size(); ++o) bias_sum[o] += bias[o];
    }

    void foresee(double factor) const override {
        if (n() == 0 || !this->far(scale * factor)) return;
        for (const auto& values : coef.values) {
            for (const double c : values) {
                if (!sane(c * scale * factor)) throw Diverged(beyond("a coefficient becomes ", c * scale * factor));
            }
        }
    }

    void move(double factor, const Offer<T>& offer) override {
        shrink(factor);
        const bool refused = offer.round.room <= 0 && n() == 0;  // none of its own can make room
        const double* term = refused ? nullptr : offer.coef;
        if (term || watches_) budget_->insert(*this, {offer.round, offer.x, offer.k, term, offer.work});
    }

    bool rests() const override { return !averages() && !watches_; }

    void shrink(double factor) {
        if (n() == 0 || factor == 1) return;
        foresee(factor);
        scale *= factor;
        if (!this->far(scale)) return;
        for (std::size_t o = 0; o < outputs; ++o) {
            for (std::size_t i = 0; i < n(); ++i) {
                if (base) base->values[o][i] += cumulative * coef.values[o][i];
                coef.values[o][i] *= scale;
                for (Column* column : kept) column->values[o][i] *= scale;
            }
        }
        scale = 1;
        cumulative = 0;
    }

    void append(Row<T> x, double t, double kxx, const double* c, Workspace<T>& work) {
        begin_afresh(n());
        basis.append(x);
        settle(t, kxx, c, work);
    }

    // The same, but term i leaves.
    void replace(std::size_t i, Row<T> x, double t, double kxx, const double* c, Workspace<T>& work) {
        bury(i, work);
        begin_afresh(n() - 1);
        basis.replace(i, x);
        move_ahead(n() - 1, i);
        settle(t, kxx, c, work);
    }

    void remove(std::size_t i, Workspace<T>& work) {
        bury(i, work);
        basis.remove(i);
        begin_afresh(n());
        move_ahead(n(), i);
    }

    // Give term i the coefficient c (still without scale).
    void change(std::size_t i, std::size_t output, double c) {
        double& own = coef.values[output][i];
        if (base) base->values[output][i] += cumulative * (own - c);
        own = c;
    }

    // The coefficients of an output (still without scale) move by factor * step.
    template <class U>
    void add(std::size_t output, double factor, const U* step) {
        if (factor == 0) return;
        simd<U>().axpy(coef.values[output].data(), factor, step, n());
        if (base) simd<U>().axpy(base->values[output].data(), -cumulative * factor, step, n());
    }

    // With averages: the sum of term i's coefficient over the rounds.
    double past(std::size_t i, std::size_t output) const {
        return cumulative * coef.values[output][i] + base->values[output][i];
    }

    void widen(std::size_t wider, const Map*) override {
        for (Basis<T>* table : {&basis, &dead}) table->widen(wider);
        budget_->widen(wider);
    }

    // -- state

    void save(Store& store) const override {
        basis.save(store, "basis");
        store.put("scale", scale);
        if (averages()) store.put("cumulative", cumulative);
        if (this->average_ == Average::all) dead.save(store, "dead");
        if (!bias.empty()) store.put("bias", bias, {1, outputs});
        if (!bias.empty() && averages()) store.put("bias_sum", bias_sum, {1, outputs});
        budget_->save(store);
    }

    void load(const Store& store) override {
        basis.load(store, "basis");
        Workspace<T> work;
        for (std::size_t i = 0; i < n(); ++i) diagonal[i] = length2(basis.row(i, work));
        scale = store.get<double>("scale");
        if (averages()) cumulative = store.get<double>("cumulative");
        if (this->average_ == Average::all) dead.load(store, "dead");
        if (!bias.empty()) load_bias(store, "bias", bias);
        if (!bias.empty() && averages()) load_bias(store, "bias_sum", bias_sum);
        budget_->load(store, columns(), basis.sparse(), sizeof(T) == sizeof(float));
    }

    Basis<T> basis;
    Basis<T> dead;  // Average::all: terms that once lived
    Column& coef;   // without scale
    Vectors<double>& born;
    Vectors<double>& diagonal;     // k(x_i, x_i)
    Column* base;                  // with averages: sum of the past coefficients less coef * cumulative
    std::vector<Column*> kept;     // what the budget keeps beside each term; of these, if there are,
    Column* score;                 // f(x_i) / scale
    Column* limit;                 // how large |coef_i| may be
    std::vector<double> bias;      // added to f; empty but for budgets with an intercept
    std::vector<double> bias_sum;  // over the rounds
    double scale = 1;
    double cumulative = 0;  // sum of scale over the rounds

private:
    static constexpr std::size_t most_ahead = 16;

    static std::vector<Column*> declare(Basis<T>& table, const Budget& budget, std::size_t outputs_each) {
        std::vector<Column*> columns;
        for (const std::string& name : budget.columns()) columns.push_back(&table.declare(name, outputs_each));
        return columns;
    }
    Column* find(const std::string& name) const {
        for (Column* column : kept) {
            if (column->name == name) return column;
        }
        return nullptr;
    }

    void load_bias(const Store& store, const char* name, std::vector<double>& to) const {
        to = store.get<double>(name, 2);
        if (store.shape(name) != std::vector<std::size_t>{1, outputs}) Store::refuse(name, "has the wrong shape");
    }

    // Where no term is left nothing refers to them.
    void begin_afresh(std::size_t left) {
        if (left > 0) return;
        scale = 1;
        cumulative = 0;
    }

    // The newest term, which is in the table already.
    void settle(double t, double kxx, const double* c, Workspace<T>& work) {
        for (std::size_t o = 0; o < outputs; ++o) {
            coef.values[o].back() = c[o] / scale;
            if (base) base->values[o].back() = -cumulative * coef.values[o].back();
        }
        born.back() = t;
        diagonal.back() = kxx;
        if (now_ + 1 < block_end_ &&
            basis.version() == version_) {  // those ahead meet the tile it is in, the others there once more
            const std::size_t next = now_ + 1 - block_begin_;
            const Range tile{(n() - 1) / lanes<T> * lanes<T>, n()};
            kernel_->rows(basis, block_.slice(next, block_.n - next), tile, work, k_.data() + next * stride_, stride_);
        }
    }

    // Term i is about to leave.
    void bury(std::size_t i, Workspace<T>& work) {
        if (this->average_ != Average::all) return;
        dead.append(basis.row(i, work));
        for (std::size_t o = 0; o < outputs; ++o) dead_coef_.values[o].back() = past(i, o);
        dead_born_.values[0].back() = born[i];
    }

    // A term has moved in the table: so it does in the rows ahead.
    void move_ahead(std::size_t from, std::size_t to) {
        for (std::size_t q = now_; q < block_end_; ++q) {
            T* k = k_.data() + (q - block_begin_) * stride_;
            k[to] = k[from];
        }
    }

    void row(const Basis<T>& table, Row<T> x, Workspace<T>& work, T* k) const {
        work.starts[0] = 0;
        work.starts[1] = static_cast<std::int64_t>(x.count);
        kernel_->rows(table, {x.values, x.index, x.index ? work.starts : nullptr, 1, x.count}, table.all(), work, k, 0);
    }

    // Look at the examples from i on that are worth looking at together: the more terms there are, the more.
    void look_ahead(const Rows<T>& X, std::size_t i, Workspace<T>& work) {
        const std::size_t wanted = budget_->settled(n()) ? most_ahead : std::min(n() / 50 + 1, most_ahead);
        const std::size_t count = wanted < 4 ? wanted : wanted / 4 * 4;  // the vector code's step
        version_ = basis.version();
        block_begin_ = i;
        block_end_ = i + (basis.tiled() ? std::min(count, X.n - i) : 1);
        block_ = X.slice(i, block_end_ - i);
        basis.pack(block_, ones_);
        stride_ = basis.padded(n() + block_.n + 1);
        k_.resize(std::max(k_.size(), block_.n * stride_));
        if (n()) kernel_->rows(basis, block_, basis.all(), work, k_.data(), stride_);
    }

    KernelPointer kernel_;
    bool normalized_;
    std::shared_ptr<Budget> budget_;
    bool watches_;
    Column& dead_coef_;
    Column& dead_born_;

    std::vector<Word<T>> ones_;  // flags of the examples looked at:
    Rows<T> block_;              // block_begin_ .. block_end_ - 1 of those being learned from
    std::size_t block_begin_ = 0;
    std::size_t block_end_ = 0;
    std::size_t now_ = 0;
    Vectors<T> k_;  // their kernel rows
    std::size_t stride_ = 0;
    std::size_t version_ = 0;  // of the table they were computed with
};

}  // namespace onkel
