// Dual: an expansion plus explicit features; when the expansion is full, its smallest terms become features.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "hypotheses/expansion.hpp"
#include "hypotheses/features.hpp"

namespace onkel {

// The sum of an expansion and a function of features.
template <class T>
class TermsAndWeights final : public Function<T> {
public:
    using Function<T>::outputs;

    TermsAndWeights(KernelPointer kernel, const Map& map, std::size_t budget, std::size_t merge, bool insert_always,
                    const Run& run)
        : Function<T>(run),
          terms_(std::move(kernel), Unlimited(), run),
          weights_(map, run),
          budget_(budget),
          merge_(merge),
          insert_always_(insert_always),
          z_merged_(weights_.features()),
          zeros_(run.outputs),
          s_(run.outputs) {}

    std::size_t n() const override { return terms_.n(); }
    std::size_t features() const override { return 0; }
    std::size_t columns() const override { return terms_.columns(); }

    FunctionTraits traits() const override {
        return {.unit = terms_.traits().unit, .idle_without_step = !this->averages() && !insert_always_};
    }
    void check(Row<T> x) const override {
        terms_.check(x);
        weights_.check(x);
    }
    void check_query(Row<T> x) const override { weights_.check(x); }
    double length2(Row<T> x) const override { return terms_.length2(x); }

    T* row(const Rows<T>& X, std::size_t i, Workspace<T>& work) override {
        z_ = weights_.row(X, i, work);
        return terms_.row(X, i, work);
    }
    void drop_block() override {
        terms_.drop_block();
        weights_.drop_block();
    }

    void scores(const T* k, double* s) const override {
        terms_.scores(k, s);
        weights_.scores(z_, s_.data());
        for (std::size_t o = 0; o < outputs; ++o) s[o] += s_[o];
    }
    void average_scores(Row<T> x, const T* k, double t, Workspace<T>& work, double* s) const override {
        terms_.average_scores(x, k, t, work, s);
        weights_.average_scores(x, z_, t, work, s_.data());
        for (std::size_t o = 0; o < outputs; ++o) s[o] += s_[o];
    }
    void predict(const Rows<T>& X, bool averaged, double t, double* out) const override {
        std::vector<double> more(X.n * outputs);
        terms_.predict(X, averaged, t, out);
        weights_.predict(X, averaged, t, more.data());
        for (std::size_t i = 0; i < more.size(); ++i) out[i] += more[i];
    }

    void add_to_average() override {
        terms_.add_to_average();
        weights_.add_to_average();
    }
    void remove_from_average() override {
        terms_.remove_from_average();
        weights_.remove_from_average();
    }
    void check_scale(double factor) const override {
        terms_.check_scale(factor);
        weights_.check_scale(factor);
    }

    void make_room_for(Row<T> x) override { terms_.make_room_for(x); }
    void move(double factor, const Proposal<T>& proposal) override {
        terms_.shrink(factor);
        weights_.shrink(factor);
        const double* coef = proposal.coef ? proposal.coef : insert_always_ ? zeros_.data() : nullptr;
        if (!coef) return;
        if (budget_ == 0) {
            for (std::size_t o = 0; o < outputs; ++o) weights_.add(o, coef[o], z_);
            return;
        }
        if (n() == budget_) {
            for (std::size_t i = 0; i < merge_ && n() > 0; ++i) merge_smallest(proposal.work);
        }
        terms_.append(proposal.x, proposal.round.t, proposal.round.kxx, coef, proposal.work);
    }

    void make_room(std::size_t columns, const Map* map) override {
        weights_.make_room(columns, map);
        terms_.make_room(columns, map);
    }
    void widen(std::size_t columns) override {
        weights_.widen(columns);
        terms_.widen(columns);
    }
    void make_places(std::size_t count) override {
        weights_.make_places(count);
        terms_.make_places(count);
        zeros_.resize(outputs + count);
        s_.resize(outputs + count);
    }
    void join(const Places& at) override {
        weights_.join(at);
        terms_.join(at);
        outputs += at.size();
    }
    void save(Store& store) const override {
        terms_.save(store);
        weights_.save(store);
    }
    void load(const Store& store) override {
        terms_.load(store);
        weights_.load(store);
    }

private:
    void merge_smallest(Workspace<T>& work) {
        const std::size_t i = terms_.smallest();
        weights_.features_of(terms_.basis.row(i, work), work, z_merged_.data());
        for (std::size_t o = 0; o < outputs; ++o) {
            // with Average::all, `remove` below keeps the term for the average
            const double past = this->run_.average == Average::live ? terms_.past(i, o) : 0;
            weights_.add(o, terms_.scale * terms_.coef.values[o][i], z_merged_.data(), past);
        }
        terms_.remove(i, work);
    }

    Terms<T> terms_;
    Weights<T> weights_;
    std::size_t budget_;
    std::size_t merge_;  // how many terms become features at a time
    bool insert_always_;
    const T* z_ = nullptr;  // features of the example being learned from
    std::vector<T> z_merged_;
    std::vector<double> zeros_;
    mutable std::vector<double> s_;  // scores of the features; not used by `predict`, which many threads may call
};

// At most `budget` terms; the smallest become features (DualSGD).
class Dual final : public Hypothesis {
public:
    Dual(KernelPointer kernel, std::shared_ptr<const Map> map, std::size_t budget, std::size_t merge,
         bool insert_always)
        : kernel_(std::move(kernel)),
          map_(std::move(map)),
          budget_(budget),
          merge_(merge),
          insert_always_(insert_always) {}
    Started<Function> start(const Run& run) const override;

private:
    KernelPointer kernel_;
    std::shared_ptr<const Map> map_;
    std::size_t budget_;
    std::size_t merge_;
    bool insert_always_;
};

}  // namespace onkel
