// Flags: which values of a table are 1, as bits.
//
// Many columns hold nothing but 0 and 1: answers, categories spread over columns, words that are there or not. Two
// rows are compared there by counting bits, those of 32 columns (float) or 64 (double) at a time. Which columns are
// such depends on the rows that are stored now, not on those before them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "row.hpp"
#include "simd.hpp"
#include "vectors.hpp"

namespace onkel {

template <class T>
class Flags {
public:
    // partly: also where only some columns are flags.
    Flags(std::size_t columns, bool partly) : partly_(partly) { widen(columns); }

    // The columns whose bits are counted, and all others.
    const Word<T>* mask() const { return mask_.data(); }
    const std::vector<std::int32_t>& others() const { return others_; }
    bool any() const { return others_.size() < fractions_.size(); }
    bool all() const { return others_.empty(); }
    // Grows when they change. A row is compared in the same order, bit by bit, while it stays.
    std::size_t version() const { return version_; }

    std::size_t words() const { return mask_.size(); }
    std::size_t stride() const { return words() * lanes<T>; }
    // The tile of row i.
    const Word<T>* tile(std::size_t i) const { return tiles_.data() + i / lanes<T> * stride(); }

    // The bits of an example; false if it is neither 0 nor 1 in one of these columns.
    bool pack(const Row<T>& x, Word<T>* ones) const;

    void append(const Row<T>& x) {
        if (n_ % lanes<T> == 0) tiles_.resize(tiles_.size() + stride());
        for (std::size_t e = 0; e < x.count; ++e) {
            const std::size_t j = x.index ? x.index[e] : e;
            if (x.values[e] == 1) {
                word(n_, j / bits) |= bit(j);
            } else if (x.values[e] != 0) {
                changed_ |= at_border(fractions_[j]++);
            }
        }
        ++n_;
        settle();
    }

    // What row i had in a column, before it is removed.
    void drop(std::size_t j, T value) {
        if (value != 0 && value != 1) changed_ |= at_border(--fractions_[j]);
    }
    // The last row takes its place.
    void remove(std::size_t i) {
        --n_;
        for (std::size_t w = 0; w < words(); ++w) {
            word(i, w) = word(n_, w);
            word(n_, w) = 0;
        }
        if (n_ % lanes<T> == 0) tiles_.resize(tiles_.size() - stride());
        settle();
    }

    void clear() {
        n_ = 0;
        tiles_.clear();
        fractions_.assign(fractions_.size(), 0);
        choose();
    }
    void widen(std::size_t columns);

private:
    static constexpr std::size_t bits = 8 * sizeof(T);
    static constexpr int worth = 8;  // flags in a word, to be counted rather than compared one by one
    // A word with a column of fewer fractions than this, but some, is not counted: its columns would be flags now and
    // then only, and every change costs those who look ahead.
    static constexpr std::uint32_t seldom = 16;

    static Word<T> bit(std::size_t j) { return Word<T>{1} << j % bits; }
    Word<T>& word(std::size_t i, std::size_t w) {
        return tiles_[i / lanes<T> * stride() + w * lanes<T> + i % lanes<T>];
    }
    // Does one more fraction in a column with so many make a difference?
    static bool at_border(std::uint32_t fractions) { return fractions == 0 || fractions == seldom - 1; }
    void settle() {
        if (changed_) choose();
    }
    void choose();

    bool partly_;
    bool changed_ = false;
    std::size_t n_ = 0;
    std::size_t version_ = 0;
    std::vector<std::uint32_t> fractions_;  // for each column: how many rows are neither 0 nor 1 there
    Vectors<Word<T>> tiles_;                // word w of row i, as features lie in tiles
    std::vector<Word<T>> mask_;
    std::vector<std::int32_t> others_;
};

}  // namespace onkel
