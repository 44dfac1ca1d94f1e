// AlignedVector: numbers to be read and written by vector instructions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace onkel {

template <class T>
struct Aligned {
    using value_type = T;
    Aligned() = default;
    template <class U>
    explicit Aligned(const Aligned<U>&) {}
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64})); }
    void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t{64}); }
    bool operator==(const Aligned&) const { return true; }
};

// A std::vector whose storage is 64-byte aligned.
template <class T>
using AlignedVector = std::vector<T, Aligned<T>>;

// Room for n elements; it doubles, so that growing step by step costs what is added.
template <class V>
void reserve(V& vector, std::size_t n) {
    if (n > vector.capacity()) vector.reserve(std::max(n, 2 * vector.capacity()));
}

// The positions of new outputs among all, in ascending order.
using Places = std::vector<std::size_t>;

// One vector for each output. New outputs begin with zeros: `make_places` allocates them, `join` cannot fail.
template <class V>
class PerOutput : public std::vector<V> {
public:
    using std::vector<V>::vector;

    void make_places(std::size_t count, std::size_t length) {
        joining_.assign(count, V(length));
        onkel::reserve(*this, this->size() + count);
    }
    void join(const Places& at) {
        for (std::size_t i = 0; i < at.size(); ++i) {
            this->insert(this->begin() + static_cast<std::ptrdiff_t>(at[i]), std::move(joining_[i]));
        }
        joining_.clear();
    }

private:
    std::vector<V> joining_;
};

}  // namespace onkel
