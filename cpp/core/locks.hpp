// A lock with two modes: shared by any number of threads that predict, or exclusive for the one that learns. They wait
// for each other; a second one that learns is refused, since nobody could say in which order they learn.
//
// A forked process does not have the other threads. Locks that they shared are free there. If one of them was learning,
// the model may be half-updated, and taking its lock throws Busy.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/errors.hpp"

namespace onkel {

class Lock {
public:
    // Holds the lock while it lives. Release the GIL before waiting here: the thread that holds the lock may need it.
    template <bool exclusive>
    class Guard {
    public:
        explicit Guard(Lock& lock) : lock_(lock) {
            while (!held_) {
                const State state = lock.state_;
                held_ = lock.try_lock<exclusive>();
                if (!held_) lock.state_.wait(state);
            }
        }
        // Takes it only if it is free.
        Guard(Lock& lock, std::try_to_lock_t) : lock_(lock), held_(lock.try_lock<exclusive>()) {}
        ~Guard() {
            if (!held_) return;
            exclusive ? void(lock_.state_ -= one_learns) : void(--lock_.state_);
            lock_.state_.notify_all();
        }
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;

        explicit operator bool() const { return held_; }

    private:
        Lock& lock_;
        bool held_ = false;
    };
    using Exclusive = Guard<true>;
    using Shared = Guard<false>;

    // To be called in every process that was just forked.
    static void after_fork() { process += one_process; }

private:
    // Low 16 bits: number of threads that share the lock, or one_learns (all ones). High 16 bits: the process in which
    // they run, given by the number of forks that led to it (modulo 2^16).
    using State = std::uint32_t;
    static constexpr State one_process = 1U << 16;
    static constexpr State one_learns = one_process - 1;
    inline static std::atomic<State> process = 0;

    template <bool exclusive>
    bool try_lock() {
        State state = state_;
        for (;;) {
            const State here = process;
            const State holders = state % one_process;
            if (state - holders != here) {  // set by a process before a fork: its threads are not here
                if (holders == one_learns) {
                    throw Busy(
                        "this process was forked while another thread learned: load the model from a file, or copy it "
                        "before the fork");
                }
                if (state_.compare_exchange_weak(state, here)) state = here;
                continue;
            }
            if (holders == one_learns) {
                if (exclusive) throw Busy("the model is learning in another thread: wait for it");
                return false;
            }
            if (exclusive && holders) return false;
            if (state_.compare_exchange_weak(state, state + (exclusive ? one_learns : 1))) return true;
        }
    }

    std::atomic<State> state_ = process.load();
};

}  // namespace onkel
