// A bundle cut into the rows of each static problem and made smaller, as it ships with a build
// (cache/packaged.h). The build's tool asks here, and tests that make packaged layers of their own.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hone::cache {

/// PackagedRows whose texts stand here.
struct PackedRows {
    std::string family;
    std::string static_fields;
    std::string block;
    std::size_t length = 0;
};

/// PackagedBundle, likewise, without its name.
struct PackedBundle {
    std::string head;
    std::vector<PackedRows> rows;
    std::string tail;
};

/// What write_bundle() wrote; only where rows begin and end is looked at. Throws std::runtime_error for rows
/// that are not in order, or that do not begin with family and static fields.
[[nodiscard]] PackedBundle pack_bundle(std::string_view text);

}  // namespace hone::cache
