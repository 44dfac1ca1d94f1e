// Hedge: a learner made of learners. The definition, in array notation, is onkel/learners/hedge.py. The losses of the
// components, the round counter and the random states are kept in Python and passed to each call (`Memory`).
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/random.hpp"
#include "learners/learner.hpp"
#include "learners/weighting.hpp"
#include "maps.hpp"

namespace onkel {

class Hedge {
public:
    using Component = Learner<double>;

    // What a pool remembers: the summed losses of the components, the number of rounds, and the random streams.
    struct Memory {
        double* losses;
        std::int64_t& t;
        Random update;
        Random combination;
    };

    Hedge(std::vector<Component*> learners, std::shared_ptr<const Weighting> weighting,
          std::shared_ptr<const Sampling> sampling, bool vote, double budget, std::size_t jobs)
        : learners_(std::move(learners)),
          weighting_(std::move(weighting)),
          sampling_(std::move(sampling)),
          vote_(vote),
          budget_(budget),
          jobs_(jobs),
          m_(learners_.size()),
          outputs_(learners_.front()->outputs()),
          th_(m_),
          chances_(m_),
          answering_(m_),
          round_losses_(m_),
          slope_(outputs_) {}

    const std::vector<Component*>& learners() const { return learners_; }
    std::size_t components() const { return m_; }
    std::size_t outputs() const { return outputs_; }

    // The directions that several maps of the components share, if any.
    void share(std::vector<std::shared_ptr<Common>> common) { common_ = std::move(common); }

    // Learn from each row in turn; writes the combined scores before each update.
    void learn(const Rows<double>& X, const double* y, const double* weight, Memory& memory, double* combined) {
        for (const Component* learner : learners_) learner->check(X);
        for (Component* learner : learners_) learner->drop_block();
        const DropBlock end{*this};
        if (sampling_->learn || sampling_->scale || budget_ < std::numeric_limits<double>::infinity()) {
            scores_.resize(m_ * outputs_);
            for (std::size_t i = 0; i < X.n; ++i) {
                round(X, i, y[i], weight ? weight[i] : 1, memory, combined + i * outputs_);
            }
            return;
        }
        const std::size_t block = jobs_ > 1 ? 8192 : 64;  // 8192: fewer starts of threads; 64: fits the cache
        for (std::size_t begin = 0; begin < X.n; begin += block) {
            const std::size_t end_row = std::min(begin + block, X.n);
            scores_.resize((end_row - begin) * m_ * outputs_);
            for (const auto& common : common_) common->read_block(X.slice(begin, end_row - begin));
            for_each_component([&](std::size_t j) {
                for (std::size_t i = begin; i < end_row; ++i) {
                    score(X, i, j, scores_.data() + (i - begin) * m_ * outputs_);
                    if (!weight || weight[i] > 0) learners_[j]->finish_round(X, i, y[i], weight ? weight[i] : 1);
                }
            });
            for (std::size_t i = begin; i < end_row; ++i) {
                const double* s = scores_.data() + (i - begin) * m_ * outputs_;
                const bool counts = !weight || weight[i] > 0;
                weighting_->weights(memory.losses, m_, th_.data());
                combine(s, counts ? drawn(memory.combination) : th_.data(), combined + i * outputs_);
                if (!counts) continue;
                for (std::size_t j = 0; j < m_; ++j) add_loss(memory.losses[j], loss_of(y[i], s + j * outputs_), i);
                ++memory.t;
            }
        }
    }

    void scores(const Rows<double>& X, const double* losses, double* out) const {
        constexpr std::size_t block = 512;
        std::vector<double> th(m_), own(block * outputs_), s(block * m_ * outputs_);
        weighting_->weights(losses, m_, th.data());
        for (std::size_t begin = 0; begin < X.n; begin += block) {
            const Rows<double> part = X.slice(begin, std::min(block, X.n - begin));
            for (std::size_t j = 0; j < m_; ++j) {
                learners_[j]->scores(part, false, own.data());
                for (std::size_t i = 0; i < part.n; ++i) {
                    std::copy_n(own.data() + i * outputs_, outputs_, s.data() + (i * m_ + j) * outputs_);
                }
            }
            for (std::size_t i = 0; i < part.n; ++i) {
                combine(s.data() + i * m_ * outputs_, th.data(), out + (begin + i) * outputs_);
            }
        }
    }

private:
    // Drops the blocks at the end of a scope, also after an exception: the caller may then free the examples.
    struct DropBlock {
        Hedge& pool;
        ~DropBlock() {
            for (Component* learner : pool.learners_) learner->drop_block();
            for (const auto& common : pool.common_) common->drop_block();
        }
    };

    // One round in which the components depend on the weights, or on each other.
    void round(const Rows<double>& X, std::size_t i, double y, double weight, Memory& memory, double* combined) {
        for (std::size_t j = 0; j < m_; ++j) score(X, i, j, scores_.data());
        weighting_->weights(memory.losses, m_, th_.data());
        if (weight == 0) {
            combine(scores_.data(), th_.data(), combined);
            return;
        }
        sampling_->chances(th_.data(), m_, chances_.data());
        double room = budget_;
        for (const Component* learner : learners_) room -= static_cast<double>(learner->n());
        for (std::size_t j = 0; j < m_; ++j) {
            if (sampling_->learn && !(memory.update.uniform() < chances_[j])) {
                round_losses_[j] = 0;
                continue;
            }
            round_losses_[j] = loss_of(y, scores_.data() + j * outputs_);
            const auto before = static_cast<double>(learners_[j]->n());
            learners_[j]->finish_round(X, i, y, weight, sampling_->scale ? chances_[j] : 1, room);
            room += before - static_cast<double>(learners_[j]->n());
        }
        combine(scores_.data(), drawn(memory.combination), combined);
        for (std::size_t j = 0; j < m_; ++j) add_loss(memory.losses[j], round_losses_[j], i);
        ++memory.t;
    }

    // The scores of component j for example i, at its place in s.
    void score(const Rows<double>& X, std::size_t i, std::size_t j, double* s) {
        std::copy_n(learners_[j]->begin_round(X, i), outputs_, s + j * outputs_);
    }

    // The weights of the components that answer, 0 for the others. If only "one" is drawn, its weight is 1; if none of
    // "some" is drawn, the best keep their weights.
    const double* drawn(Random& random) {
        if (sampling_->answer == Sampling::Answer::all) return th_.data();
        if (sampling_->answer == Sampling::Answer::one) {
            double total = 0;
            for (const double w : th_) total += w;
            const double target = random.uniform() * total;
            std::size_t one = 0;
            double running = th_[0];
            while (running <= target && one + 1 < m_) running += th_[++one];
            for (std::size_t j = 0; j < m_; ++j) answering_[j] = j == one;
            return answering_.data();
        }
        sampling_->chances(th_.data(), m_, chances_.data());
        bool any = false;
        for (std::size_t j = 0; j < m_; ++j) {
            answering_[j] = random.uniform() < chances_[j] ? th_[j] : 0;
            any |= answering_[j] > 0;
        }
        const double most = *std::max_element(th_.begin(), th_.end());
        for (std::size_t j = 0; !any && j < m_; ++j) answering_[j] = th_[j] == most ? th_[j] : 0;
        return answering_.data();
    }

    void combine(const double* s, const double* th, double* out) const {
        std::fill_n(out, outputs_, 0.0);
        for (std::size_t j = 0; j < m_; ++j, s += outputs_) {
            if (!vote_) {
                for (std::size_t o = 0; o < outputs_; ++o) out[o] += th[j] * s[o];
            } else if (outputs_ == 1) {
                out[0] += s[0] >= 0 ? th[j] : -th[j];
            } else {
                out[std::max_element(s, s + outputs_) - s] += th[j];
            }
        }
    }

    // The loss of a component with these scores.
    double loss_of(double y, const double* s) { return weighting_->loss(y, s, outputs_, slope_.data()); }

    static void add_loss(double& total, double loss, std::size_t row) {
        total += loss;
        if (!std::isfinite(total)) {  // no weights follow from infinity
            throw Diverged("the summed loss of a component is", total, static_cast<std::ptrdiff_t>(row));
        }
    }

    // Calls each(j) for every component, on jobs_ threads. The first exception is thrown after all threads have ended.
    template <class Each>
    void for_each_component(Each each) {
        if (jobs_ <= 1) {
            for (std::size_t j = 0; j < m_; ++j) each(j);
            return;
        }
        std::atomic<std::size_t> next{0};
        std::exception_ptr failed;
        std::mutex lock;
        const auto work = [&] {
            for (std::size_t j = next++; j < m_; j = next++) {
                try {
                    each(j);
                } catch (...) {
                    const std::lock_guard<std::mutex> guard(lock);
                    if (!failed) failed = std::current_exception();
                }
            }
        };
        std::vector<std::thread> threads;
        for (std::size_t k = 1; k < std::min(jobs_, m_); ++k) threads.emplace_back(work);
        work();
        for (std::thread& thread : threads) thread.join();
        if (failed) std::rethrow_exception(failed);
    }

    std::vector<Component*> learners_;
    std::vector<std::shared_ptr<Common>> common_;
    std::shared_ptr<const Weighting> weighting_;
    std::shared_ptr<const Sampling> sampling_;
    bool vote_;
    double budget_;
    std::size_t jobs_;
    std::size_t m_;
    std::size_t outputs_;
    std::vector<double> th_;
    std::vector<double> chances_;
    std::vector<double> answering_;
    std::vector<double> round_losses_;
    std::vector<double> slope_;
    std::vector<double> scores_;  // of the components, for one round or a block of them
};

}  // namespace onkel
