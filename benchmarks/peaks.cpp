// What the machine can do at best: multiply-adds between registers, sine and cosine together, sums and steps over
// numbers near the processor, and reading numbers in order from wherever so many of them lie. Each is done `times`
// times for `size` numbers.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#define UNROLL _Pragma("GCC unroll 16")

namespace {

#if defined(__AVX512F__)
constexpr std::size_t bytes = 64;
#elif defined(__AVX__)
constexpr std::size_t bytes = 32;
#else
constexpr std::size_t bytes = 16;
#endif

template <class T>
struct Vectors;
template <>
struct Vectors<float> {
    using Bits = std::int32_t;
    typedef float Wide __attribute__((vector_size(bytes), may_alias));
    typedef Bits WideBits __attribute__((vector_size(bytes), may_alias));
    static constexpr float rounder = 0x1.8p23f;
    static constexpr float pieces[] = {1.5703125f, 4.84466553e-4f, -6.39757838e-7f};  // of pi / 2
    static constexpr float sine[] = {-1.94944427e-4f, 8.33197497e-3f, -0.166666508f, 1};
    static constexpr float cosine[] = {2.44312032e-5f, -1.38873036e-3f, 4.16666456e-2f, -0.5f, 1};
};
template <>
struct Vectors<double> {
    using Bits = std::int64_t;
    typedef double Wide __attribute__((vector_size(bytes), may_alias));
    typedef Bits WideBits __attribute__((vector_size(bytes), may_alias));
    static constexpr double rounder = 0x1.8p52;
    static constexpr double pieces[] = {1.5707963276654482, -8.7055156955041661e-10};
    static constexpr double sine[] = {1.5886712267436005e-10,
                                      -2.5050567153454555e-8,
                                      2.7557312326362555e-6,
                                      -1.9841269825273484e-4,
                                      8.3333333333155939e-3,
                                      -0.16666666666666596,
                                      1};
    static constexpr double cosine[] = {-1.1358401030517145e-11,
                                        2.0875699980510877e-9,
                                        -2.7557314187317554e-7,
                                        2.4801587288935306e-5,
                                        -1.3888888888873292e-3,
                                        4.1666666666666595e-2,
                                        -0.5,
                                        1};
};

template <class T>
struct Peak {
    using V = Vectors<T>;
    using Wide = typename V::Wide;
    using WideBits = typename V::WideBits;
    static constexpr std::size_t width = bytes / sizeof(T);

    alignas(64) static inline T a[1 << 13], b[1 << 13], c[1 << 13];

    static Wide& at(T* numbers, std::size_t i) { return *reinterpret_cast<Wide*>(numbers + i); }
    // Pages never written to would all be the same one.
    static void fill() {
        for (T* numbers : {a, b, c}) std::fill(numbers, numbers + (1 << 13), T(0.5));
    }
    // The compiler may not know what is in the arrays.
    static void forget() { asm volatile("" : : "r"(a), "r"(b), "r"(c) : "memory"); }

    static void fma(std::size_t size, std::size_t times) {
        constexpr std::size_t chains = 16;
        forget();
        const Wide factor = at(a, 0), term = at(b, 0);
        Wide sum[chains];
        UNROLL for (std::size_t k = 0; k < chains; ++k) sum[k] = at(c, k * width);
        for (std::size_t left = size * times / (chains * width); left > 0; --left) {
            UNROLL for (std::size_t k = 0; k < chains; ++k) sum[k] = sum[k] * factor + term;
        }
        UNROLL for (std::size_t k = 0; k < chains; ++k) at(c, k * width) = sum[k];
        forget();
    }

    // From a, into b and c
    template <std::size_t vectors>
    static void waves(std::size_t first) {
        constexpr std::size_t sines = sizeof V::sine / sizeof(T), cosines = sizeof V::cosine / sizeof(T);
        constexpr int top = 8 * sizeof(T) - 1;
        Wide r[vectors], square[vectors], sine[vectors], cosine[vectors];
        WideBits turns[vectors];
        UNROLL for (std::size_t k = 0; k < vectors; ++k) {
            r[k] = at(a, first + k * width);
            const Wide rounded = r[k] * T(0.6366197723675814) + V::rounder;
            turns[k] = (WideBits)rounded;
            UNROLL for (const T piece : V::pieces) r[k] -= (rounded - V::rounder) * piece;
            square[k] = r[k] * r[k];
            sine[k] = square[k] * V::sine[0] + V::sine[1];
            cosine[k] = square[k] * V::cosine[0] + V::cosine[1];
        }
        UNROLL for (std::size_t power = 2; power < sines; ++power) {
            UNROLL for (std::size_t k = 0; k < vectors; ++k) sine[k] = sine[k] * square[k] + V::sine[power];
        }
        UNROLL for (std::size_t power = 2; power < cosines; ++power) {
            UNROLL for (std::size_t k = 0; k < vectors; ++k) cosine[k] = cosine[k] * square[k] + V::cosine[power];
        }
        UNROLL for (std::size_t k = 0; k < vectors; ++k) {
            sine[k] *= r[k];
            const auto even = (turns[k] & 1) == 0;
            const WideBits sign = (turns[k] >> 1) << top, other = sign ^ (turns[k] << top);
            at(b, first + k * width) = (Wide)((WideBits)(even ? cosine[k] : sine[k]) ^ other);
            at(c, first + k * width) = (Wide)((WideBits)(even ? sine[k] : cosine[k]) ^ sign);
        }
    }

    static void sincos(std::size_t size, std::size_t times) {
        for (; times > 0; --times) {
            forget();
            std::size_t i = 0;
            for (; i + 4 * width <= size; i += 4 * width) waves<4>(i);
            for (; i < size; i += width) waves<1>(i);
        }
    }

    static void dot(std::size_t size, std::size_t times) {
        constexpr std::size_t chains = 8;
        for (; times > 0; --times) {
            forget();
            Wide sum[chains] = {};
            std::size_t i = 0;
            for (; i + chains * width <= size; i += chains * width) {
                UNROLL for (std::size_t k = 0; k < chains; ++k) sum[k] += at(a, i + k * width) * at(b, i + k * width);
            }
            for (; i < size; i += width) sum[0] += at(a, i) * at(b, i);
            UNROLL for (std::size_t k = 1; k < chains; ++k) sum[0] += sum[k];
            c[0] = 0;
            UNROLL for (std::size_t k = 0; k < width; ++k) c[0] += sum[0][k];
        }
    }

    static void reading(std::size_t size, std::size_t times) {
        constexpr std::size_t chains = 8;
        const std::size_t whole = (size + chains * width - 1) / (chains * width) * (chains * width);
        std::vector<T> numbers(whole + width, T(0.5));
        T* first = numbers.data();
        while (reinterpret_cast<std::uintptr_t>(first) % bytes != 0) ++first;
        Wide sum[chains] = {};
        for (; times > 0; --times) {
            asm volatile("" : : "r"(first) : "memory");
            for (std::size_t i = 0; i < whole; i += chains * width) {
                UNROLL for (std::size_t k = 0; k < chains; ++k) sum[k] += at(first, i + k * width);
            }
        }
        UNROLL for (std::size_t k = 0; k < chains; ++k) at(c, k * width) = sum[k];
        forget();
    }

    static void axpy(std::size_t size, std::size_t times) {
        for (; times > 0; --times) {
            forget();
            const T factor = c[0];
            UNROLL for (std::size_t i = 0; i < size; i += width) at(a, i) += factor * at(b, i);
        }
    }
};

using Work = void (*)(std::size_t size, std::size_t times);

// For numbers of type float or double
void run(int single, Work on_floats, Work on_doubles, std::size_t size, std::size_t times) {
    single ? Peak<float>::fill() : Peak<double>::fill();
    (single ? on_floats : on_doubles)(size, times);
}

}  // namespace

extern "C" {

void peak_fma(int single, std::size_t size, std::size_t times) {
    run(single, Peak<float>::fma, Peak<double>::fma, size, times);
}
void peak_sincos(int single, std::size_t size, std::size_t times) {
    run(single, Peak<float>::sincos, Peak<double>::sincos, size, times);
}
void peak_dot(int single, std::size_t size, std::size_t times) {
    run(single, Peak<float>::dot, Peak<double>::dot, size, times);
}
void peak_reading(int single, std::size_t size, std::size_t times) {
    run(single, Peak<float>::reading, Peak<double>::reading, size, times);
}
void peak_axpy(int single, std::size_t size, std::size_t times) {
    run(single, Peak<float>::axpy, Peak<double>::axpy, size, times);
}
}
