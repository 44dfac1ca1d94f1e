#include "datasets/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <version>

namespace onkel {
namespace {

constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr std::uint64_t kExact = std::uint64_t{1} << 53;  // whole numbers up to here are doubles
constexpr std::ptrdiff_t kLongestCell = 131072;           // of a table; Python says what is wrong with longer ones
constexpr std::int64_t kMostColumns = std::numeric_limits<std::int32_t>::max() - 1;

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

// The correctly rounded value of a long or extreme number; null if it has none.
const char* any_number(const char* from, const char* end, bool negative, double& value) {
#ifdef __cpp_lib_to_chars
    const auto [stop, error] = std::from_chars(from, end, value);
    if (error != std::errc() || !std::isfinite(value)) return nullptr;
    if (negative) value = -value;
    return stop;
#else  // a standard library that cannot: Python can
    return (void)from, (void)end, (void)negative, (void)value, nullptr;
#endif
}

// A decimal number at p, its end returned; null if there is none. A mantissa below 2^53 times or through a power of
// ten up to 10^22 is one rounding of two exact numbers, so it is the nearest double; the rest is left to the library.
const char* number(const char* p, const char* end, double& value) {
    const bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) ++p;
    const char* from = p;
    std::uint64_t mantissa = 0;
    int power = 0;
    while (p < end && is_digit(*p)) mantissa = 10 * mantissa + static_cast<std::uint64_t>(*p++ - '0');
    std::ptrdiff_t digits = p - from;
    if (p < end && *p == '.') {
        const char* point = ++p;
        while (p < end && is_digit(*p)) mantissa = 10 * mantissa + static_cast<std::uint64_t>(*p++ - '0');
        power = static_cast<int>(std::max<std::ptrdiff_t>(point - p, -1000));
        digits += p - point;
    }
    if (digits == 0) return nullptr;
    if (p < end && (*p == 'e' || *p == 'E')) {
        const char* q = p + 1;
        const bool down = q < end && *q == '-';
        if (q < end && (*q == '-' || *q == '+')) ++q;
        if (q == end || !is_digit(*q)) return nullptr;
        int exponent = 0;
        while (q < end && is_digit(*q)) exponent = std::min(10 * exponent + (*q++ - '0'), 10000);
        power += down ? -exponent : exponent;
        p = q;
    }
    if (digits > 19 || mantissa > kExact || power < -22 || power > 22) return any_number(from, end, negative, value);
    const auto exact = static_cast<double>(mantissa);
    value = power < 0 ? exact / kPowers[-power] : exact * kPowers[power];
    if (negative) value = -value;
    return p;
}

const char* skip_blanks(const char* p, const char* end) {
    while (p < end && is_blank(*p)) ++p;
    return p;
}

bool ends_word(const char* p, const char* end) { return p == end || is_blank(*p) || *p == '\n' || *p == '#'; }

// A column that begins at p and its colon; null if it is no such thing.
const char* column(const char* p, const char* end, std::int64_t base, std::int64_t& value) {
    const char* from = p;
    value = 0;
    while (p < end && is_digit(*p) && p - from < 11) value = 10 * value + (*p++ - '0');
    if (p == from || p == end || *p != ':' || value < base || value - base > kMostColumns) return nullptr;
    value -= base;
    return p + 1;
}

const char* skip_query(const char* p, const char* end) {
    if (end - p < 5 || std::string_view(p, 4) != "qid:") return p;
    const char* q = p + 4;
    while (q < end && is_digit(*q)) ++q;
    return q > p + 4 && ends_word(q, end) ? q : p;
}

// The pairs of one row in ascending order; false if a column comes twice.
bool sort_row(SparseText& rows, std::size_t first) {
    std::vector<std::pair<std::int32_t, double>> pairs;
    for (std::size_t i = first; i < rows.columns.size(); ++i) pairs.emplace_back(rows.columns[i], rows.values[i]);
    std::sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (i && pairs[i].first == pairs[i - 1].first) return false;
        rows.columns[first + i] = pairs[i].first;
        rows.values[first + i] = pairs[i].second;
    }
    return true;
}

// The rest of a row after its target, up to the end of its line; null if it is not understood.
const char* pairs(const char* p, const char* end, std::int64_t base, SparseText& rows) {
    const std::size_t first = rows.columns.size();
    std::int64_t last = -1;
    bool ascending = true;
    p = skip_query(skip_blanks(p, end), end);
    for (;;) {
        p = skip_blanks(p, end);
        if (p == end || *p == '\n' || *p == '#') break;
        std::int64_t at = 0;
        double value = 0;
        if (!(p = column(p, end, base, at)) || !(p = number(p, end, value)) || !ends_word(p, end)) return nullptr;
        ascending = ascending && at > last;
        last = at;
        rows.width = std::max(rows.width, at + 1);
        rows.columns.push_back(static_cast<std::int32_t>(at));
        rows.values.push_back(value);
    }
    return ascending || sort_row(rows, first) ? p : nullptr;
}

const char* next_line(const char* p, const char* end) { return p == end ? end : std::find(p, end, '\n'); }

}  // namespace

std::optional<SparseText> parse_libsvm(std::string_view text, std::int64_t base) {
    SparseText rows;
    rows.values.reserve(text.size() / 8);
    rows.columns.reserve(text.size() / 8);
    rows.starts.push_back(0);
    const char *p = text.data(), *end = p + text.size();
    for (; p < end; p = p < end ? p + 1 : p) {
        p = skip_blanks(p, end);
        if (p < end && *p != '\n' && *p != '#') {
            double target = 0;
            if (!(p = number(p, end, target)) || !ends_word(p, end) || !(p = pairs(p, end, base, rows))) return {};
            rows.targets.push_back(target);
            rows.starts.push_back(static_cast<std::int32_t>(rows.columns.size()));
        }
        p = next_line(p, end);  // past a comment
    }
    return rows;
}

std::optional<TableText> parse_table(std::string_view text, char separator, const std::vector<std::uint8_t>& wanted) {
    TableText table;
    const char *p = text.data(), *end = p + text.size();
    while (p < end) {
        const char* line = skip_blanks(p, end);
        if (line < end && *line == '\n') {  // an empty line; with tabs as separators, a row of empty cells
            if (line > p && separator == '\t') return {};
            p = line + 1;
            continue;
        }
        for (std::size_t j = 0; j < wanted.size(); ++j) {
            const bool last = j + 1 == wanted.size();
            const char* stop = p;
            if (wanted[j] == 1) {
                double value = std::numeric_limits<double>::quiet_NaN();
                while (stop < end && *stop == ' ') ++stop;
                if (stop < end && *stop != separator && *stop != '\n' && *stop != '\r') stop = number(stop, end, value);
                if (!stop) return {};
                while (stop < end && *stop == ' ') ++stop;
                table.numbers.push_back(value);
                if (last && stop < end && *stop == '\r') ++stop;
            } else {
                while (stop < end && *stop != separator && *stop != '\n') ++stop;
                if (wanted[j] == 2) {
                    table.cells.push_back(p - text.data());
                    table.cells.push_back(stop - text.data());
                }
            }
            if (stop - p > kLongestCell) return {};
            if (last ? stop < end && *stop != '\n' : stop == end || *stop != separator) return {};
            p = stop < end ? stop + 1 : stop;
        }
        ++table.rows;
    }
    return table;
}

}  // namespace onkel
