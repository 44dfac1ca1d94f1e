// Span: what the terms of an expansion can express, in double whatever the rows are. For budgets that project.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "core/linalg.hpp"
#include "hypotheses/terms.hpp"

namespace onkel {

// Kernel values of the terms in double. Those of float rows are kept a second time as doubles: kernel values of single
// precision would make their matrix singular.
template <class T>
class Doubles {
public:
    // Kernel values of the proposed example and the terms, valid until the next call.
    const double* row(const Terms<T>& f, const Proposal<T>& proposal) {
        if constexpr (std::is_same_v<T, double>) {
            return proposal.k;
        } else {
            return row_of(f, proposal.x);
        }
    }

    // The same for any example, as a stored one.
    const double* row_of(const Terms<T>& f, Row<T> x) {
        values_.assign(x.values, x.values + x.count);
        return row_of_wide(f, {values_.data(), x.index, x.count});
    }
    const double* row_of_term(const Terms<T>& f, std::size_t i) {
        Workspace<T> work;
        return row_of(f, f.basis.row(i, work));
    }

    // As long as this number is the same, kernel values computed again are equal bit for bit.
    std::size_t version(const Terms<T>& f) {
        if constexpr (std::is_same_v<T, double>) {
            return f.basis.version();
        } else {
            return table(f).version();
        }
    }

    // The term that has just entered the expansion.
    void append(const Terms<T>& f, Row<T> x) {
        if constexpr (!std::is_same_v<T, double>) {
            const std::vector<double> wide(x.values, x.values + x.count);
            table(f).append({wide.data(), x.index, x.count});
        }
        ++n_;
    }
    // The term in this slot has left.
    void remove(std::size_t i) {
        if (table_) table_->remove(i);
        --n_;
    }

    void widen() { table_.reset(); }  // made again when it is needed
    // Called after loading: the expansion has `terms` terms, the saved state of the budget has `known`.
    void load(std::size_t known, std::size_t terms) {
        if (known != terms) Store::refuse("budget", "knows other terms");
        table_.reset();  // made again when it is needed
        n_ = terms;
    }

private:
    const double* row_of_wide(const Terms<T>& f, Row<double> x) {
        if constexpr (std::is_same_v<T, double>) {
            return f.row_of(x, work_);
        } else {
            Basis<double>& wide = table(f);
            k_.resize(wide.padded(wide.n()));
            work_.starts[0] = 0;
            work_.starts[1] = static_cast<std::int64_t>(x.count);
            f.kernel().rows(wide, {x.values, x.index, x.index ? work_.starts : nullptr, 1, x.count}, wide.all(), work_,
                            k_.data(), 0);
            return k_.data();
        }
    }

    // The terms as doubles; made from the expansion at first.
    Basis<double>& table(const Terms<T>& f) {
        if (!table_) {
            table_ = std::make_unique<Basis<double>>(f.columns(), f.basis.sparse());
            f.kernel().prepare(*table_);
            Workspace<T> work;
            for (std::size_t i = 0; i < n_; ++i) {
                const Row<T> x = f.basis.row(i, work);
                std::vector<double> wide(x.values, x.values + x.count);
                table_->append({wide.data(), x.index, x.count});
            }
        }
        return *table_;
    }

    std::size_t n_ = 0;
    std::unique_ptr<Basis<double>> table_;
    Workspace<double> work_;
    std::vector<double> values_;
    std::vector<double> k_;
};

template <class T>
class Span : public Doubles<T> {
public:
    explicit Span(bool inverse) : factor(inverse) {}

    // The example that was projected last has just entered the expansion.
    void append(const Terms<T>& f, Row<T> x) {
        Doubles<T>::append(f, x);
        factor.append();
    }

    // The term in this slot has left the expansion; d gets its coefficients on those that stay.
    void remove(const Terms<T>& f, std::size_t i, double* d) {
        Doubles<T>::remove(i);
        factor.remove(i, d);
        if (factor.stale()) factor.refresh(f.kernel_matrix());
    }

    void save(Store& store) const { factor.save(store, "budget.factor"); }
    void load(const Store& store, std::size_t terms) {
        factor.load(store, "budget.factor");
        Doubles<T>::load(factor.n(), terms);
    }

    Factor factor;
};

}  // namespace onkel
