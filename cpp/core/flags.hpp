// Flags: which values of a table are 1, as bits.
//
// Many columns hold nothing but 0 and 1: yes/no answers, one-hot categories, word indicators. In such columns two rows
// are compared by counting bits, those of 32 columns (float) or 64 (double) at a time. Which columns are counted
// depends on the rows that are stored now, not on earlier ones. Values that are neither 0 nor 1 are called non-binary.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/row.hpp"
#include "core/simd.hpp"
#include "core/vectors.hpp"

namespace onkel {

template <class T>
class Flags {
public:
    // partly: count bits even if only some columns are flags.
    Flags(std::size_t columns, bool partly) : partly_(partly) {
        make_room(columns);
        widen();
    }

    // The columns whose bits are counted, and all others.
    const Word<T>* mask() const { return choice_.mask.data(); }
    const std::vector<std::int32_t>& others() const { return choice_.others; }
    bool any() const { return others().size() < counts_.size(); }
    bool all() const { return others().empty(); }
    // Grows when this choice of columns changes. While it stays the same, sums for a row are bitwise reproducible.
    std::size_t version() const { return version_; }

    std::size_t words() const { return choice_.mask.size(); }
    std::size_t stride() const { return words() * lanes<T>; }
    // The tile of row i.
    const Word<T>* tile(std::size_t i) const { return tiles_.data() + i / lanes<T> * stride(); }

    // The bits of an example; false if it is neither 0 nor 1 in one of these columns.
    bool pack(const Row<T>& x, Word<T>* ones) const { return pack(x, mask(), ones, nullptr); }
    // The same of many dense ones, one after the other.
    bool pack_dense(const Rows<T>& X, Word<T>* ones) const {
        return simd<T>().pack(X.values, X.n, X.columns, mask(), ones, nullptr);
    }

    // How many bits a row has.
    std::size_t ones(const Word<T>* row) const {
        std::size_t total = 0;
        for (std::size_t w = 0; w < words(); ++w) total += static_cast<std::size_t>(std::popcount(row[w]));
        return total;
    }
    // An upper bound: no stored row has more ones.
    std::size_t most() const { return most_; }

    void make_room_for_row() {
        if (n_ % lanes<T> == 0) reserve(tiles_, tiles_.size() + stride());
        reserve(non_binary_, non_binary_.size() + words());
    }
    void append(const Row<T>& x) {
        if (n_ % lanes<T> == 0) tiles_.resize(tiles_.size() + stride());
        non_binary_.resize(non_binary_.size() + words());
        pack_row(x);
        bool changed = false;
        for (std::size_t w = 0; w < words(); ++w) {
            word(n_, w) = row_ones_[w];
            non_binary(n_, w) = row_non_binary_[w];
            changed |= count<true>(w, row_non_binary_[w]);
        }
        ++n_;
        if (changed) choose_columns();
    }

    // Removes row i; the last row takes its place.
    void remove(std::size_t i) {
        const std::size_t last = --n_;
        bool changed = false;
        for (std::size_t w = 0; w < words(); ++w) {
            changed |= count<false>(w, non_binary(i, w));
            non_binary(i, w) = non_binary(last, w);
            word(i, w) = word(last, w);
            word(last, w) = 0;
        }
        non_binary_.resize(non_binary_.size() - words());
        if (last % lanes<T> == 0) tiles_.resize(tiles_.size() - stride());
        if (changed) choose_columns();
    }

    // The same, then x is appended.
    void replace(std::size_t i, const Row<T>& x) {
        const std::size_t last = n_ - 1;
        pack_row(x);
        bool changed = false;
        for (std::size_t w = 0; w < words(); ++w) {
            const Word<T> leaves = non_binary(i, w), comes = row_non_binary_[w];
            changed |= count<false>(w, leaves & ~comes);
            changed |= count<true>(w, comes & ~leaves);
            non_binary(i, w) = non_binary(last, w);
            non_binary(last, w) = comes;
            word(i, w) = word(last, w);
            word(last, w) = row_ones_[w];
        }
        if (changed) choose_columns();
    }

    void clear() {
        n_ = 0;
        most_ = 0;
        tiles_.clear();
        non_binary_.clear();
        counts_.assign(counts_.size(), 0);
        mixed_ = 0;
        choose_columns();
    }
    // New columns, which are 0 in all rows. `make_room` allocates what they need; then `widen` adds them and cannot
    // fail.
    void make_room(std::size_t columns);
    void widen();

private:
    static constexpr std::size_t bits = 8 * sizeof(T);
    static constexpr int fewest_flags = 8;  // words with fewer flags are not counted
    // The bits of a word are not counted if one of its columns has non-binary values, but fewer than this: such a
    // column would often switch between flags and others, and each switch recomputes a block's kernel rows.
    static constexpr std::uint32_t fewest_non_binary = 16;

    static Word<T> bit(std::size_t j) { return Word<T>{1} << j % bits; }
    Word<T>& word(std::size_t i, std::size_t w) {
        return tiles_[i / lanes<T> * stride() + w * lanes<T> + i % lanes<T>];
    }
    Word<T>& non_binary(std::size_t i, std::size_t w) { return non_binary_[i * words() + w]; }
    bool pack(const Row<T>& x, const Word<T>* mask, Word<T>* ones, Word<T>* non_binary) const;

    // Packs the bits of a row that is about to be stored.
    void pack_row(const Row<T>& x) {
        pack(x, all_columns_.data(), row_ones_.data(), row_non_binary_.data());
        most_ = std::max(most_, ones(row_ones_.data()));
    }

    // One row more or less has non-binary values in these columns of word w. Can the choice of columns change?
    template <bool more>
    bool count(std::size_t w, Word<T> columns) {
        bool changed = false;
        for (; columns; columns &= columns - 1) {
            std::uint32_t& rows = counts_[w * bits + static_cast<std::size_t>(std::countr_zero(columns))];
            const std::uint32_t fewer = more ? rows++ : --rows;
            if (fewer == 0) more ? ++mixed_ : --mixed_;
            // without `partly`, columns are flags if mixed_ is 0: does it become 1, or 0 again?
            changed |= partly_ ? fewer == 0 || fewer == fewest_non_binary - 1 : fewer == 0 && mixed_ == more;
        }
        return changed;
    }
    // The columns whose bits are counted, and all others.
    struct Choice {
        std::vector<Word<T>> mask;
        std::vector<std::int32_t> others;
        bool operator==(const Choice&) const = default;
    };
    Choice choice(const std::vector<std::uint32_t>& counts, std::size_t words) const;
    // Chooses them anew, after `counts_` has changed.
    void choose_columns() { adopt(choice(counts_, words())); }
    void adopt(Choice&& choice) {
        if (choice == choice_) return;
        choice_ = std::move(choice);
        ++version_;
    }
    // What `widen` puts in place; the last four only if rows need more words.
    struct Wider {
        std::vector<std::uint32_t> counts;
        Choice choice;
        std::vector<Word<T>> all_columns;
        AlignedVector<Word<T>> tiles;
        std::vector<Word<T>> non_binary, row_ones, row_non_binary;
    };

    bool partly_;
    std::size_t n_ = 0;
    std::size_t version_ = 0;
    std::size_t most_ = 0;
    std::vector<std::uint32_t> counts_;  // for each column: how many rows are neither 0 nor 1 there
    std::size_t mixed_ = 0;              // how many columns have such rows
    AlignedVector<Word<T>> tiles_;       // the ones: word w of a row lies where feature w would (see simd.hpp)
    std::vector<Word<T>> non_binary_;    // row by row: which values are neither 0 nor 1
    Choice choice_;
    std::vector<Word<T>> all_columns_;                // a mask of all columns
    std::vector<Word<T>> row_ones_, row_non_binary_;  // of the row about to be stored
    std::unique_ptr<Wider> wider_;                    // from `make_room` to `widen`
};

}  // namespace onkel
