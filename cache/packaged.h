// The tuning results that this build was shipped with: the files of configs/tuned/, each cut into the rows of
// one static problem, so that a process reads those that it asks for. The lowest cache layer reads them;
// nothing here parses or trusts them. Generated at build time (cache/packed_bundle.h), constant, safe from
// any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hone::cache {

/// Neighbouring lines of a bundle: the rows of one static problem on every GPU.
struct PackagedRows {
    std::string_view family;
    std::string_view static_fields;
    std::string_view block;  ///< their text as cache/compression.h makes it smaller
    std::size_t length = 0;  ///< bytes of that text
};

struct PackagedBundle {
    std::string_view name;               ///< file name without .json, "h100-sxm"
    std::string_view head;               ///< its text before the first row
    std::span<const PackagedRows> rows;  ///< in the file's order: by family, then by static fields
    std::string_view tail;               ///< its text behind the last row
};

/// Sorted by name; may be empty.
[[nodiscard]] std::span<const PackagedBundle> packaged_bundles();

/// The exported bundle to the byte, docs/cache-format.md. Throws BundleError for rows that are damaged.
[[nodiscard]] std::string text_of(const PackagedBundle&);

/// The lines of these rows, which are the bundle's. Throws BundleError as text_of().
[[nodiscard]] std::string lines_of(const PackagedBundle&, const PackagedRows&);

/// The lines of one static problem; empty where the bundle has none. Throws BundleError as text_of().
[[nodiscard]] std::string lines_of(const PackagedBundle&, std::string_view family,
                                   std::string_view static_fields);

}  // namespace hone::cache
