// AlignedVector: numbers to be read and written by vector instructions.
#pragma once

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

}  // namespace onkel
