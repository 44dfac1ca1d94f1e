// Terms: a function that is a sum of kernels at stored examples; and budgets, by whose rules terms come and go.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/basis.hpp"
#include "core/errors.hpp"
#include "core/part.hpp"
#include "core/ties.hpp"
#include "hypotheses/base.hpp"
#include "kernels.hpp"

namespace onkel {

template <class T>
class Terms;

// A budget in a learner, with what it remembers there.
template <class T>
class RunningBudget {
public:
    virtual ~RunningBudget() = default;
    // Called in the rounds with a new term; with the trait `every_round` in all others, too.
    virtual void insert(Terms<T>& f, const Proposal<T>& proposal) = 0;
    // Is it certain that none of the n terms will be removed any more? Then large blocks of examples pay.
    virtual bool keeps_terms(std::size_t n) const = 0;
    // Allocates what another term needs, before the round changes anything.
    virtual void make_room_for_term() = 0;
    // New features, as in `Function`.
    virtual void make_room(std::size_t columns) = 0;
    virtual void widen(std::size_t columns) = 0;
    virtual void join(const Places& at) = 0;
    virtual void save(Store& store) const = 0;
    // The state of a budget whose expansion, loaded before, has so many terms.
    virtual void load(const Store& store, std::size_t terms) = 0;
};

// Any budget with its memory.
template <class Part, class T>
class BudgetWithMemory final : public RunningBudget<T> {
public:
    BudgetWithMemory(const Part& part, const Run& run) : part_(part), memory_(part_, run) {}

    void insert(Terms<T>& f, const Proposal<T>& proposal) override { part_.insert(f, proposal, memory_); }
    bool keeps_terms(std::size_t n) const override { return part_.keeps_terms(n, memory_); }
    void make_room_for_term() override { memory_.make_room_for_term(); }
    void make_room(std::size_t columns) override { memory_.make_room(columns); }
    void widen(std::size_t columns) override { memory_.widen(columns); }
    void join(const Places& at) override { memory_.join(at); }
    void save(Store& store) const override { memory_.save(store); }
    void load(const Store& store, std::size_t terms) override { memory_.load(store, terms); }

private:
    const Part part_;
    typename Part::template Memory<T> memory_;
};

// Numbers that a budget keeps for each term; they scale with f and are stored divided by scale. `scores`: one for each
// output, `weight`: a single one.
struct BudgetColumn {
    enum Kind { scores, weight };
    std::string name;
    Kind kind;
};

struct BudgetTraits {
    bool every_round = false;  // must `insert` also run in rounds without a new term?
    bool intercept = false;    // does it also set an intercept, a number that is added to f?
};

// How a new term enters an expansion. Each budget defines `insert(f, proposal, memory)`; the members below are
// defaults.
class Budget {
public:
    template <class T>
    using Memory = PartMemory;

    virtual ~Budget() = default;
    virtual Started<RunningBudget> start(const Run& run) const = 0;
    virtual BudgetTraits traits() const { return {}; }
    virtual std::vector<BudgetColumn> columns() const { return {}; }
    bool keeps_terms(std::size_t /*n*/, const PartMemory&) const { return false; }

protected:
    template <class Part>
    static Started<RunningBudget> started(const Part& part, const Run& run) {
        return by_type<RunningBudget>(
            run, [&]<class T>(T) { return std::make_unique<BudgetWithMemory<Part, T>>(part, run); });
    }
};

// f(x) = scale * sum_i coef_i k(x_i, x) + bias, and the average of f over the past rounds.
//
// It works in blocks: the kernel rows of the next few examples are computed together. If the table is large, this costs
// little more than one of them. When terms come and go, the rows are updated. Every number comes out as if the examples
// had been processed one by one.
template <class T>
class Terms final : public ScaledFunction<Terms<T>, T> {
    using Scaled = ScaledFunction<Terms<T>, T>;

public:
    using Column = typename Basis<T>::Column;
    using Scaled::averages;
    using Scaled::cumulative;
    using Scaled::outputs;
    using Scaled::scale;
    using Scaled::shrink;

    Terms(KernelPointer kernel, const Budget& budget, const Run& run)
        : Scaled(run),
          basis(run.columns, run.sparse),
          dead(run.columns, run.sparse),
          coef(basis.declare("coef", run.outputs)),
          born(basis.declare("born", 1).values[0]),
          diagonal(basis.declare("diagonal", 1, false).values[0]),
          base(run.average == Average::none ? nullptr : &basis.declare("base", run.outputs)),
          bias(budget.traits().intercept ? run.outputs : 0),
          bias_sum(bias.size()),
          kernel_(std::move(kernel)),
          unit_(kernel_->unit()),
          kept_(declare(basis, budget, run.outputs)),
          budget_(std::get<std::unique_ptr<RunningBudget<T>>>(budget.start(run))),
          every_round_(budget.traits().every_round),
          dead_coef_(dead.declare("coef", run.outputs)),
          dead_born_(dead.declare("born", 1)) {
        for (Basis<T>* table : {&basis, &dead}) kernel_->prepare(*table);
    }

    std::size_t n() const override { return basis.n(); }
    std::size_t features() const override { return 0; }
    std::size_t columns() const override { return basis.columns(); }

    // -- kernel rows

    FunctionTraits traits() const override {
        return {.unit = unit_, .may_overflow = !unit_, .idle_without_step = !averages() && !every_round_};
    }
    void check(Row<T> x) const override {
        const double kxx = kernel_->diagonal(x);
        if (!std::isfinite(kxx)) {
            throw TooLarge("k(x, x) =", kxx, "for the kernel");
        }
    }
    double length2(Row<T> x) const override { return unit_ ? 1 : kernel_->diagonal(x); }

    T* row(const Rows<T>& X, std::size_t i, Workspace<T>& work) override {
        if (i >= block_end_ || basis.version() != version_) fill_block(X, i, work);
        current_ = i;
        return k_.data() + (i - block_begin_) * stride_;
    }
    void drop_block() override { block_begin_ = block_end_ = current_ = 0; }

    // The kernel row of x, computed in work.k.
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

    // -- terms

    // |coef_i|^2, without scale
    double squared_norm(std::size_t i) const {
        double total = 0;
        for (const auto& c : coef.values) total += c[i] * c[i];
        return total;
    }
    // The term of least |coef|; among equals the one that entered first.
    std::size_t smallest() const {
        std::vector<double> size(n());
        for (std::size_t i = 0; i < n(); ++i) size[i] = std::sqrt(squared_norm(i));
        return oldest_of_least(size, born);
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
            double sum = this->total() * inner_score(k, o) + simd<T>().dot(base->values[o].data(), k, n());
            sum += simd<T>().dot(dead_coef_.values[o].data(), work.k.data(), dead.n());
            if (!bias.empty()) sum += bias_sum[o] + bias[o];
            s[o] = sum / (t + 1);
        }
    }
    void predict(const Rows<T>& X, bool averaged, double t, double* out) const override {
        static thread_local Workspace<T> work;
        static thread_local AlignedVector<T> k;
        const std::size_t stride = basis.padded(n());
        k.resize(std::max(k.size(), std::min(most_rows, X.n) * stride));
        for (std::size_t i = 0; i < X.n; i += most_rows) {
            Rows<T> part = X.slice(i, std::min(most_rows, X.n - i));
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

    void add_to_average() override {
        Scaled::add_to_average();
        bias_sum_before_ = bias_sum;
        for (std::size_t o = 0; o < bias.size(); ++o) bias_sum[o] += bias[o];
    }
    void remove_from_average() override {
        Scaled::remove_from_average();
        bias_sum = bias_sum_before_;
    }

    bool empty() const { return n() == 0; }
    void check_coefficients(double factor) const {
        this->check_each(coef.values, factor, [](double c) {
            if (!sane(c)) throw Diverged("a coefficient becomes", c);
        });
    }
    void fold() {
        this->fold_into(coef.values, base ? &base->values : nullptr);
        for (Column* column : kept_) {
            for (AlignedVector<double>& values : column->values) {
                for (double& value : values) value *= scale;
            }
        }
    }

    void make_room_for(Row<T> x) override {
        basis.make_room_for(x);
        if (this->run_.average == Average::all) dead.make_room_for(x);
        budget_->make_room_for_term();
    }
    void move(double factor, const Proposal<T>& proposal) override {
        shrink(factor);
        const bool refused = proposal.round.room <= 0 && n() == 0;  // there is no term to remove
        const double* term = refused ? nullptr : proposal.coef;
        if (term || every_round_) budget_->insert(*this, {proposal.round, proposal.x, proposal.k, term, proposal.work});
    }

    void append(Row<T> x, double t, double kxx, const double* c, Workspace<T>& work) {
        begin_afresh(n());
        basis.append(x);
        finish_append(t, kxx, c, work);
    }

    // The same, but term i is removed first.
    void replace(std::size_t i, Row<T> x, double t, double kxx, const double* c, Workspace<T>& work) {
        keep_in_average(i, work);
        begin_afresh(n() - 1);
        basis.replace(i, x);
        move_in_block(n() - 1, i);
        finish_append(t, kxx, c, work);
    }

    void remove(std::size_t i, Workspace<T>& work) {
        keep_in_average(i, work);
        basis.remove(i);
        begin_afresh(n());
        move_in_block(n(), i);
    }

    // Set the coefficient of term i to c. Like the other coefficients, c is without scale.
    void change(std::size_t i, std::size_t output, double c) {
        double& own = coef.values[output][i];
        if (base) base->values[output][i] += cumulative * (own - c);
        own = c;
    }

    // Add factor * step to the coefficients of an output. Like the coefficients, it is without scale.
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

    void make_room(std::size_t wider, const Map*) override {
        for (Basis<T>* table : {&basis, &dead}) table->make_room(wider);
        budget_->make_room(wider);
    }
    void widen(std::size_t wider) override {
        for (Basis<T>* table : {&basis, &dead}) table->widen(wider);
        budget_->widen(wider);
    }
    void make_places(std::size_t count) override {
        for (Column* column : per_output()) column->values.make_places(count, n());
        dead_coef_.values.make_places(count, dead.n());
        for (std::vector<double>* values : {&bias, &bias_sum}) reserve(*values, outputs + count);
    }
    void join(const Places& at) override {
        for (Column* column : per_output()) column->values.join(at);
        dead_coef_.values.join(at);
        for (std::vector<double>* values : {&bias, &bias_sum}) {
            for (const std::size_t i : at) {
                if (!bias.empty()) values->insert(values->begin() + static_cast<std::ptrdiff_t>(i), 0.0);
            }
        }
        budget_->join(at);
        outputs += at.size();
    }

    // -- state

    void save(Store& store) const override {
        basis.save(store, "basis");
        store.put("scale", scale);
        if (averages()) store.put("cumulative", cumulative);
        if (this->run_.average == Average::all) dead.save(store, "dead");
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
        if (this->run_.average == Average::all) dead.load(store, "dead");
        if (!bias.empty()) load_bias(store, "bias", bias);
        if (!bias.empty() && averages()) load_bias(store, "bias_sum", bias_sum);
        budget_->load(store, n());
    }

    Basis<T> basis;
    Basis<T> dead;  // Average::all: removed terms, for the average
    Column& coef;   // without scale
    AlignedVector<double>& born;
    AlignedVector<double>& diagonal;  // k(x_i, x_i)
    Column* base;                     // with averages: see ScaledFunction
    std::vector<double> bias;         // added to f; empty if the budget has no intercept
    std::vector<double> bias_sum;     // sum of bias over the rounds

private:
    static constexpr std::size_t most_rows = 16;

    static std::vector<Column*> declare(Basis<T>& table, const Budget& budget, std::size_t outputs_each) {
        std::vector<Column*> columns;
        for (const BudgetColumn& column : budget.columns()) {
            columns.push_back(&table.declare(column.name, column.kind == BudgetColumn::scores ? outputs_each : 1));
        }
        return columns;
    }

    // The columns with a number for each of several outputs.
    std::vector<Column*> per_output() {
        std::vector<Column*> columns{&coef};
        if (base) columns.push_back(base);
        for (Column* column : kept_) {
            if (column->values.size() > 1) columns.push_back(column);
        }
        return columns;
    }

    void load_bias(const Store& store, const char* name, std::vector<double>& to) const {
        to = store.get<double>(name, 2);
        if (store.shape(name) != std::vector<std::size_t>{1, outputs}) Store::refuse(name, "has the wrong shape");
    }

    // If no term is left, no number depends on scale and cumulative: start again.
    void begin_afresh(std::size_t left) {
        if (left == 0) this->reset_scale();
    }

    // Fill in the columns of the newest term, whose row is in the table already, and its kernel values in the block.
    void finish_append(double t, double kxx, const double* c, Workspace<T>& work) {
        for (std::size_t o = 0; o < outputs; ++o) {
            coef.values[o].back() = c[o] / scale;
            if (base) base->values[o].back() = -cumulative * coef.values[o].back();
        }
        born.back() = t;
        diagonal.back() = kxx;
        if (current_ + 1 < block_end_ &&
            basis.version() == version_) {  // compare the rest of the block with the tile of the new term
            const std::size_t next = current_ + 1 - block_begin_;
            const Range tile{(n() - 1) / lanes<T> * lanes<T>, n()};
            kernel_->rows(basis, block_.slice(next, block_.n - next), tile, work, k_.data() + next * stride_, stride_);
        }
    }

    // Before term i is removed: keep it for the average, with Average::all.
    void keep_in_average(std::size_t i, Workspace<T>& work) {
        if (this->run_.average != Average::all) return;
        dead.append(basis.row(i, work));
        for (std::size_t o = 0; o < outputs; ++o) dead_coef_.values[o].back() = past(i, o);
        dead_born_.values[0].back() = born[i];
    }

    // A term has moved to another slot: move its kernel values in the rows of the block, too.
    void move_in_block(std::size_t from, std::size_t to) {
        for (std::size_t q = current_; q < block_end_; ++q) {
            T* k = k_.data() + (q - block_begin_) * stride_;
            k[to] = k[from];
        }
    }

    void row(const Basis<T>& table, Row<T> x, Workspace<T>& work, T* k) const {
        work.starts[0] = 0;
        work.starts[1] = static_cast<std::int64_t>(x.count);
        kernel_->rows(table, {x.values, x.index, x.index ? work.starts : nullptr, 1, x.count}, table.all(), work, k, 0);
    }

    // Compute the rows of the next examples, from i on, together. The more terms there are, the more examples.
    void fill_block(const Rows<T>& X, std::size_t i, Workspace<T>& work) {
        const std::size_t wanted = budget_->keeps_terms(n()) ? most_rows : std::min(n() / 50 + 1, most_rows);
        const std::size_t count = wanted < 4 ? wanted : wanted / 4 * 4;  // AVX-512 code compares 4 at a time
        version_ = basis.version();
        block_begin_ = i;
        block_end_ = i + (basis.tiled() ? std::min(count, X.n - i) : 1);
        block_ = X.slice(i, block_end_ - i);
        basis.pack(block_, ones_);
        stride_ = basis.padded(n() + block_.n + 1);
        k_.resize(std::max(k_.size(), block_.n * stride_));
        if (n()) kernel_->rows(basis, block_, basis.all(), work, k_.data(), stride_);
    }

    std::vector<double> bias_sum_before_;
    KernelPointer kernel_;
    bool unit_;
    std::vector<Column*> kept_;  // what the budget keeps beside each term
    std::unique_ptr<RunningBudget<T>> budget_;
    bool every_round_;
    Column& dead_coef_;
    Column& dead_born_;

    // The block: examples block_begin_ .. block_end_ - 1 of those being learned from.
    std::vector<Word<T>> ones_;  // their flags
    Rows<T> block_;
    std::size_t block_begin_ = 0;
    std::size_t block_end_ = 0;
    std::size_t current_ = 0;  // the example of this round
    AlignedVector<T> k_;       // the kernel rows of the block
    std::size_t stride_ = 0;   // from one kernel row to the next
    std::size_t version_ = 0;  // version of the table when they were computed
};

}  // namespace onkel
