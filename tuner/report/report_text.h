// Pieces of text for people: numbers with units, and aligned tables. No output happens here.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone::tuner {

[[nodiscard]] std::string format_us(double us);              ///< "1.502", "23.40", "812.5"
[[nodiscard]] std::string format_share(double share);        ///< 0.123: "12 %", 0.0123: "1.2 %"
[[nodiscard]] std::string format_bytes(std::int64_t bytes);  ///< "12.4 MiB"
[[nodiscard]] std::string format_duration(
    std::chrono::milliseconds time);                          ///< "850 ms", "12.3 s", "4 min 05 s"
[[nodiscard]] std::string format_time(std::int64_t unix_ms);  ///< "2026-03-01 12:34:56" UTC; "-" for 0

/// What text is printed on.
struct Page {
    bool colour = false;
    std::size_t columns = 0;  ///< 0: as many as it takes
};

/// At most so many columns, the last one "…" where something is cut off; 0: all of it.
[[nodiscard]] std::string fitted(std::string_view text, std::size_t columns);

/// What stands between blanks; of several, all but one belong to the word behind.
[[nodiscard]] std::vector<std::string> split_words(std::string_view text);
/// Words with a blank between, as many a line as fit the page; no line is wider. Ends with a line feed.
[[nodiscard]] std::string wrapped(std::span<const std::string> words, const Page& page,
                                  std::string_view indent, std::string_view first_indent);

enum class Align : std::uint8_t { left, right };

/// Columns with a title each; cells are escaped.
class Table {
  public:
    struct Column {
        std::string title;
        Align align = Align::left;
    };
    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

    /// As many cells as there are columns; missing ones are empty.
    void add(std::vector<std::string> cells);
    [[nodiscard]] bool empty() const { return rows_.empty(); }
    /// One line a row, two blanks between columns, titles bold on a page with colours. Cells of the widest
    /// left-aligned columns are cut until a line fits the page. Ends with a line feed.
    [[nodiscard]] std::string render(const Page& page, std::string_view indent = "") const;

  private:
    [[nodiscard]] std::vector<std::size_t> widths(std::size_t most) const;

    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace hone::tuner
