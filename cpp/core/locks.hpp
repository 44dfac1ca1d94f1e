// A lock with two modes: shared by any number of threads that predict, or exclusive for the one that learns. They wait
// for each other; a second one that learns is refused, since nobody could say what it would learn from.
#pragma once

#include <atomic>
#include <mutex>
#include <stdexcept>

namespace onkel {

class Lock {
public:
    // Holds the lock while it lives. Who waits here, or makes others wait, must not hold what they need to go on:
    // Python's lock, for one.
    template <bool exclusive>
    class Guard {
    public:
        explicit Guard(Lock& lock) : lock_(lock) {
            while (!held_) {
                const int holders = lock.holders_;
                held_ = lock.try_lock<exclusive>();
                if (!held_) lock.holders_.wait(holders);
            }
        }
        // Only if it need not wait.
        Guard(Lock& lock, std::try_to_lock_t) : lock_(lock), held_(lock.try_lock<exclusive>()) {}
        ~Guard() {
            if (!held_) return;
            exclusive ? lock_.holders_.store(0) : void(--lock_.holders_);
            lock_.holders_.notify_all();
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

private:
    static constexpr int one_learns = -1;

    template <bool exclusive>
    bool try_lock() {
        if constexpr (exclusive) {
            int holders = 0;
            if (holders_.compare_exchange_strong(holders, one_learns)) return true;
            if (holders == one_learns) throw std::runtime_error("the model is learning in another thread: wait for it");
            return false;
        }
        int holders = holders_;
        while (holders != one_learns && !holders_.compare_exchange_weak(holders, holders + 1)) {
        }
        return holders != one_learns;
    }

    std::atomic<int> holders_ = 0;  // how many share it, or one_learns
};

}  // namespace onkel
