#include "cache/packaged.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "cache/compression.h"
#include "cache/error.h"

namespace hone::cache {
namespace {

auto key_of(const PackagedRows& rows) { return std::tie(rows.family, rows.static_fields); }

void append_lines(const PackagedBundle& bundle, const PackagedRows& rows, std::string& text) {
    const std::optional<std::vector<std::byte>> lines =
        decompress(std::as_bytes(std::span(rows.block)), rows.length);
    if (!lines) {
        throw BundleError(
            fmt::format("{}: the rows of {} {} are damaged", bundle.name, rows.family, rows.static_fields));
    }
    text.append(reinterpret_cast<const char*>(lines->data()), lines->size());
}

}  // namespace

std::string text_of(const PackagedBundle& bundle) {
    std::string text(bundle.head);
    for (const PackagedRows& rows : bundle.rows) append_lines(bundle, rows, text);
    return text.append(bundle.tail);
}

std::string lines_of(const PackagedBundle& bundle, const PackagedRows& rows) {
    std::string text;
    append_lines(bundle, rows, text);
    return text;
}

std::string lines_of(const PackagedBundle& bundle, std::string_view family, std::string_view static_fields) {
    const auto key = std::tie(family, static_fields);
    const auto rows = std::ranges::lower_bound(bundle.rows, key, {}, key_of);
    return rows != bundle.rows.end() && key_of(*rows) == key ? lines_of(bundle, *rows) : std::string();
}

}  // namespace hone::cache
