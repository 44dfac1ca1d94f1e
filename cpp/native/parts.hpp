// The binding of the parts, and what else of it needs more than one file.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

namespace onkel {

// An array that is only read.
template <class V, class... Extra>
using Input = nb::ndarray<const V, nb::c_contig, nb::device::cpu, nb::ro, Extra...>;

void bind_parts(nb::module_& m);

}  // namespace onkel
