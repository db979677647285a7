#include "tests/fuzz/table_writer.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdlib>

#include "cache/cache.h"
#include "kernel_templates/text.h"
#include "tests/fuzz/fuzz.h"

namespace hone::fuzz {
namespace {

int bind(sqlite3_stmt* statement, int index, const Cell& cell) {
    if (const auto* integer = std::get_if<std::int64_t>(&cell))
        return sqlite3_bind_int64(statement, index, *integer);
    if (const auto* real = std::get_if<double>(&cell)) return sqlite3_bind_double(statement, index, *real);
    if (const auto* text = std::get_if<std::string>(&cell))
        return sqlite3_bind_text64(statement, index, text->data(), text->size(), SQLITE_TRANSIENT,
                                   SQLITE_UTF8);
    if (const auto* blob = std::get_if<Blob>(&cell))
        return sqlite3_bind_blob64(statement, index, blob->bytes.data(), blob->bytes.size(),
                                   SQLITE_TRANSIENT);
    return sqlite3_bind_null(statement, index);
}

}  // namespace

Cell cell_from(std::string_view text) {
    if (text.empty()) return {};
    const std::string value(text.substr(1));
    switch (text.front()) {
        case 'i': return parse_integer(value).value_or(0);
        case 'r': return std::strtod(value.c_str(), nullptr);
        case 't': return value;
        case 'b': return Blob{value};
        default: return {};
    }
}

std::string cell_text(std::int64_t value) { return 'i' + std::to_string(value); }
std::string cell_text(double value) { return fmt::format("r{}", value); }
std::string cell_text(const std::string& value) { return 't' + value; }

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

void TableWriter::Close::operator()(sqlite3* handle) const noexcept { sqlite3_close_v2(handle); }

TableWriter::TableWriter(const std::filesystem::path& file) {
    static_cast<void>(cache::Cache::open(file));
    open(file);
    execute("PRAGMA journal_mode = DELETE");
    // This connection learns the tables without STRICT; then the text that other connections read is put
    // back. The version of the schema stays the same, so this one does not look again.
    execute(
        "PRAGMA writable_schema = ON; CREATE TEMP TABLE kept AS SELECT name, sql FROM main.sqlite_schema;"
        "UPDATE sqlite_schema SET sql = replace(replace(sql, 'STRICT, ', ''), ') STRICT', ')')");
    execute("PRAGMA writable_schema = RESET; PRAGMA writable_schema = ON");
    execute(
        "UPDATE sqlite_schema SET sql = (SELECT kept.sql FROM kept WHERE kept.name = sqlite_schema.name)"
        " WHERE type = 'table'");
    execute("PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY");
}

void TableWriter::open(const std::filesystem::path& file) {
    sqlite3* raw = nullptr;
    require(sqlite3_open(file.c_str(), &raw) == SQLITE_OK, "the cache is opened past its checks");
    handle_.reset(raw);
}

void TableWriter::execute(const std::string& sql) {
    require(sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK,
            sqlite3_errmsg(handle_.get()));
}

void TableWriter::begin() { execute("BEGIN"); }
void TableWriter::commit() { execute("COMMIT"); }
void TableWriter::clear(const std::string& table) { execute("DELETE FROM " + table); }

bool TableWriter::run(const std::string& sql, const std::vector<Cell>& cells) {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &raw, nullptr) != SQLITE_OK) return false;
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(raw, sqlite3_finalize);
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if (bind(raw, static_cast<int>(i) + 1, cells[i]) != SQLITE_OK) return false;
    }
    return sqlite3_step(raw) == SQLITE_DONE;
}

bool TableWriter::insert(const std::string& table, const std::vector<Cell>& cells) {
    std::string marks;
    for (std::size_t i = 0; i < cells.size(); ++i) marks += i == 0 ? "?" : ",?";
    return run("INSERT INTO " + table + " VALUES (" + marks + ")", cells);
}

bool TableWriter::update(const std::string& table, const std::string& column, const Cell& cell) {
    if (column.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") != std::string::npos || column.empty())
        return false;
    return run("UPDATE " + table + " SET " + column + " = ?", {cell});
}

}  // namespace hone::fuzz
