// Parts: a part is a value, and may serve many learners. `start(run)` makes what runs in one of them: the part with a
// memory of its own, for rows of float or double. `traits()` of an update, a budget or a function states what is true
// of it in every round, so that others can skip work.
#pragma once

#include <cstddef>
#include <memory>
#include <variant>

#include "core/run.hpp"
#include "core/store.hpp"
#include "core/vectors.hpp"

namespace onkel {

// Result of start(): the running part, for rows of float or of double.
template <template <class> class Running>
using Started = std::variant<std::unique_ptr<Running<float>>, std::unique_ptr<Running<double>>>;

// make(a float) or make(a double), by the type of the rows.
template <template <class> class Running, class Make>
Started<Running> by_type(const Run& run, Make make) {
    if (run.float32) return make(float());
    return make(double());
}

// Default memory of a part: empty.
struct PartMemory {
    PartMemory() = default;
    template <class Part>
    PartMemory(const Part&, const Run&) {}
    void make_room_for_term() {}
    void make_room(std::size_t /*columns*/) {}
    void widen(std::size_t /*columns*/) {}
    void make_places(std::size_t /*count*/) {}
    void join(const Places&) {}
    void save(Store&) const {}
    void load(const Store&) {}
    void load(const Store&, std::size_t /*terms*/) {}  // of a budget
};

}  // namespace onkel
