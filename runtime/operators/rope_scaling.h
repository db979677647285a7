// Which scalings of rotary embeddings angles can be made of: asked by rope_table(), of its caller's numbers,
// and by models, whose files say them. Both say in their own words where a wrong number stands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hone/rope_table.h"

namespace hone::runtime {

/// A number that a scaling may not have.
struct WrongScaling {
    std::string_view name;  ///< as RopeScaling calls it; of a list, its length or one of its numbers
    double value = 0;
    std::string allowed;  ///< "from 1 on"
};

/// The first one, in RopeScaling's order; nothing where the scaling is sound. NaN never is, nor infinity
/// where angles would not be numbers.
[[nodiscard]] std::optional<WrongScaling> wrong_scaling(const RopeScaling& scaling, std::int64_t rotary_dim);

}  // namespace hone::runtime
