// Numbers out of text, fast. Whatever is unusual is refused without a word: the definitions in Python (text.py,
// tables.py) read it again, and either understand it or say what is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace onkel {

// Rows of LIBSVM text, as the parts of a CSR matrix.
struct SparseText {
    std::vector<double> targets, values;
    std::vector<std::int32_t> columns, starts;
    std::int64_t width = 0;  // largest column + 1
};

// Lines "target column:value ... # comment"; columns are counted from `base`.
std::optional<SparseText> parse_libsvm(std::string_view text, std::int64_t base);

// Lines of cells: numbers, row by row, and for the columns taken as text the places of the cells in it.
struct TableText {
    std::vector<double> numbers;      // NaN where a cell is empty
    std::vector<std::int64_t> cells;  // begin and end of each
    std::size_t rows = 0;
};

// Cells without quotes between separators; `wanted` says of each column: 0 skip, 1 number, 2 text.
std::optional<TableText> parse_table(std::string_view text, char separator, const std::vector<std::uint8_t>& wanted);

}  // namespace onkel
