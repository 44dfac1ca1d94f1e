// Turns: any number of threads may predict with a model, or one may learn. They wait for each other; a second one that
// learns is refused, since nobody could say what it would learn from.
#pragma once

#include <atomic>
#include <mutex>
#include <stdexcept>

namespace onkel {

class Turns {
public:
    // Who waits here, or makes others wait, must not hold what they need to go on: Python's lock, for one.
    template <bool learns>
    class Turn {
    public:
        explicit Turn(Turns& turns) : turns_(turns) {
            while (!taken_) {
                const int users = turns.users_;
                taken_ = turns.take<learns>();
                if (!taken_) turns.users_.wait(users);
            }
        }
        // Only if it need not wait.
        Turn(Turns& turns, std::try_to_lock_t) : turns_(turns), taken_(turns.take<learns>()) {}
        ~Turn() {
            if (!taken_) return;
            learns ? turns_.users_.store(0) : void(--turns_.users_);
            turns_.users_.notify_all();
        }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;

        explicit operator bool() const { return taken_; }

    private:
        Turns& turns_;
        bool taken_ = false;
    };
    using Learn = Turn<true>;
    using Predict = Turn<false>;

private:
    static constexpr int one_learns = -1;

    template <bool learns>
    bool take() {
        if constexpr (learns) {
            int users = 0;
            if (users_.compare_exchange_strong(users, one_learns)) return true;
            if (users == one_learns) throw std::runtime_error("the model is learning in another thread: wait for it");
            return false;
        }
        int users = users_;
        while (users != one_learns && !users_.compare_exchange_weak(users, users + 1)) {
        }
        return users != one_learns;
    }

    std::atomic<int> users_ = 0;  // how many predict
};

}  // namespace onkel
