// Learner: the loop. The definition, in array notation, is onkel/learners/learner.py.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/locks.hpp"
#include "core/vectors.hpp"
#include "hypotheses/terms.hpp"
#include "losses.hpp"
#include "updates/base.hpp"

namespace onkel {

template <class T>
class Learner {
public:
    Learner(const Hypothesis& hypothesis, std::shared_ptr<const Loss> loss, const Update& update, const Run& run)
        : loss_(std::move(loss)),
          update_(std::get<std::unique_ptr<RunningUpdate<T>>>(update.start(run))),
          f_(std::get<std::unique_ptr<Function<T>>>(hypothesis.start(run))),
          terms_(dynamic_cast<Terms<T>*>(f_.get())),
          traits_(f_->traits()),
          per_weight_(update.traits().per_weight),
          idle_without_slope_(update.traits().idle_without_slope && traits_.idle_without_step),
          s_(outputs()),
          slope_(outputs()),
          coef_(outputs()),
          steps_(per_weight_ ? outputs() * f_->features() : 0),
          s_one_(2 * outputs()) {}

    std::size_t n() const { return f_->n(); }
    std::int64_t t() const { return t_; }
    // Rows that `learn` has processed since the learner was made, those of weight 0 included.
    std::int64_t rows_learned() const { return rows_; }
    std::size_t outputs() const { return f_->outputs; }
    std::size_t columns() const { return f_->columns(); }
    bool averages() const { return f_->averages(); }
    double threshold() const { return update_->threshold(loss_->threshold()); }

    // Callers on several threads must hold this lock; no member function of this class takes it.
    Lock& lock() const { return lock_; }

    // Learn from each row in turn; writes the scores before each update, by the current and the averaged model.
    void learn(const Rows<T>& X, const double* y, const double* weight, double* current, double* averaged) {
        check(X);
        if (!(X.n == 1 && is_scored_last(X[0]))) drop_block();
        const DropBlock end{*this};
        for (std::size_t i = 0; i < X.n; ++i) {
            round(X, i, y[i], weight ? weight[i] : 1, current + i * outputs(), averaged + i * outputs());
        }
    }

    // Throws unless the learners are distinct, hold no terms, have explicit features, and have the same numbers of
    // features, columns and outputs. The caller ensures that the features themselves are the same (`family` in Python).
    static void check_group(const std::vector<Learner*>& group) {
        const Learner& first = *group.front();
        for (const Learner* other : group) {
            if (other->f_->features() == 0 || other->n() || other->f_->features() != first.f_->features() ||
                other->columns() != first.columns() || other->outputs() != first.outputs()) {
                throw std::invalid_argument(
                    "learners that learn together must have the same explicit features and outputs, and no terms");
            }
            if (std::count(group.begin(), group.end(), other) > 1) {
                throw std::invalid_argument("a learner is named twice among those that learn together");
            }
        }
    }

    // Several learners learn from the same explicit features, which the first computes for all. The scores of each
    // learner are written after those of the one before. Returns which learners diverged, and so stopped early.
    static std::vector<bool> learn_together(const std::vector<Learner*>& group, const Rows<T>& X, const double* y,
                                            double* current, double* averaged) {
        Learner& first = *group.front();
        first.check(X);
        for (Learner* each : group) each->drop_block();
        const DropBlock end{first};
        std::vector<bool> lost(group.size());
        std::vector<T*> k;
        for (std::size_t begin = 0; begin < X.n; begin += k.size()) {
            k.clear();
            const std::size_t stop = std::min(X.n, begin + first.f_->block_rows());
            for (std::size_t i = begin; i < stop; ++i) k.push_back(first.f_->row(X, i, first.work_));
            for (std::size_t l = 0; l < group.size(); ++l) {
                try {
                    for (std::size_t i = begin; i < stop && !lost[l]; ++i) {
                        const std::size_t at = (l * X.n + i) * first.outputs();
                        group[l]->k_ = k[i - begin];
                        std::copy_n(group[l]->score_row(i), first.outputs(), current + at);
                        group[l]->average_row(X[i], averaged + at);
                        group[l]->finish_round(X, i, y[i], 1);
                    }
                } catch (const Diverged&) {
                    lost[l] = true;
                }
            }
        }
        return lost;
    }

    // A round in two halves, so that a pool can act in between: the scores of example i of X; the update (weight > 0).
    const double* begin_round(const Rows<T>& X, std::size_t i) {
        k_ = on_f([&](auto& f) { return f.row(X, i, work_); });
        return score_row(i);
    }
    // The scores from k_, the kernel values or features of example i.
    const double* score_row(std::size_t i) {
        on_f([&](auto& f) { f.scores(k_, s_.data()); });
        for (const double s : s_) {
            if (!sane(s)) throw Diverged("the score is", s, static_cast<std::ptrdiff_t>(i));
        }
        return s_.data();
    }
    // The scores of the average from k_, if there is one.
    void average_row(Row<T> x, double* averaged) {
        if (averages()) f_->average_scores(x, k_, static_cast<double>(t_), work_, averaged);
    }
    void finish_round(const Rows<T>& X, std::size_t i, double y, double weight, double chance = 1,
                      double room = std::numeric_limits<double>::infinity()) {
        const Row<T> x = X[i];
        const double value = (*loss_)(y, s_.data(), outputs(), update_->threshold(loss_->threshold()), slope_.data());
        if (idle_without_slope_ && std::all_of(slope_.begin(), slope_.end(), [](double v) { return v == 0; })) {
            ++t_;
            return;
        }
        const auto t = static_cast<double>(t_ + 1);
        const double kxx = traits_.unit ? 1 : f_->length2(x);
        if (kxx <= 0) std::fill(slope_.begin(), slope_.end(), 0.0);  // no step can lower the loss
        const Round now{y, t, kxx, s_.data(), value, slope_.data(), outputs(), weight, chance, room};
        bool counted = false;
        try {
            const Step step = update_->step(now, coef_.data());
            if (step.shrink != 1) f_->check_scale(step.shrink);
            if (step.moves) {
                on_f([&](auto& f) {
                    f.check_step(coef_.data());
                    f.make_room_for(x);
                });
            }
            const bool each = step.moves && per_weight_;
            if (each) update_->step_each(coef_.data(), k_, f_->features(), outputs(), steps_.data());
            t_ += 1;
            counted = true;
            if (averages()) f_->add_to_average();
            const double* coef = step.moves ? coef_.data() : nullptr;
            const Proposal<T> proposal{now, x, k_, coef, work_, each ? steps_.data() : nullptr};
            on_f([&](auto& f) { f.move(step.shrink, proposal); });
        } catch (Diverged& error) {
            take_back(counted);
            error.row = static_cast<std::ptrdiff_t>(i);
            throw;
        } catch (...) {
            take_back(counted);
            throw;
        }
    }
    void drop_block() {
        f_->drop_block();
        scored_last_.known = false;
    }

    void learn_one(Row<T> x, double y, double weight) {
        double* scores = s_one_.data();
        learn(as_matrix(x), &y, &weight, scores, averages() ? scores + outputs() : scores);
    }
    // The scores of one example; several threads may call it at a time, since it keeps no row.
    std::vector<double> score_one(Row<T> x) const {
        const std::int64_t starts[] = {0, static_cast<std::int64_t>(x.count)};
        std::vector<double> s(outputs());
        scores({x.values, x.index, x.index ? starts : nullptr, 1, x.count}, averages(), s.data());
        return s;
    }
    // The scores of one example; its row is kept, since `learn` often follows with the same example. Only one thread
    // may call it at a time.
    std::vector<double> score_and_keep(Row<T> x) {
        const Rows<T> X = as_matrix(x);
        check_form(X);
        f_->check_query(x);
        drop_block();
        const T* k = f_->row(X, 0, work_);
        if (averages()) {
            f_->average_scores(x, k, static_cast<double>(t_), work_, s_.data());
        } else {
            f_->scores(k, s_.data());
        }
        scored_last_.known = true;
        scored_last_.values.assign(x.values, x.values + x.count);
        scored_last_.index.assign(x.index, x.index + (x.index ? x.count : 0));
        return s_;
    }

    void scores(const Rows<T>& X, bool averaged, double* out) const {
        check_form(X);
        check_each(X, [this](Row<T> x) { f_->check_query(x); });
        f_->predict(X, averaged, static_cast<double>(t_), out);
    }

    // Refuse rows whose numbers would overflow, before anything is learned.
    void check(const Rows<T>& X) const {
        check_form(X);
        if (traits_.may_overflow) check_each(X, [this](Row<T> x) { f_->check(x); });
    }

    void widen(std::size_t columns, const Map* map) {
        drop_block();
        f_->make_room(columns, map);
        f_->widen(columns);
    }

    // New outputs at these positions; there were three or more.
    void join(const Places& at) {
        drop_block();
        const std::size_t more = outputs() + at.size();
        f_->make_places(at.size());
        update_->make_places(at.size());
        const std::size_t steps = per_weight_ ? more * f_->features() : 0;
        const std::pair<std::vector<double>*, std::size_t> scratch[] = {
            {&s_, more}, {&slope_, more}, {&coef_, more}, {&s_one_, 2 * more}, {&steps_, steps}};
        for (const auto& [numbers, size] : scratch) reserve(*numbers, size);
        f_->join(at);  // from here on nothing is allocated
        update_->join(at);
        for (const auto& [numbers, size] : scratch) numbers->resize(size);
    }

    Store save() const {
        Store store;
        f_->save(store);
        store.put("t", t_);
        update_->save(store);
        return store;
    }

    void load(const Store& store) {
        drop_block();
        f_->load(store);
        t_ = store.get<std::int64_t>("t");
        update_->load(store);
    }

private:
    // Drops the block at the end of a scope, also after an exception: the caller may then free the examples.
    struct DropBlock {
        Learner& learner;
        ~DropBlock() { learner.drop_block(); }
    };

    // Undoes what a round changed before it failed.
    void take_back(bool counted) {
        update_->take_back();
        if (!counted) return;
        t_ -= 1;
        if (averages()) f_->remove_from_average();
    }

    // Calls a member of f, in every round. Usually f is a `Terms`: as this class is final, the call is not virtual.
    template <class Call>
    auto on_f(Call call) {
        return terms_ ? call(*terms_) : call(*f_);
    }

    // The example scored last, if nothing was learned since: f still has its kernel values or features.
    struct Scored {
        bool known = false;
        std::vector<T> values;
        std::vector<std::int32_t> index;  // empty: dense
    };
    bool is_scored_last(Row<T> x) const {
        const auto same = [&](const auto& kept, const auto* values) {
            return kept.size() == (values ? x.count : 0) &&
                   (kept.empty() || std::memcmp(kept.data(), values, kept.size() * sizeof kept[0]) == 0);
        };
        return scored_last_.known && same(scored_last_.values, x.values) && same(scored_last_.index, x.index);
    }

    // A matrix with x as its only row.
    Rows<T> as_matrix(Row<T> x) {
        starts_[1] = static_cast<std::int64_t>(x.count);
        return {x.values, x.index, x.index ? starts_ : nullptr, 1, x.index ? 0 : x.count};
    }

    void round(const Rows<T>& X, std::size_t i, double y, double weight, double* current, double* averaged) {
        const double* s = begin_round(X, i);
        for (std::size_t o = 0; o < outputs(); ++o) current[o] = s[o];
        average_row(X[i], averaged);
        if (weight > 0) finish_round(X, i, y, weight);
        ++rows_;
    }

    template <class Check>
    void check_each(const Rows<T>& X, Check one) const {
        for (std::size_t i = 0; i < X.n; ++i) {
            try {
                one(X[i]);
            } catch (TooLarge& error) {
                error.row = static_cast<std::ptrdiff_t>(i);
                throw;
            }
        }
    }

    // Refuse input that would lead to reads outside the arrays. Whether values make sense is checked elsewhere.
    void check_form(const Rows<T>& X) const {
        const std::size_t width = columns();
        if (!X.indices) {
            if (X.columns == width) return;
            throw std::invalid_argument("X has " + std::to_string(X.columns) + " columns, not " +
                                        std::to_string(width));
        }
        bool inside = true;  // a negative index becomes a huge unsigned one
        for (std::int64_t e = X.starts[0]; e < X.starts[X.n]; ++e) {
            inside &= static_cast<std::uint32_t>(X.indices[e]) < width;
        }
        if (inside) return;
        const auto* bad = std::find_if(X.indices + X.starts[0], X.indices + X.starts[X.n],
                                       [&](std::int32_t index) { return static_cast<std::uint32_t>(index) >= width; });
        throw std::invalid_argument("a column index is " + std::to_string(*bad) + ", but there are " +
                                    std::to_string(width) + " columns");
    }

    std::shared_ptr<const Loss> loss_;
    std::unique_ptr<RunningUpdate<T>> update_;
    std::unique_ptr<Function<T>> f_;
    Terms<T>* terms_;  // f_ as Terms; null if it is another function
    FunctionTraits traits_;
    bool per_weight_;
    bool idle_without_slope_;  // is nothing to be done in a round where the slope is 0?
    std::int64_t t_ = 0;
    std::int64_t rows_ = 0;
    Workspace<T> work_;
    mutable Lock lock_;
    Scored scored_last_;
    std::int64_t starts_[2] = {0, 0};  // row starts of a CSR matrix with one row
    T* k_ = nullptr;                   // kernel values or features of the current example
    std::vector<double> s_;
    std::vector<double> slope_;
    std::vector<double> coef_;
    std::vector<double> steps_;  // of updates that move each weight separately
    std::vector<double> s_one_;
};

}  // namespace onkel
