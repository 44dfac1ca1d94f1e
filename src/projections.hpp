// Budgets that project: what a term would have added, or leaves behind, goes to the terms that stay. The definitions
// are in onkel/projections.py.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "budgets.hpp"
#include "span.hpp"

namespace onkel {

// Budgets with a span.
class Spanned : public Budget {
public:
    explicit Spanned(bool inverse) : span_(inverse) {}
    void widen(std::size_t columns) override { span_.widen(columns); }
    void save(Store& store) const override { span_.save(store); }
    void load(const Store& store, std::size_t, bool, bool) override { span_.load(store); }

protected:
    // A new term, unless it depends on those there are: then its step goes to them. Is there a new one?
    template <class T>
    bool join(Expansion<T>& f, const Offer<T>& offer);
    // Term i leaves; its projection on the others stays.
    template <class T>
    void part_with(Expansion<T>& f, std::size_t i, Workspace<T>& work);

    Span span_;
    std::vector<double> d_;  // coefficients of a projection
};

class Project final : public BudgetFor<Project, Spanned> {
public:
    Project(std::optional<std::size_t> budget, double tolerance, bool squared, const std::optional<std::string>& rule,
            std::optional<double> U, bool strict_sign);
    template <class T>
    void enter(Expansion<T>& f, const Offer<T>& offer);

private:
    bool near(double distance2) const;
    bool mistaken(const Round& round) const;
    double margin_step(const Round& round, double distance2) const;

    std::optional<std::size_t> budget_;
    double tolerance_;
    bool squared_;
    bool icml_;
    bool jmlr_;
    double U_;
    bool strict_sign_;
};

}  // namespace onkel
