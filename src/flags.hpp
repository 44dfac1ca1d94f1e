// Flags: which values of a table are 1, as bits.
//
// Many columns hold nothing but 0 and 1: answers, categories spread over columns, words that are there or not. Two
// rows are compared there by counting bits, those of 32 columns (float) or 64 (double) at a time. Which columns are
// such depends on the rows that are stored now, not on those before them.
#pragma once

#include <algorithm>
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
    bool pack(const Row<T>& x, Word<T>* ones) const { return pack(x, mask(), ones); }
    // The same of many dense ones, one after the other.
    bool pack_dense(const Rows<T>& X, Word<T>* ones) const {
        return simd<T>().pack(X.values, X.n, X.columns, mask(), ones);
    }

    // How many bits a row has.
    std::size_t ones(const Word<T>* row) const {
        std::size_t total = 0;
        for (std::size_t w = 0; w < words(); ++w) total += static_cast<std::size_t>(std::popcount(row[w]));
        return total;
    }
    // No stored row has more.
    std::size_t most() const { return most_; }

    void append(const Row<T>& x) {
        if (n_ % lanes<T> == 0) tiles_.resize(tiles_.size() + stride());
        note(n_, x, n_);
        ++n_;
        count<true>(x);
    }
    // The last row takes the place of row i, which is x.
    void remove(std::size_t i, const Row<T>& x) {
        --n_;
        for (std::size_t w = 0; w < words(); ++w) {
            word(i, w) = word(n_, w);
            word(n_, w) = 0;
        }
        if (n_ % lanes<T> == 0) tiles_.resize(tiles_.size() - stride());
        count<false>(x);
    }

    // The same, then the dense row y is appended.
    void replace(std::size_t i, const T* x, const T* y) {
        const std::size_t columns = fractions_.size();
        note(n_ - 1, {y, nullptr, columns}, i);
        std::uint32_t changed = 0;
        for (std::size_t j = 0; j < columns; ++j) {
            const std::uint32_t before = fractions_[j], rest = before - is_fraction(x[j]);
            fractions_[j] = rest + is_fraction(y[j]);
            changed |= (fractions_[j] != before) & at_border(rest);
        }
        if (changed) choose();
    }

    void clear() {
        n_ = 0;
        most_ = 0;
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
    bool pack(const Row<T>& x, const Word<T>* mask, Word<T>* ones) const;

    // The bits of x in row i; those that were there before go to row j.
    void note(std::size_t i, const Row<T>& x, std::size_t j) {
        pack(x, everywhere_.data(), packed_.data());
        for (std::size_t w = 0; w < words(); ++w) {
            word(j, w) = word(i, w);
            word(i, w) = packed_[w];
        }
        most_ = std::max(most_, ones(packed_.data()));
    }

    // Without branches: what a column holds cannot be guessed.
    static bool is_fraction(T value) {
        const auto number = std::bit_cast<Word<T>>(value);
        return (number << 1 != 0) & (number != std::bit_cast<Word<T>>(T(1)));
    }
    // Does one more fraction in a column with so many make a difference?
    static bool at_border(std::uint32_t fractions) { return (fractions == 0) | (fractions == seldom - 1); }

    // The fractions of a row that comes or goes.
    template <bool comes>
    void count(const Row<T>& x) {
        std::uint32_t changed = 0;
        const auto meet = [&](std::uint32_t& fractions, T value) {
            const std::uint32_t fraction = is_fraction(value), fewer = comes ? fractions : fractions - fraction;
            fractions = comes ? fractions + fraction : fewer;
            changed |= fraction & at_border(fewer);
        };
        if (x.index) {
            for (std::size_t e = 0; e < x.count; ++e) meet(fractions_[x.index[e]], x.values[e]);
        } else {
            for (std::size_t j = 0; j < x.count; ++j) meet(fractions_[j], x.values[j]);
        }
        if (changed) choose();
    }
    void choose();

    bool partly_;
    std::size_t n_ = 0;
    std::size_t version_ = 0;
    std::size_t most_ = 0;
    std::vector<std::uint32_t> fractions_;  // for each column: how many rows are neither 0 nor 1 there
    Vectors<Word<T>> tiles_;                // word w of row i, as features lie in tiles
    std::vector<Word<T>> mask_;
    std::vector<std::int32_t> others_;
    std::vector<Word<T>> everywhere_;  // a mask of all columns
    std::vector<Word<T>> packed_;      // the row that comes
};

}  // namespace onkel
