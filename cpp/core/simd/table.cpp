// The vector layer for one instruction set: its ONKEL_NAMESPACE, with vectors of ONKEL_VECTOR_BYTES.
#include "core/simd.hpp"
#include "core/simd/bits.hpp"
#include "core/simd/decay.hpp"
#include "core/simd/dense.hpp"
#include "core/simd/dot.hpp"
#include "core/simd/hadamard.hpp"
#include "core/simd/search.hpp"
#include "core/simd/sincos.hpp"
#include "core/simd/sparse.hpp"
#include "core/simd/transposed.hpp"
#include "core/simd/triangular.hpp"

namespace onkel::ONKEL_NAMESPACE {
namespace {

template <class T>
constexpr Simd<T> table = {dense<T>,    dense_many<T>, look_up<T>,    pack<T>,   sparse_many<T>, decay<T>,
                           dot<T>,      axpy<T>,       transposed<T>, sincos<T>, inner,          add_scaled<T>,
                           hadamard<T>, forward,       backward,      rotate,    minimum,        interpolated<T>};

}  // namespace

extern const Simd<float> floats;
extern const Simd<double> doubles;
const Simd<float> floats = table<float>;
const Simd<double> doubles = table<double>;

}  // namespace onkel::ONKEL_NAMESPACE
