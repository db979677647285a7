// Puts cells of any value and any type into the tables of a cache, past all that SQLite and the cache would
// refuse: the tables say STRICT and have constraints for whoever reads them, and not for this writer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

struct sqlite3;

namespace hone::fuzz {

/// Between the cells of a row and between rows.
inline constexpr char cell_end = '\x1f';
inline constexpr char row_end = '\x1e';

struct Blob {
    std::string bytes;
};
using Cell = std::variant<std::monostate, std::int64_t, double, std::string, Blob>;

/// "i12", "r0.5", "ttext", "bbytes"; anything else is null.
[[nodiscard]] Cell cell_from(std::string_view text);
/// Its inverse for what is no null.
[[nodiscard]] std::string cell_text(std::int64_t value);
[[nodiscard]] std::string cell_text(double value);
[[nodiscard]] std::string cell_text(const std::string& value);

/// The parts between separators; one more than there are separators.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

class TableWriter {
  public:
    /// A cache of this build, which is made here, with all tables empty.
    explicit TableWriter(const std::filesystem::path& file);

    void begin();
    void commit();
    void clear(const std::string& table);
    /// Cells in the order of the table's columns. Returns false where SQLite refuses even so: null, a key
    /// that is there, or another number of cells.
    bool insert(const std::string& table, const std::vector<Cell>& cells);
    /// All rows of the table. False when there is no such column.
    bool update(const std::string& table, const std::string& column, const Cell& cell);

  private:
    struct Close {
        void operator()(sqlite3* handle) const noexcept;
    };

    void open(const std::filesystem::path& file);
    void execute(const std::string& sql);
    bool run(const std::string& sql, const std::vector<Cell>& cells);

    std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace hone::fuzz
