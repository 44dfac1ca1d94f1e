#include "flags.hpp"

#include <algorithm>
#include <utility>

namespace onkel {

template <class T>
bool Flags<T>::pack(const Row<T>& x, const Word<T>* mask, Word<T>* ones) const {
    if (!x.index) return simd<T>().pack(x.values, 1, x.count, mask, ones);
    std::fill(ones, ones + words(), Word<T>{0});
    bool good = true;
    for (std::size_t e = 0; e < x.count; ++e) {
        const auto j = static_cast<std::size_t>(x.index[e]);
        const Word<T> here = bit(j) & mask[j / bits];
        if (x.values[e] == 1) ones[j / bits] |= here;
        good &= !here || !is_fraction(x.values[e]);
    }
    return good;
}

template <class T>
void Flags<T>::choose() {
    std::vector<Word<T>> mask(mask_.size());
    std::vector<Word<T>> unsteady(mask_.size());
    bool whole = true;
    for (std::size_t j = 0; j < fractions_.size(); ++j) {
        whole &= fractions_[j] == 0;
        if (fractions_[j] == 0) mask[j / bits] |= bit(j);
        if (fractions_[j] > 0 && fractions_[j] < seldom) unsteady[j / bits] |= bit(j);
    }
    for (std::size_t w = 0; !whole && w < mask.size(); ++w) {
        if (!partly_ || unsteady[w] || std::popcount(mask[w]) < worth) mask[w] = 0;
    }
    std::vector<std::int32_t> others;
    for (std::size_t j = 0; j < fractions_.size(); ++j) {
        if (!(mask[j / bits] & bit(j))) others.push_back(static_cast<std::int32_t>(j));
    }
    if (mask == mask_ && others == others_) return;
    mask_ = std::move(mask);
    others_ = std::move(others);
    ++version_;
}

template <class T>
void Flags<T>::widen(std::size_t columns) {
    const std::size_t before = words();
    fractions_.resize(columns);
    mask_.resize((columns + bits - 1) / bits);
    everywhere_.assign(words(), ~Word<T>{0});
    packed_.resize(words());
    Vectors<Word<T>> wider((n_ + lanes<T> - 1) / lanes<T> * stride());
    for (std::size_t tile = 0; tile * before * lanes<T> < tiles_.size(); ++tile) {
        const Word<T>* from = tiles_.data() + tile * before * lanes<T>;
        std::copy(from, from + before * lanes<T>, wider.data() + tile * stride());
    }
    tiles_ = std::move(wider);
    choose();
}

template class Flags<float>;
template class Flags<double>;

}  // namespace onkel
