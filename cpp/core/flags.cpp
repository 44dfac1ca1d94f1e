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
typename Flags<T>::Choice Flags<T>::choice(const std::vector<std::uint32_t>& counts, std::size_t words) const {
    Choice chosen;
    auto& mask = chosen.mask;
    mask.resize(words);
    std::vector<Word<T>> unsteady(words);
    bool whole = true;
    for (std::size_t j = 0; j < counts.size(); ++j) {
        whole &= counts[j] == 0;
        if (counts[j] == 0) mask[j / bits] |= bit(j);
        if (counts[j] > 0 && counts[j] < fewest_non_binary) unsteady[j / bits] |= bit(j);
    }
    for (std::size_t w = 0; !whole && w < words; ++w) {
        if (!partly_ || unsteady[w] || std::popcount(mask[w]) < fewest_flags) mask[w] = 0;
    }
    for (std::size_t j = 0; j < counts.size(); ++j) {
        if (!(mask[j / bits] & bit(j))) chosen.others.push_back(static_cast<std::int32_t>(j));
    }
    return chosen;
}

template <class T>
void Flags<T>::make_room(std::size_t columns) {
    const std::size_t wider = (columns + bits - 1) / bits, before = words();
    auto next = std::make_unique<Wider>();
    next->counts.reserve(columns);
    next->counts = counts_;
    next->counts.resize(columns);
    next->choice = choice(next->counts, wider);
    next->all_columns.assign(wider, ~Word<T>{0});
    if (columns % bits) next->all_columns.back() = bit(columns) - 1;
    if (wider != before) {
        const auto widened = [&](const auto& rows, std::size_t size) {  // the new words are 0
            std::remove_cvref_t<decltype(rows)> all(rows.size() / std::max<std::size_t>(before, 1) * wider);
            for (std::size_t from = 0, to = 0; from < rows.size(); from += before * size, to += wider * size) {
                std::copy_n(rows.data() + from, before * size, all.data() + to);
            }
            return all;
        };
        next->tiles = widened(tiles_, lanes<T>);
        next->non_binary = widened(non_binary_, 1);
        next->row_ones.resize(wider);
        next->row_non_binary.resize(wider);
    }
    wider_ = std::move(next);
}

template <class T>
void Flags<T>::widen() {
    const std::unique_ptr<Wider> next = std::move(wider_);
    if (next->choice.mask.size() != words()) {
        tiles_ = std::move(next->tiles);
        non_binary_ = std::move(next->non_binary);
        row_ones_ = std::move(next->row_ones);
        row_non_binary_ = std::move(next->row_non_binary);
    }
    counts_ = std::move(next->counts);
    all_columns_ = std::move(next->all_columns);
    adopt(std::move(next->choice));
}

template class Flags<float>;
template class Flags<double>;

}  // namespace onkel
