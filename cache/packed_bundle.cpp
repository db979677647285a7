#include "cache/packed_bundle.h"

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>
#include <tuple>

#include "cache/compression.h"

namespace hone::cache {
namespace {

/// What stands between `before` and the next quotation mark, which are taken off the line; no field's value
/// has one.
std::string_view take_member(std::string_view& line, std::string_view before) {
    const std::size_t end = line.find('"', before.size());
    if (!line.starts_with(before) || end == std::string_view::npos)
        throw std::runtime_error("a row does not begin with its family and static fields: " +
                                 std::string(line.substr(0, 80)));
    const std::string_view value = line.substr(before.size(), end - before.size());
    line.remove_prefix(end);
    return value;
}

/// One line of a bundle with its end.
std::string_view line_at(std::string_view text, std::size_t begin) {
    const std::size_t end = text.find('\n', begin);
    return text.substr(begin, end == std::string_view::npos ? end : end + 1 - begin);
}

bool is_row(std::string_view line) { return line.starts_with("{\""); }

/// The length of the lines from `begin` on that are rows, or are not.
std::size_t run_of_lines(std::string_view text, std::size_t begin, bool rows) {
    std::size_t end = begin;
    while (end < text.size() && is_row(line_at(text, end)) == rows) end += line_at(text, end).size();
    return end - begin;
}

std::string compressed(std::string_view text) {
    const std::vector<std::byte> block = compress(std::as_bytes(std::span(text)));
    return {reinterpret_cast<const char*>(block.data()), block.size()};
}

auto key_of(const PackedRows& rows) { return std::tie(rows.family, rows.static_fields); }

}  // namespace

PackedBundle pack_bundle(std::string_view text) {
    PackedBundle packed;
    const std::size_t first = run_of_lines(text, 0, false);
    const std::size_t last = first + run_of_lines(text, first, true);
    packed.head = text.substr(0, first);
    packed.tail = text.substr(last);
    for (std::size_t at = first, end = first; at < last; at = end) {
        const auto key_at = [&](std::size_t begin) {
            std::string_view line = line_at(text, begin);
            const std::string_view family = take_member(line, R"({"family":")");
            return std::tuple(family, take_member(line, R"(","static_fields":")"));
        };
        const auto key = key_at(at);
        while (end < last && key_at(end) == key) end += line_at(text, end).size();
        PackedRows rows{.family = std::string(std::get<0>(key)),
                        .static_fields = std::string(std::get<1>(key)),
                        .block = compressed(text.substr(at, end - at)),
                        .length = end - at};
        if (!packed.rows.empty() && key_of(packed.rows.back()) >= key_of(rows))
            throw std::runtime_error("rows are not in order: " + rows.family + ' ' + rows.static_fields);
        packed.rows.push_back(std::move(rows));
    }
    return packed;
}

}  // namespace hone::cache
