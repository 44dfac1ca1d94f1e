#include "core/flags.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace onkel {

template <class T>
bool Flags<T>::pack(const Row<T>& x, const Word<T>* mask, Word<T>* ones, Word<T>* non_binary) const {
    if (!x.index) return simd<T>().pack(x.values, 1, x.count, mask, ones, non_binary);
    std::fill(ones, ones + words(), Word<T>{0});
    if (non_binary) std::fill(non_binary, non_binary + words(), Word<T>{0});
    bool good = true;
    for (std::size_t e = 0; e < x.count; ++e) {
        const auto j = static_cast<std::size_t>(x.index[e]);
        const Word<T> here = bit(j) & mask[j / bits];
        if (x.values[e] == 1) {
            ones[j / bits] |= here;
        } else if (x.values[e] != 0) {
            good &= !here;
            if (non_binary) non_binary[j / bits] |= here;
        }
    }
    return good;
}

template <class T>
void Flags<T>::choose_columns() {
    std::vector<Word<T>> mask(mask_.size());
    std::vector<Word<T>> unsteady(mask_.size());
    bool whole = true;
    for (std::size_t j = 0; j < counts_.size(); ++j) {
        whole &= counts_[j] == 0;
        if (counts_[j] == 0) mask[j / bits] |= bit(j);
        if (counts_[j] > 0 && counts_[j] < fewest_non_binary) unsteady[j / bits] |= bit(j);
    }
    for (std::size_t w = 0; !whole && w < mask.size(); ++w) {
        if (!partly_ || unsteady[w] || std::popcount(mask[w]) < fewest_flags) mask[w] = 0;
    }
    std::vector<std::int32_t> others;
    for (std::size_t j = 0; j < counts_.size(); ++j) {
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
    counts_.resize(columns);
    mask_.resize((columns + bits - 1) / bits);
    all_columns_.assign(words(), ~Word<T>{0});
    if (columns % bits) all_columns_.back() = bit(columns) - 1;
    row_ones_.resize(words());
    row_non_binary_.resize(words());
    const auto widen_rows = [&](auto& rows, std::size_t size) {  // the new words are 0
        std::remove_cvref_t<decltype(rows)> wider(rows.size() / std::max<std::size_t>(before, 1) * words());
        for (std::size_t from = 0, to = 0; from < rows.size(); from += before * size, to += words() * size) {
            std::copy_n(rows.data() + from, before * size, wider.data() + to);
        }
        rows = std::move(wider);
    };
    widen_rows(tiles_, lanes<T>);
    widen_rows(non_binary_, 1);
    choose_columns();
}

template class Flags<float>;
template class Flags<double>;

}  // namespace onkel
