// Landmarks: stored examples that become a map. The definition is in onkel/budgets/landmarks.py.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "budgets/base.hpp"
#include "core/matrix.hpp"

namespace onkel {

// The first `budget` terms become the landmarks of a Nyström map, and steps are taken in its features.
class Landmarks final : public Budget {
public:
    template <class T>
    struct Memory : PartMemory {
        Memory(const Landmarks& budget, const Run&) : part(budget) {}
        void save(Store& store) const;
        void load(const Store& store, std::size_t terms);

        const Landmarks& part;
        std::vector<double> transform;    // M = D^-1/2 V', row by row; empty before the switch
        std::optional<Matrix<T>> matrix;  // M' in tiles, made when it is first used
    };

    Landmarks(std::size_t budget, std::size_t rank, const std::string& change)
        : budget_(budget), rank_(rank), eager_(change == "eager") {}
    Started<RunningBudget> start(const Run& run) const override;
    template <class T>
    bool keeps_terms(std::size_t, const Memory<T>& memory) const {
        return !memory.transform.empty();
    }
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, Memory<T>& memory) const;

private:
    template <class T>
    void become_linear(Terms<T>& f, Memory<T>& memory) const;
    // M'M k, with M the transform as T; k has room for whole tiles
    template <class T>
    const T* step_along(T* k, Memory<T>& memory) const;

    std::size_t budget_;
    std::size_t rank_;
    bool eager_;
};

}  // namespace onkel
