// The vector layer against plain loops, for the instruction set that ONKEL_INSTRUCTIONS names (make compilers).
#include "core/simd.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "core/vectors.hpp"

namespace {

using namespace onkel;
using Real = long double;

int failures = 0;
Random source(1, "vectors");

void expect(bool fine, const std::string& what) {
    if (!fine && ++failures <= 20) std::printf("%s: wrong %s\n", instruction_set(), what.c_str());
}

// As near as `roundings` of numbers of this size allow; NaN is near to nothing.
template <class T>
bool near(T got, Real want, Real size, std::size_t roundings) {
    return std::abs(got - want) <= static_cast<Real>(roundings) * std::numeric_limits<T>::epsilon() * size;
}

template <class T>
bool same(T a, T b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

template <class T>
T number() {
    return static_cast<T>(2 * source.uniform() - 1);
}

template <class T>
AlignedVector<T> numbers(std::size_t n) {
    AlignedVector<T> values(n);
    for (T& value : values) value = number<T>();
    return values;
}

// A sum, and that of the sizes of its terms.
struct Sum {
    Real value = 0, size = 0;
    void operator+=(Real term) { value += term, size += std::abs(term); }
};

Real compare(PairKind pair, Real x, Real z) {
    return pair == PairKind::product ? x * z : pair == PairKind::square ? (x - z) * (x - z) : std::abs(x - z);
}

constexpr PairKind pairs[] = {PairKind::product, PairKind::square, PairKind::absolute};

// Rows in tiles. Lanes without a row hold zeros.
template <class T>
struct Table {
    std::size_t rows, columns;
    std::size_t stride = (columns + 2) * lanes<T>, count = (rows + lanes<T> - 1) / lanes<T>;
    AlignedVector<T> tiles = AlignedVector<T>(count * stride);

    T& at(std::size_t i, std::size_t j) { return tiles[i / lanes<T> * stride + j * lanes<T> + i % lanes<T>]; }
    void fill() {
        for (std::size_t i = 0; i < rows; ++i) {
            for (std::size_t j = 0; j < columns; ++j) at(i, j) = number<T>();
        }
    }
};

template <class T>
void check_dense(std::size_t rows, std::size_t columns, std::size_t queries) {
    Table<T> table{rows, columns};
    table.fill();
    const std::size_t width = table.count * lanes<T>, x_stride = columns + 1;
    const AlignedVector<T> x = numbers<T>(queries * x_stride);
    for (const PairKind pair : pairs) {
        AlignedVector<T> many(queries * width), one(width), last(lanes<T>);
        simd<T>().dense_many(pair, table.tiles.data(), table.stride, table.count, x.data(), x_stride, queries, columns,
                             nullptr, many.data(), width);
        for (std::size_t q = 0; q < queries; ++q) {
            const T* query = x.data() + q * x_stride;
            simd<T>().dense(pair, table.tiles.data(), table.stride, table.count, query, columns, one.data());
            simd<T>().dense(pair, table.tiles.data() + (table.count - 1) * table.stride, table.stride, 1, query,
                            columns, last.data());
            for (std::size_t i = 0; i < rows; ++i) {
                Sum sum;
                for (std::size_t j = 0; j < columns; ++j) sum += compare(pair, query[j], table.at(i, j));
                expect(near(one[i], sum.value, sum.size, columns + 2), "dense");
                expect(same(one[i], many[q * width + i]), "dense_many");
            }
            for (std::size_t i = width - lanes<T>; i < width; ++i) {
                expect(same(last[i + lanes<T> - width], one[i]), "dense for one tile");
            }
        }
    }
}

template <class T>
void check_sparse(std::size_t rows, std::size_t columns, std::size_t queries) {
    Table<T> table{rows, columns};
    table.fill();
    const std::size_t width = table.count * lanes<T>;
    std::vector<T> values, x(queries * columns);
    std::vector<std::int32_t> index;
    std::vector<std::int64_t> starts{0};
    for (std::size_t q = 0; q < queries; ++q) {
        for (std::size_t j = 0; j < columns; ++j) {
            if (q % 2 && source.uniform() < 0.7) continue;
            values.push_back(x[q * columns + j] = q == 0 ? table.at(0, j) : number<T>());  // one as near as can be
            index.push_back(static_cast<std::int32_t>(j));
        }
        starts.push_back(static_cast<std::int64_t>(values.size()));
    }
    for (const PairKind pair : pairs) {
        AlignedVector<double> norms(width);
        for (std::size_t i = 0; i < rows; ++i) {
            for (std::size_t j = 0; j < columns; ++j) norms[i] += static_cast<double>(compare(pair, 0, table.at(i, j)));
        }
        AlignedVector<T> many(queries * width), one(width);
        const auto run = [&](std::size_t first, std::size_t n, T* out) {
            simd<T>().sparse_many(pair, table.tiles.data(), table.stride, table.count, values.data(), index.data(),
                                  starts.data() + first, n, norms.data(), out, width);
        };
        run(0, queries, many.data());
        for (std::size_t q = 0; q < queries; ++q) {
            run(q, 1, one.data());
            for (std::size_t i = 0; i < rows; ++i) {
                Sum sum;
                for (std::size_t j = 0; j < columns; ++j) {
                    sum += compare(pair, x[q * columns + j], table.at(i, j));
                    sum.size += x[q * columns + j] * x[q * columns + j] + 2 * std::abs(table.at(i, j));
                }
                expect(near(one[i], sum.value, sum.size, columns + 8), "sparse_many");
                expect(pair == PairKind::product || one[i] >= 0, "sign of sparse_many");
                expect(same(one[i], many[q * width + i]), "sparse_many for several queries");
            }
        }
    }
}

// Columns of zeros and ones but every sixth, which is one of numbers; `pack` finds the bits.
template <class T>
void check_flags(std::size_t rows, std::size_t columns, std::size_t queries) {
    constexpr std::size_t bits = 8 * sizeof(T);
    const std::size_t words = (columns + bits - 1) / bits, examples = rows + queries;
    const auto bit = [](const std::vector<Word<T>>& of, std::size_t q, std::size_t size, std::size_t j) {
        return of[q * size + j / bits] >> j % bits & 1;
    };
    std::vector<Word<T>> all(words), mask(words), ones(examples * words), fractions(examples * words);
    std::vector<std::int32_t> others;
    std::vector<T> X(examples * columns);
    for (std::size_t j = 0; j < columns; ++j) {
        all[j / bits] |= Word<T>{1} << j % bits;
        if (j % 6 == 5) others.push_back(static_cast<std::int32_t>(j));
        if (j % 6 != 5) mask[j / bits] |= Word<T>{1} << j % bits;
        for (std::size_t i = 0; i < examples; ++i) {
            X[i * columns + j] = source.uniform() < 0.4 ? T(1) : j % 6 == 5 ? number<T>() : T(0);
        }
    }
    const bool whole = simd<T>().pack(X.data(), examples, columns, all.data(), ones.data(), fractions.data());
    bool any = false;
    for (std::size_t i = 0; i < examples; ++i) {
        for (std::size_t j = 0; j < columns; ++j) {
            const T v = X[i * columns + j];
            expect(bit(ones, i, words, j) == (v == 1), "ones of pack");
            expect(bit(fractions, i, words, j) == (v != 0 && v != 1), "fractions of pack");
            any |= v != 0 && v != 1;
        }
    }
    expect(whole == !any, "answer of pack");
    Table<T> table{rows, columns};
    const std::size_t width = table.count * lanes<T>;
    AlignedVector<Word<T>> tiles(width * words);
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j) table.at(i, j) = X[i * columns + j];
        for (std::size_t w = 0; w < words; ++w) {
            tiles[(i / lanes<T> * words + w) * lanes<T> + i % lanes<T>] = ones[i * words + w];
        }
    }
    expect(simd<T>().pack(X.data(), examples, columns, mask.data(), ones.data(), nullptr), "pack under a mask");
    const T* x = X.data() + rows * columns;
    const FlagBits<T> flags{tiles.data(), mask.data(), ones.data() + rows * words, words, others.data()};
    T shaped[table_size];
    for (T& value : shaped) value = number<T>();
    for (const PairKind pair : pairs) {
        AlignedVector<T> sums(queries * width), looked_up(queries * width);
        simd<T>().dense_many(pair, table.tiles.data(), table.stride, table.count, x, columns, queries, others.size(),
                             &flags, sums.data(), width);
        const bool can_look_up = columns < table_size;
        if (can_look_up) simd<T>().look_up(pair, flags, shaped, table.count, queries, looked_up.data(), width);
        for (std::size_t q = 0; q < queries; ++q) {
            for (std::size_t i = 0; i < rows; ++i) {
                Sum sum;
                std::size_t counted = 0;
                for (std::size_t j = 0; j < columns; ++j) {
                    const Real term = compare(pair, x[q * columns + j], table.at(i, j));
                    sum += term;
                    if (j % 6 != 5) counted += term == 1;
                }
                expect(near(sums[q * width + i], sum.value, sum.size, others.size() + 2), "dense_many with flags");
                if (can_look_up) expect(same(looked_up[q * width + i], shaped[counted]), "look_up");
            }
        }
    }
}

template <class T>
void check_transposed(std::size_t rows, std::size_t columns) {
    Table<T> table{rows, columns};
    table.fill();
    const AlignedVector<T> v = numbers<T>(table.count * lanes<T>);
    std::vector<T> out(columns);
    simd<T>().transposed(table.tiles.data(), table.stride, table.count, v.data(), columns, out.data());
    for (std::size_t j = 0; j < columns; ++j) {
        Sum sum;
        for (std::size_t i = 0; i < rows; ++i) sum += static_cast<Real>(v[i]) * table.at(i, j);
        expect(near(out[j], sum.value, sum.size, rows + 2), "transposed");
        T alone;
        simd<T>().transposed(table.tiles.data() + j * lanes<T>, table.stride, table.count, v.data(), 1, &alone);
        expect(same(alone, out[j]), "transposed for one column");
    }
}

template <class T>
void check_decay(std::size_t n, std::size_t rows) {
    constexpr Real smallest = sizeof(T) == 4 ? 0x1p-119L : 0x1p-1015L;
    const T rate = T(0.7);
    const std::size_t stride = n + 3;
    AlignedVector<T> v(rows * stride);
    for (T& value : v) value = static_cast<T>(std::exp(20 * source.uniform() - 12));
    v[0] = 0;
    v[n / 2] = std::numeric_limits<T>::infinity();
    v[n - 1] = std::numeric_limits<T>::quiet_NaN();
    const AlignedVector<T> before = v;
    simd<T>().decay(v.data(), n, rows, stride, rate);
    for (std::size_t i = 0; i < v.size(); ++i) {
        T alone = before[i];
        if (i % stride >= n) {
            expect(same(v[i], alone), "end of decay");
            continue;
        }
        simd<T>().decay(&alone, 1, 1, 1, rate);
        const Real x = std::min<Real>(static_cast<Real>(rate) * before[i], 1e4), want = std::exp(-x);  // no infinity
        if (std::isnan(before[i])) {
            expect(std::isnan(v[i]), "decay of NaN");
            continue;
        }
        expect(same(v[i], alone), "decay of one number");
        const Real bound = 1.5L * (1 + x) * std::numeric_limits<T>::epsilon() * want + smallest;
        expect(v[i] >= 0 && std::abs(v[i] - want) <= bound, "decay");
        expect(v[i] == 0 || std::isnormal(v[i]), "size of decay");
    }
}

template <class T>
void check_sincos(std::size_t n) {
    const T scale = T(0.3);
    AlignedVector<T> q(n), cos(n), sin(n);
    for (T& value : q) value = static_cast<T>(std::exp(20 * source.uniform() - 3)) * number<T>();
    if (n > 3) q[1] = std::numeric_limits<T>::infinity(), q[2] = std::numeric_limits<T>::quiet_NaN();
    simd<T>().sincos(q.data(), n, scale, cos.data(), sin.data());
    for (std::size_t i = 0; i < n; ++i) {
        T c, s;
        simd<T>().sincos(&q[i], 1, scale, &c, &s);
        if (!std::isfinite(q[i])) {
            expect(std::isnan(cos[i]) && std::isnan(sin[i]), "sincos of what is not finite");
            continue;
        }
        expect(same(c, cos[i]) && same(s, sin[i]), "sincos of one number");
        const Real bound = 0.9L * scale * std::numeric_limits<T>::epsilon();
        expect(std::abs(cos[i] - scale * std::cos(static_cast<Real>(q[i]))) <= bound, "cosine");
        expect(std::abs(sin[i] - scale * std::sin(static_cast<Real>(q[i]))) <= bound, "sine");
    }
}

template <class T>
void check_vectors(std::size_t n) {
    const auto a = numbers<double>(n);
    const auto b = numbers<T>(n), c = numbers<T>(n);
    Sum dot, inner;
    for (std::size_t i = 0; i < n; ++i) dot += static_cast<Real>(a[i]) * b[i], inner += static_cast<Real>(c[i]) * b[i];
    expect(near(simd<T>().dot(a.data(), b.data(), n), dot.value, dot.size, n + 2), "dot");
    expect(near(static_cast<T>(simd<T>().inner(c.data(), b.data(), n)), inner.value, inner.size, n + 2), "inner");
    auto y = a;
    auto z = c;
    simd<T>().axpy(y.data(), 0.3, b.data(), n);
    simd<T>().add_scaled(z.data(), T(0.3), b.data(), n);
    for (std::size_t i = 0; i < n; ++i) {
        expect(near(y[i], a[i] + static_cast<Real>(0.3) * b[i], 2, 1), "axpy");
        expect(near(z[i], c[i] + static_cast<Real>(T(0.3)) * b[i], 2, 1), "add_scaled");
    }
}

template <class T>
void check_hadamard(std::size_t n) {
    AlignedVector<T> v(n);
    for (T& value : v) value = static_cast<T>(source.below(17)) - 8;
    const AlignedVector<T> before = v;
    simd<T>().hadamard(v.data(), n);
    for (std::size_t i = 0; i < n; ++i) {
        T sum = 0;
        for (std::size_t k = 0; k < n; ++k) sum += std::popcount(i & k) % 2 ? -before[k] : before[k];
        expect(v[i] == sum, "hadamard");
    }
}

void check_triangular(std::size_t n) {
    const std::size_t stride = n + 5;
    AlignedVector<double> L = numbers<double>(n * stride);
    for (std::size_t j = 0; j < n; ++j) L[j * stride + j] = 3 + number<double>();
    const auto b = numbers<double>(n);
    auto y = b, u = b;
    simd<double>().forward(L.data(), stride, n, y.data());
    simd<double>().backward(L.data(), stride, n, u.data());
    for (std::size_t i = 0; i < n; ++i) {
        Sum left, right;
        for (std::size_t j = 0; j <= i; ++j) left += static_cast<Real>(L[j * stride + i]) * y[j];
        for (std::size_t j = i; j < n; ++j) right += static_cast<Real>(L[i * stride + j]) * u[j];
        expect(near(b[i], left.value, left.size, n + 2), "forward");
        expect(near(b[i], right.value, right.size, n + 2), "backward");
    }
}

void check_rotate(std::size_t n) {
    const auto a = numbers<double>(n), b = numbers<double>(n);
    auto to = a, other = b;
    simd<double>().rotate(0.6, 0.8, to.data(), other.data(), to.data(), n);
    for (std::size_t i = 0; i < n; ++i) {
        expect(near(to[i], 0.6 * static_cast<Real>(a[i]) + 0.8 * static_cast<Real>(b[i]), 2, 2), "rotate");
        expect(near(other[i], 0.6 * static_cast<Real>(b[i]) - 0.8 * static_cast<Real>(a[i]), 2, 2), "rotate");
    }
}

template <class T>
void check_search(std::size_t n) {
    constexpr std::size_t size = 9;
    const auto nodes = numbers<double>(size * size), b = numbers<double>(n);
    AlignedVector<T> k(n);
    for (T& value : k) value = static_cast<T>(source.uniform());
    AlignedVector<double> out(n);
    const double a = 0.4;
    simd<T>().interpolated(nodes.data(), size, a, b.data(), k.data(), n, out.data());
    double least = b[0];
    for (std::size_t i = 0; i < n; ++i) {
        least = b[i] < least ? b[i] : least;
        if (b[i] <= 0) {
            expect(std::isinf(out[i]), "interpolated between opposite signs");
            continue;
        }
        // g is given on [0, 1/2]: a larger share stays at the border
        const Real x = std::min<Real>(2 * (size - 1) * a / (a + b[i]), size - 1),
                   y = (size - 1) * static_cast<Real>(k[i]);
        Real g = 0;
        for (std::size_t p = 0; p < size; ++p) {
            for (std::size_t q = 0; q < size; ++q) {
                const Real wx = std::max<Real>(0, 1 - std::abs(x - p)), wy = std::max<Real>(0, 1 - std::abs(y - q));
                g += wx * wy * nodes[p * size + q];
            }
        }
        expect(near(out[i], (a + b[i]) * (a + b[i]) * g, (a + b[i]) * (a + b[i]), 100), "interpolated");
    }
    expect(simd<T>().minimum(b.data(), n) == least, "minimum");
}

template <class T>
void check_all() {
    for (const std::size_t rows : {std::size_t{1}, lanes<T>, 5 * lanes<T> + 3, 13 * lanes<T>}) {
        for (const std::size_t columns : {1, 2, 7, 33, 70}) {
            for (const std::size_t queries : {1, 2, 3, 5, 9, 18}) {
                check_dense<T>(rows, columns, queries);
                check_sparse<T>(rows, columns, queries);
                check_flags<T>(rows, columns, queries);
            }
            check_transposed<T>(rows, columns);
        }
    }
    for (std::size_t n = 1; n < 150; ++n) {
        check_decay<T>(n, n % 7 + 1);
        check_sincos<T>(n);
        check_vectors<T>(n);
        check_search<T>(n);
    }
    for (std::size_t n = 1; n <= 512; n *= 2) check_hadamard<T>(n);
}

}  // namespace

int main() {
    constexpr int skipped = 77;
    const char* wanted = std::getenv("ONKEL_INSTRUCTIONS");
    if (wanted && std::strcmp(wanted, instruction_set()) != 0) return skipped;
    check_all<float>();
    check_all<double>();
    for (std::size_t n = 1; n < 80; ++n) check_triangular(n), check_rotate(n);
    if (failures == 0) std::printf("%s: as the plain loops\n", instruction_set());
    return failures != 0;
}
