// The tuning results that this build was shipped with: the files of configs/tuned/, as text. The lowest cache
// layer reads them; nothing here parses or trusts them. Generated at build time, constant, safe from any
// thread.
#pragma once

#include <span>
#include <string_view>

namespace hone::cache {

struct PackagedBundle {
    std::string_view name;  ///< file name without .json, "h100-sxm"
    std::string_view text;  ///< the exported bundle, docs/cache-format.md
};

/// Sorted by name; may be empty.
[[nodiscard]] std::span<const PackagedBundle> packaged_bundles();

}  // namespace hone::cache
