// AlignedVector: numbers to be read and written by vector instructions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
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

}  // namespace onkel
