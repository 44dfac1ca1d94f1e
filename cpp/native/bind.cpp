// The binding of what is not a part: learners, pools, the readers of text, and errors. Parts are in parts.cpp.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "datasets/text.hpp"
#include "learners/hedge.hpp"
#include "learners/learner.hpp"
#include "native/parts.hpp"

using namespace nb::literals;

namespace onkel {
namespace {

template <class V>
using Output = nb::ndarray<V, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class V>
using State = nb::ndarray<V, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Targets = Input<double, nb::ndim<1>>;
using Indices = std::optional<Input<std::int32_t, nb::ndim<1>>>;
using Starts = std::optional<Input<std::int64_t, nb::ndim<1>>>;

template <class T>
Rows<T> rows(const Input<T>& values, const Indices& indices, const Starts& starts) {
    if (!indices || !starts) {
        if (values.ndim() != 2) throw std::invalid_argument("a dense array of two axes is needed");
        return {values.data(), nullptr, nullptr, values.shape(0), values.shape(1)};
    }
    const std::size_t n = starts->shape(0) ? starts->shape(0) - 1 : 0;
    const std::int64_t* at = starts->data();
    bool sound = values.ndim() == 1 && indices->shape(0) == values.shape(0) && starts->shape(0) > 0 && at[0] >= 0 &&
                 at[n] <= static_cast<std::int64_t>(values.shape(0));
    for (std::size_t i = 0; sound && i < n; ++i) sound = at[i] <= at[i + 1];
    if (!sound) throw std::invalid_argument("the parts of the CSR matrix do not fit together");
    return {values.data(), indices->data(), at, n, 0};
}

void require_equal(std::size_t got, std::size_t wanted) {
    if (got == wanted) return;
    throw std::invalid_argument("an array has length " + std::to_string(got) + ", not " + std::to_string(wanted));
}

template <class T>
Row<T> checked_row(const Learner<T>& learner, const Input<T, nb::ndim<1>>& x) {
    if (x.shape(0) != learner.columns()) {
        throw WrongWidth(x.shape(0), learner.columns());
    }
    for (std::size_t j = 0; j < x.shape(0); ++j) {
        if (!std::isfinite(x.data()[j])) throw NotFinite(x.data()[j], j);
    }
    return {x.data(), nullptr, x.shape(0)};
}

using Dictionary = nb::typed<nb::dict, nb::object, nb::object>;

// Reads a dictionary as a sparse row, if every name is a str or int and every value a finite float, int, bool or
// numpy.float64 (no subclasses). For others, and if no name is known, `read` returns false, and faces.columns.Columns
// handles the dictionary.
template <class T>
class NamedRow {
public:
    // `columns` has the column of each known name. Unknown names are left out, or refused if `all` must be known.
    bool read(const Dictionary& x, const Dictionary& columns, bool all) {
        found_.clear();
        PyObject *name, *number;
        bool sorted = true;
        for (Py_ssize_t at = 0; PyDict_Next(x.ptr(), &at, &name, &number);) {
            if (!(PyUnicode_CheckExact(name) || PyLong_CheckExact(name)) || !is_number(number)) return false;
            PyObject* column = PyDict_GetItemWithError(columns.ptr(), name);
            if (!column && PyErr_Occurred()) throw nb::python_error();
            if (!column && all) return false;
            if (!column) continue;
            const double value = PyFloat_AsDouble(number);
            if (value == -1 && PyErr_Occurred()) {  // an integer that no floating point number can hold
                PyErr_Clear();
                return false;
            }
            if (!std::isfinite(static_cast<T>(value))) return false;
            const auto place = static_cast<std::int32_t>(PyLong_AsLong(column));
            sorted &= found_.empty() || found_.back().first < place;
            found_.emplace_back(place, static_cast<T>(value));
        }
        if (!sorted) std::sort(found_.begin(), found_.end());
        values_.clear();
        index_.clear();
        for (const auto& [place, value] : found_) {
            index_.push_back(place);
            values_.push_back(value);
        }
        return !found_.empty();
    }

    Row<T> row() const { return {values_.data(), index_.data(), values_.size()}; }

private:
    static bool is_number(PyObject* object) {
        static PyObject* const numpy_float = nb::object(nb::module_::import_("numpy").attr("float64")).release().ptr();
        return PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object) ||
               reinterpret_cast<PyObject*>(Py_TYPE(object)) == numpy_float;
    }
    std::vector<std::pair<std::int32_t, T>> found_;
    std::vector<T> values_;
    std::vector<std::int32_t> index_;
};

void check_target(double y, double weight) {
    if (!std::isfinite(y)) throw std::invalid_argument("y must be a finite number, got " + std::to_string(y));
    if (!(weight >= 0 && std::isfinite(weight))) {
        throw std::invalid_argument("the weight must be a finite number >= 0, got " + std::to_string(weight));
    }
}

nb::object to_array(const Field& field) {
    return std::visit(
        [&](const auto& values) -> nb::object {
            using V = typename std::decay_t<decltype(values)>::value_type;
            auto* copy = new std::vector<V>(values);
            nb::capsule owner(copy, [](void* p) noexcept { delete static_cast<std::vector<V>*>(p); });
            return nb::cast(nb::ndarray<nb::numpy, V>(copy->data(), field.shape.size(), field.shape.data(), owner));
        },
        field.values);
}

// A vector as an array of one axis, without a copy.
template <class V>
nb::object moved(std::vector<V>&& values) {
    auto* kept = new std::vector<V>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<V>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, V>(kept->data(), {kept->size()}, owner));
}

nb::object libsvm_arrays(const nb::bytes& text, std::int64_t base) {
    std::optional<SparseText> rows;
    {
        nb::gil_scoped_release free;
        rows = parse_libsvm({text.c_str(), text.size()}, base);
    }
    if (!rows) return nb::none();
    return nb::make_tuple(moved(std::move(rows->targets)), moved(std::move(rows->values)),
                          moved(std::move(rows->columns)), moved(std::move(rows->starts)), rows->width);
}

nb::object table_arrays(const nb::bytes& text, const std::string& separator, const std::vector<std::uint8_t>& wanted) {
    if (separator.size() != 1) throw std::invalid_argument("a separator of one byte is needed");
    std::optional<TableText> table;
    {
        nb::gil_scoped_release free;
        table = parse_table({text.c_str(), text.size()}, separator[0], wanted);
    }
    if (!table) return nb::none();
    return nb::make_tuple(moved(std::move(table->numbers)), moved(std::move(table->cells)), table->rows);
}

template <class V>
bool from_array(nb::handle object, Field& field) {
    nb::ndarray<const V, nb::c_contig, nb::device::cpu, nb::ro> array;
    if (!nb::try_cast(object, array, false)) return false;
    for (std::size_t axis = 0; axis < array.ndim(); ++axis) field.shape.push_back(array.shape(axis));
    field.values = std::vector<V>(array.data(), array.data() + array.size());
    return true;
}

// A short call under the learner's lock. The GIL is kept if the lock is free, else released; `call` is told which.
template <class Guard, class L, class Call>
auto locked(L& self, Call call) {
    if (const Guard guard(self.lock(), std::try_to_lock); guard) return call(true);
    nb::gil_scoped_release release;
    const Guard guard(self.lock());
    return call(false);
}

// Locks the learners in list order; callers must use one order, or two threads could wait for each other.
template <class Guard, class L>
std::vector<std::unique_ptr<Guard>> lock_all(const std::vector<L*>& learners) {
    std::vector<std::unique_ptr<Guard>> guards;
    for (const L* each : learners) guards.push_back(std::make_unique<Guard>(each->lock()));
    return guards;
}

// While the GIL is held, only one thread can call `Learner::score_and_keep`, which keeps the row of the example.
template <class T>
std::vector<double> score_one(Learner<T>& self, Row<T> x) {
    return locked<Lock::Shared>(
        self, [&](bool with_python) { return with_python ? self.score_and_keep(x) : self.score_one(x); });
}

template <class T>
void bind_learner(nb::module_& m, const char* name) {
    using L = Learner<T>;
    nb::class_<L>(m, name)
        .def(
            "__init__",
            [](L* self, const Hypothesis& hypothesis, std::shared_ptr<Loss> loss, const Update& update,
               std::size_t outputs, int average, std::uint64_t seed, std::size_t columns, bool sparse) {
                const Run run{outputs, static_cast<Average>(average), seed, columns, sparse, std::is_same_v<T, float>};
                new (self) L(hypothesis, std::move(loss), update, run);
            },
            "hypothesis"_a, "loss"_a, "update"_a, "outputs"_a, "average"_a, "seed"_a, "columns"_a, "sparse"_a)
        .def(
            "check",
            [](const L& self, const Input<T>& values, const Indices& indices, const Starts& starts) {
                const Rows<T> X = rows<T>(values, indices, starts);
                nb::gil_scoped_release release;
                self.check(X);
            },
            "values"_a, "indices"_a.none(), "starts"_a.none())
        .def(
            "learn",
            [](L& self, const Input<T>& values, const Indices& indices, const Starts& starts, const Targets& y,
               const std::optional<Targets>& weight, Output<double> current, Output<double> averaged) {
                const Rows<T> X = rows<T>(values, indices, starts);
                require_equal(y.shape(0), X.n);
                if (weight) require_equal(weight->shape(0), X.n);
                for (const auto* out : {&current, &averaged}) {
                    require_equal(out->shape(0), X.n);
                    require_equal(out->shape(1), self.outputs());
                }
                nb::gil_scoped_release release;
                const Lock::Exclusive guard(self.lock());
                self.learn(X, y.data(), weight ? weight->data() : nullptr, current.data(), averaged.data());
            },
            "values"_a, "indices"_a.none(), "starts"_a.none(), "y"_a, "weight"_a.none(), "current"_a.noconvert(),
            "averaged"_a.noconvert())
        .def_static(
            "learn_together",
            [](const std::vector<L*>& group, const Input<T>& values, const Indices& indices, const Starts& starts,
               const Targets& y, Output<double> current, Output<double> averaged) {
                const Rows<T> X = rows<T>(values, indices, starts);
                require_equal(y.shape(0), X.n);
                for (const auto* out : {&current, &averaged}) {
                    require_equal(out->shape(0), group.size() * X.n);
                    require_equal(out->shape(1), group.at(0)->outputs());
                }
                L::check_group(group);
                nb::gil_scoped_release release;
                const auto guards = lock_all<Lock::Exclusive>(group);
                return L::learn_together(group, X, y.data(), current.data(), averaged.data());
            },
            "group"_a, "values"_a, "indices"_a.none(), "starts"_a.none(), "y"_a, "current"_a.noconvert(),
            "averaged"_a.noconvert())
        .def(
            "learn_one",
            [](L& self, const Input<T, nb::ndim<1>>& x, double y, double weight) {
                check_target(y, weight);
                const Row<T> row = checked_row(self, x);
                locked<Lock::Exclusive>(self, [&](bool) { self.learn_one(row, y, weight); });
            },
            "x"_a, "y"_a, "weight"_a = 1.0)
        .def(
            "learn_named",
            [](L& self, const Dictionary& x, const Dictionary& columns, double y, double weight) {
                static thread_local NamedRow<T> named;
                if (!named.read(x, columns, true)) return false;
                check_target(y, weight);
                locked<Lock::Exclusive>(self, [&](bool) { self.learn_one(named.row(), y, weight); });
                return true;
            },
            "x"_a, "columns"_a, "y"_a, "weight"_a)
        .def(
            "scores",
            [](const L& self, const Input<T>& values, const Indices& indices, const Starts& starts, bool average,
               Output<double> out) {
                const Rows<T> X = rows<T>(values, indices, starts);
                require_equal(out.shape(0), X.n);
                if (average && !self.averages()) throw std::invalid_argument("this learner keeps no average");
                nb::gil_scoped_release release;
                const Lock::Shared guard(self.lock());
                if (out.shape(1) != self.outputs()) return false;  // an output has joined since the caller looked
                self.scores(X, average, out.data());
                return true;
            },
            "values"_a, "indices"_a.none(), "starts"_a.none(), "average"_a, "out"_a.noconvert())
        .def(
            "score_one", [](L& self, const Input<T, nb::ndim<1>>& x) { return score_one(self, checked_row(self, x)); },
            "x"_a)
        .def(
            "score_named",
            [](L& self, const Dictionary& x, const Dictionary& columns) -> std::optional<std::vector<double>> {
                static thread_local NamedRow<T> named;
                if (!named.read(x, columns, false)) return std::nullopt;
                return score_one(self, named.row());
            },
            "x"_a, "columns"_a)
        .def(
            "widen",
            [](L& self, std::size_t columns, const Map* map) {
                locked<Lock::Exclusive>(self, [&](bool) { self.widen(columns, map); });
            },
            "columns"_a, "map"_a.none())
        .def(
            "join",
            [](L& self, const Places& at) {
                if (self.outputs() < 3) throw std::invalid_argument("outputs join others if there are three or more");
                for (std::size_t i = 0; i < at.size(); ++i) {
                    if (at[i] > self.outputs() + i || (i && at[i] <= at[i - 1])) {
                        throw std::invalid_argument("the positions of new outputs must ascend without gaps");
                    }
                }
                locked<Lock::Exclusive>(self, [&](bool) { self.join(at); });
            },
            "at"_a)
        .def_prop_ro("n", &L::n)
        .def_prop_ro("t", &L::t)
        .def_prop_ro("rows_learned", &L::rows_learned)
        .def_prop_ro("threshold", &L::threshold)
        .def("state",
             [](const L& self) {
                 nb::typed<nb::dict, std::string, nb::object> state;
                 Store store;
                 locked<Lock::Shared>(self, [&](bool) { store = self.save(); });
                 for (const auto& [key, field] : store.fields) state[key.c_str()] = to_array(field);
                 return state;
             })
        .def(
            "restore",
            [](L& self, const nb::typed<nb::dict, std::string, nb::object>& state) {
                Store store;
                for (auto [key, value] : state) {
                    Field field;
                    const auto label = nb::cast<std::string>(key);
                    if (!from_array<double>(value, field) && !from_array<float>(value, field) &&
                        !from_array<std::int64_t>(value, field) && !from_array<std::uint64_t>(value, field)) {
                        Store::refuse(label, "is not an array of a known type");
                    }
                    store.fields[label] = std::move(field);
                }
                locked<Lock::Exclusive>(self, [&](bool) { self.load(store); });
            },
            "state"_a);
}

void bind_hedge(nb::module_& m) {
    nb::class_<Hedge>(m, "Hedge")
        .def(
            "__init__",
            [](Hedge* self, std::vector<Learner<double>*> learners, std::shared_ptr<Weighting> weighting,
               std::shared_ptr<Sampling> sampling, bool vote, double budget, std::size_t jobs) {
                if (learners.empty()) throw std::invalid_argument("a pool needs learners");
                new (self) Hedge(std::move(learners), std::move(weighting), std::move(sampling), vote, budget, jobs);
            },
            "learners"_a, "weighting"_a, "sampling"_a, "vote"_a, "budget"_a, "jobs"_a, nb::keep_alive<1, 2>())
        .def("share", &Hedge::share, "common"_a)
        .def(
            "learn",
            [](Hedge& self, const Input<double>& values, const Indices& indices, const Starts& starts, const Targets& y,
               const std::optional<Targets>& weight, State<double> losses, State<std::int64_t> t,
               State<std::uint64_t> draws, Output<double> combined) {
                const Rows<double> X = rows<double>(values, indices, starts);
                require_equal(y.shape(0), X.n);
                if (weight) require_equal(weight->shape(0), X.n);
                require_equal(losses.shape(0), self.components());
                require_equal(t.shape(0), 1);
                require_equal(draws.shape(0), 2);
                require_equal(combined.shape(0), X.n);
                require_equal(combined.shape(1), self.outputs());
                Hedge::Memory memory{losses.data(), *t.data(), {}, {}};
                memory.update.state = draws.data()[0];
                memory.combination.state = draws.data()[1];
                const auto keep = [&] {
                    draws.data()[0] = memory.update.state;
                    draws.data()[1] = memory.combination.state;
                };
                nb::gil_scoped_release release;
                const auto guards = lock_all<Lock::Exclusive>(self.learners());
                try {
                    self.learn(X, y.data(), weight ? weight->data() : nullptr, memory, combined.data());
                } catch (...) {
                    keep();
                    throw;
                }
                keep();
            },
            "values"_a, "indices"_a.none(), "starts"_a.none(), "y"_a, "weight"_a.none(), "losses"_a.noconvert(),
            "t"_a.noconvert(), "draws"_a.noconvert(), "combined"_a.noconvert())
        .def(
            "scores",
            [](const Hedge& self, const Input<double>& values, const Indices& indices, const Starts& starts,
               const Targets& losses, Output<double> out) {
                const Rows<double> X = rows<double>(values, indices, starts);
                require_equal(losses.shape(0), self.components());
                require_equal(out.shape(0), X.n);
                require_equal(out.shape(1), self.outputs());
                nb::gil_scoped_release release;
                const auto guards = lock_all<Lock::Shared>(self.learners());
                self.scores(X, losses.data(), out.data());
            },
            "values"_a, "indices"_a.none(), "starts"_a.none(), "losses"_a, "out"_a.noconvert());
}

}  // namespace
}  // namespace onkel

NB_MODULE(_core, m) {
    using namespace onkel;

#ifdef NDEBUG
    nb::set_leak_warnings(false);  // objects that live when Python ends are no fault
#endif

    // Python passes in its classes for these errors, as the binding imports nothing of onkel.
    static PyObject* errors = nullptr;  // the module with the exceptions
    m.def("set_errors", [](nb::object module) { errors = module.release().ptr(); }, "module"_a);
    m.def("after_fork", &Lock::after_fork);
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        const auto raise = [](const char* kind, const auto&... facts) {
            PyErr_SetObject(nb::borrow(errors).attr(kind).ptr(), nb::make_tuple(facts...).ptr());
        };
        const auto number = [](std::ptrdiff_t row) { return row < 0 ? nb::none() : nb::object(nb::int_(row)); };
        try {
            std::rethrow_exception(p);
        } catch (const Diverged& error) {
            raise("Diverged", error.words, error.value, number(error.row));
        } catch (const TooLarge& error) {
            raise("TooLarge", error.words, error.value, error.use, number(error.row));
        } catch (const WrongWidth& error) {
            raise("WrongWidth", error.got, error.wanted);
        } catch (const NotFinite& error) {
            raise("NotFinite", error.value, error.column);
        } catch (const Busy& error) {
            raise("Busy", error.what());
        }
    });
    m.def("instruction_set", &instruction_set);

    bind_parts(m);

    m.def("parse_libsvm", &libsvm_arrays, "text"_a, "base"_a);
    m.def("parse_table", &table_arrays, "text"_a, "separator"_a, "wanted"_a);

    bind_learner<float>(m, "Learner32");
    bind_learner<double>(m, "Learner64");
    bind_hedge(m);
}
