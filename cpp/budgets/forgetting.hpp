// Forget: f shrinks before its oldest term leaves. The definition is in onkel/budgets/forgetting.py.
#pragma once

#include <cstddef>
#include <string>

#include "budgets/base.hpp"

namespace onkel {

class Forget final : public Budget {
public:
    struct Totals : PartMemory {
        Totals(const Forget& budget, const Run&) : part(budget) {}
        void save(Store& store) const;
        void load(const Store& store, std::size_t terms);

        const Forget& part;
        double norm2 = 0;  // of the basic variant; the other has
        double M = 0;
        double Q = 0;
    };
    template <class T>
    using Memory = Totals;

    Forget(std::size_t budget, const std::string& variant, bool absolute, bool legacy_root)
        : budget_(budget), basic_(variant == "basic"), absolute_(absolute), legacy_root_(legacy_root) {}
    Started<RunningBudget> start(const Run& run) const override;
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, Totals& memory) const;

private:
    template <class T>
    void insert_basic(Terms<T>& f, const Proposal<T>& proposal, Totals& memory) const;
    double factor(double s, double mu, double room) const;

    std::size_t budget_;
    bool basic_;
    bool absolute_;
    bool legacy_root_;
};

}  // namespace onkel
