// The binding of the parts, one line for each. A C++ part is made from the fields of the Python part of the same name;
// a map is made from the numbers drawn for it, its reach (see FeatureMap) and the fields that C++ needs. Common and
// Stretched are not parts.
#include "native/parts.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "budgets/double_update.hpp"
#include "budgets/forgetting.hpp"
#include "budgets/landmarks.hpp"
#include "budgets/merging.hpp"
#include "budgets/projection.hpp"
#include "budgets/pursuit.hpp"
#include "budgets/removal.hpp"
#include "budgets/scored.hpp"
#include "hypotheses/dual.hpp"
#include "hypotheses/expansion.hpp"
#include "hypotheses/features.hpp"
#include "learners/weighting.hpp"
#include "losses.hpp"
#include "updates/adaptive.hpp"
#include "updates/sampling.hpp"
#include "updates/steps.hpp"

using namespace nanobind::literals;

namespace onkel {
namespace {

// All but the last axis become rows.
TablePointer table(const Input<double>& array) {
    if (array.ndim() == 0 || array.size() == 0) throw std::invalid_argument("an array with numbers is needed");
    const std::size_t columns = array.shape(array.ndim() - 1);
    return std::make_shared<Table>(Table{{array.data(), array.data() + array.size()}, array.size() / columns, columns});
}

std::shared_ptr<Map> directions(const Input<double>& drawn, double reach) {
    return Map::of<Directions>(table(drawn), reach);
}

std::shared_ptr<Map> structured(const Input<double>& orders, const Input<double>& diagonals, const Input<double>& scale,
                                std::size_t components, std::size_t columns, double reach) {
    const TablePointer order = table(orders), diagonal = table(diagonals), last = table(scale);
    bool sound = order->values.size() == diagonal->values.size() && diagonal->columns == last->columns &&
                 diagonal->rows % last->rows == 0 && components <= last->values.size() && columns <= last->columns &&
                 (last->columns & (last->columns - 1)) == 0;
    for (const double at : order->values) sound &= at >= 0 && at < static_cast<double>(last->columns);
    if (!sound) throw std::invalid_argument("the parts of the structured map do not fit together");
    return Map::of<Structured>(order, diagonal, last, components, columns, reach);
}

}  // namespace

void bind_parts(nb::module_& m) {
    nb::class_<Kernel>(m, "Kernel");
    nb::class_<Linear, Kernel>(m, "Linear").def(nb::init<>());
    nb::class_<Polynomial, Kernel>(m, "Polynomial").def(nb::init<int, double>(), "degree"_a, "coef0"_a);
    nb::class_<Sigmoid, Kernel>(m, "Sigmoid").def(nb::init<double, double>(), "gamma"_a, "coef0"_a);
    nb::class_<Gaussian, Kernel>(m, "Gaussian").def(nb::init<double>(), "gamma"_a);
    nb::class_<Laplacian, Kernel>(m, "Laplacian").def(nb::init<double>(), "gamma"_a);
    nb::class_<Cauchy, Kernel>(m, "Cauchy").def(nb::init<double>(), "gamma"_a);
    nb::class_<Constant, Kernel>(m, "Constant").def(nb::init<double>(), "value"_a);
    using Kernels = std::vector<std::shared_ptr<Kernel>>;
    nb::class_<Sum, Kernel>(m, "Sum").def(
        "__init__", [](Sum* self, const Kernels& kernels) { new (self) Sum({kernels.begin(), kernels.end()}); },
        "kernels"_a);
    nb::class_<Product, Kernel>(m, "Product")
        .def(
            "__init__",
            [](Product* self, const Kernels& kernels) { new (self) Product({kernels.begin(), kernels.end()}); },
            "kernels"_a);

    nb::class_<Loss>(m, "Loss");
    nb::class_<Mistake, Loss>(m, "Mistake").def(nb::init<double, bool>(), "margin"_a, "strict_sign"_a);
    nb::class_<Hinge, Loss>(m, "Hinge").def(nb::init<double, bool>(), "margin"_a, "closed"_a);
    nb::class_<SquaredHinge, Loss>(m, "SquaredHinge").def(nb::init<double>(), "margin"_a);
    nb::class_<Logistic, Loss>(m, "Logistic").def(nb::init<>());
    nb::class_<Exponential, Loss>(m, "Exponential").def(nb::init<>());
    nb::class_<Squared, Loss>(m, "Squared").def(nb::init<double>(), "epsilon"_a);
    nb::class_<Absolute, Loss>(m, "Absolute").def(nb::init<>());
    nb::class_<EpsilonInsensitive, Loss>(m, "EpsilonInsensitive").def(nb::init<double>(), "epsilon"_a);
    nb::class_<Huber, Loss>(m, "Huber").def(nb::init<double>(), "delta"_a);
    nb::class_<Quantile, Loss>(m, "Quantile").def(nb::init<double>(), "quantile"_a);

    nb::class_<Update>(m, "Update");
    nb::class_<Defer, Update>(m, "Defer").def(nb::init<>());
    nb::class_<Perceptron, Update>(m, "Perceptron").def(nb::init<double>(), "eta"_a);
    nb::class_<Gradient, Update>(m, "Gradient")
        .def(nb::init<double, double, const std::string&, double>(), "eta"_a, "lam"_a, "schedule"_a, "radius"_a);
    nb::class_<AdaGrad, Update>(m, "AdaGrad").def(nb::init<double>(), "eta"_a);
    nb::class_<DistanceOverGradient, Update>(m, "DistanceOverGradient").def(nb::init<>());
    nb::class_<SampledPassiveAggressive, Update>(m, "SampledPassiveAggressive")
        .def(nb::init<double, double, double, bool>(), "eta"_a, "alpha"_a, "beta"_a, "divide"_a);
    nb::class_<SampledGradient, Update>(m, "SampledGradient")
        .def(nb::init<double, double, double>(), "eta"_a, "G"_a, "radius"_a);
    nb::class_<SampledLogistic, Update>(m, "SampledLogistic")
        .def(nb::init<const std::string&, double, double, double>(), "variant"_a, "eta"_a, "radius"_a, "c"_a);
    nb::class_<Pegasos, Update>(m, "Pegasos").def(nb::init<double, bool>(), "lam"_a, "project"_a);
    nb::class_<PassiveAggressive, Update>(m, "PassiveAggressive")
        .def(nb::init<const std::string&, double, bool>(), "variant"_a, "C"_a, "divide"_a);
    nb::class_<Implicit, Update>(m, "Implicit").def(nb::init<double, double>(), "eta"_a, "lam"_a);
    nb::class_<AdaptiveThreshold, Update>(m, "AdaptiveThreshold")
        .def(nb::init<double, double, double, double, bool, bool>(), "eta"_a, "lam"_a, "nu"_a, "start_at"_a, "margin"_a,
             "clamp"_a);

    using Cap = std::optional<double>;
    nb::class_<Budget>(m, "Budget");
    nb::class_<Unlimited, Budget>(m, "Unlimited").def(nb::init<>());
    nb::class_<Truncate, Budget>(m, "Truncate").def(nb::init<double>(), "rounds"_a);
    nb::class_<Stop, Budget>(m, "Stop").def(nb::init<std::size_t>(), "budget"_a);
    nb::class_<Landmarks, Budget>(m, "Landmarks")
        .def(nb::init<std::size_t, std::size_t, const std::string&>(), "budget"_a, "rank"_a, "switch"_a);
    nb::class_<RemoveRandom, Budget>(m, "RemoveRandom")
        .def(nb::init<std::size_t, bool, Cap>(), "budget"_a, "unbiased"_a, "cap"_a.none());
    nb::class_<RemoveOldest, Budget>(m, "RemoveOldest")
        .def(nb::init<std::size_t, bool, Cap>(), "budget"_a, "unbiased"_a, "cap"_a.none());
    nb::class_<ReplaceSmallest, Budget>(m, "ReplaceSmallest")
        .def(nb::init<std::size_t, bool, Cap>(), "budget"_a, "unbiased"_a, "cap"_a.none());
    nb::class_<RemoveWeighted, Budget>(m, "RemoveWeighted")
        .def(nb::init<std::size_t, Cap>(), "budget"_a, "cap"_a.none());
    nb::class_<RemoveSmallest, Budget>(m, "RemoveSmallest").def(nb::init<std::size_t>(), "budget"_a);
    nb::class_<RemoveByMargin, Budget>(m, "RemoveByMargin")
        .def(nb::init<std::size_t, double, bool>(), "budget"_a, "beta"_a, "distil"_a);
    nb::class_<RemoveByEvaluation, Budget>(m, "RemoveByEvaluation")
        .def(nb::init<std::size_t, std::optional<std::size_t>>(), "budget"_a, "recent"_a.none());
    nb::class_<Forget, Budget>(m, "Forget")
        .def(nb::init<std::size_t, const std::string&, bool, bool>(), "budget"_a, "variant"_a, "absolute"_a,
             "legacy_root"_a);

    nb::class_<Merge, Budget>(m, "Merge").def(nb::init<std::size_t, const std::string&>(), "budget"_a, "search"_a);
    nb::class_<TwinVectors, Budget>(m, "TwinVectors")
        .def(nb::init<std::size_t, double, double, double, bool, double, bool>(), "budget"_a, "C"_a, "admit"_a,
             "drop"_a, "bias"_a, "precision"_a, "by_margin"_a);
    nb::class_<Project, Budget>(m, "Project")
        .def(nb::init<std::optional<std::size_t>, double, bool, const std::optional<std::string>&, Cap, bool>(),
             "budget"_a.none(), "tolerance"_a, "squared"_a, "rule"_a.none(), "U"_a.none(), "strict_sign"_a);
    nb::class_<ProjectSmallest, Budget>(m, "ProjectSmallest").def(nb::init<std::size_t>(), "budget"_a);
    nb::class_<Refit, Budget>(m, "Refit")
        .def(nb::init<std::size_t, const std::string&, double>(), "budget"_a, "variant"_a, "C"_a);

    nb::class_<DoubleUpdate, Budget>(m, "DoubleUpdate").def(nb::init<double, double>(), "C"_a, "rho"_a);
    nb::class_<DualAscent, Budget>(m, "DualAscent")
        .def(nb::init<std::size_t, double, double, const std::string&, bool>(), "budget"_a, "C"_a, "rho"_a,
             "maintenance"_a, "cheap"_a);

    nb::class_<Pursue, Budget>(m, "Pursue").def(nb::init<double, const std::string&>(), "error"_a, "schedule"_a);
    nb::class_<PursueTogether, Budget>(m, "PursueTogether")
        .def(nb::init<double, const std::string&, const std::string&>(), "error"_a, "schedule"_a, "put_back"_a);
    nb::class_<SelectSubset, Budget>(m, "SelectSubset")
        .def(nb::init<double, const std::string&, std::size_t>(), "error"_a, "schedule"_a, "candidates"_a);
    nb::class_<InsertRemove, Budget>(m, "InsertRemove")
        .def(nb::init<double, double>(), "insert_error"_a, "remove_error"_a);
    nb::class_<Dissimilarity, Budget>(m, "Dissimilarity").def(nb::init<double>(), "threshold"_a);
    nb::class_<Quantise, Budget>(m, "Quantise").def(nb::init<double>(), "radius"_a);
    nb::class_<Novelty, Budget>(m, "Novelty")
        .def(nb::init<double, double, const std::string&>(), "distance"_a, "surprise"_a, "rejected"_a);
    nb::class_<Coherence, Budget>(m, "Coherence").def(nb::init<double, double>(), "coherence"_a, "ridge"_a);
    nb::class_<AlmostLinearDependence, Budget>(m, "AlmostLinearDependence")
        .def(nb::init<double, std::optional<std::size_t>>(), "nu"_a, "budget"_a.none());

    nb::class_<Map>(m, "Map");
    m.def("Fourier", &directions, "directions"_a, "reach"_a);
    m.def("Orthogonal", &directions, "directions"_a, "reach"_a);
    for (const char* name : {"Orthogonal", "Fastfood"}) {
        m.def(name, &structured, "orders"_a, "diagonals"_a, "scale"_a, "components"_a, "columns"_a, "reach"_a);
    }
    m.def(
        "Reparameterized",
        [](const Input<double>& drawn, double start, double eta, double clip, double reach) {
            return Map::of<Reparameterized>(table(drawn), start, eta, clip, reach);
        },
        "directions"_a, "start"_a, "eta"_a, "clip"_a, "reach"_a);

    nb::class_<Common>(m, "Common")
        .def(
            "__init__", [](Common* self, const Input<double>& drawn) { new (self) Common(*table(drawn)); },
            "directions"_a)
        .def("append", &Common::append, "more"_a);
    m.def(
        "Stretched",
        [](std::shared_ptr<Common> common, double factor, double reach) {
            return std::make_shared<Map>([=](const Run& run) -> Started<FeatureMap> {
                if (run.float32) throw std::invalid_argument("a map with shared directions needs rows of double");
                return std::make_unique<Stretched>(common, factor, reach);
            });
        },
        "common"_a, "factor"_a, "reach"_a);

    nb::class_<Hypothesis>(m, "Hypothesis");
    nb::class_<Expansion, Hypothesis>(m, "Expansion")
        .def(nb::init<KernelPointer, std::shared_ptr<const Budget>>(), "kernel"_a, "budget"_a);
    nb::class_<Features, Hypothesis>(m, "Features").def(nb::init<std::shared_ptr<const Map>>(), "map"_a);
    nb::class_<Dual, Hypothesis>(m, "Dual").def(
        nb::init<KernelPointer, std::shared_ptr<const Map>, std::size_t, std::size_t, bool>(), "kernel"_a, "map"_a,
        "budget"_a, "merge"_a, "insert_always"_a);

    nb::class_<Weighting>(m, "Weighting");
    nb::class_<ByMistakes, Weighting>(m, "ByMistakes").def(nb::init<double, bool>(), "discount"_a, "strict"_a);
    nb::class_<ByLoss, Weighting>(m, "ByLoss")
        .def(nb::init<std::shared_ptr<const Loss>, double>(), "loss"_a, "eta_weights"_a);
    nb::class_<Sampling>(m, "Sampling")
        .def(nb::init<bool, const std::string&, bool, double>(), "learn"_a, "answer"_a, "scale"_a, "smoothing"_a);
}

}  // namespace onkel
