// Expansion: f is a sum of kernels at stored examples.
#pragma once

#include <memory>
#include <utility>

#include "hypotheses/terms.hpp"

namespace onkel {

// Every term is kept.
class Unlimited final : public Budget {
public:
    Started<RunningBudget> start(const Run& run) const override;
    template <class T>
    void insert(Terms<T>& f, const Proposal<T>& proposal, PartMemory&) const;
};

class Expansion final : public Hypothesis {
public:
    Expansion(KernelPointer kernel, std::shared_ptr<const Budget> budget)
        : kernel_(std::move(kernel)), budget_(std::move(budget)) {}
    Started<Function> start(const Run& run) const override;

private:
    KernelPointer kernel_;
    std::shared_ptr<const Budget> budget_;
};

}  // namespace onkel
