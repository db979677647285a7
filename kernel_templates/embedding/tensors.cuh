// What the kernels of this family share: the call's tensors, and what a token's row is made of.
#pragma once

#include "device/packet.cuh"
#include "device/sync.cuh"
#include "hone_constants.h"

namespace hone::embedding {

using Element = DtypeOf<Shape::dtype>::type;
using Index = Conditional<Shape::index != 0, int64, int>::type;
inline constexpr bool has_scale = Shape::scale != 0;
inline constexpr bool has_positions = Shape::positions != 0;
inline constexpr int hidden = static_cast<int>(Shape::hidden);

/// The rows that a token is the sum of; a token with an index outside of its table has none.
struct Source {
    const Element* row;
    const Element* position;
    bool exists;
};

struct Tensors : Arguments {
    __device__ Source source(int64 token) const {
        const int64 id = ids[token];
        const int64 position = has_positions ? position_ids[token] : 0;
        if (id < 0 || id >= vocabulary) return {nullptr, nullptr, false};
        if (has_positions && (position < 0 || position >= position_rows)) return {nullptr, nullptr, false};
        return {table + id * table_stride,
                has_positions ? position_table + position * position_table_stride : nullptr, true};
    }
    /// An element of the table, scaled.
    __device__ float scaled(float value) const {
        if constexpr (has_scale) return __fmul_rn(value, scale);
        return value;
    }
};

}  // namespace hone::embedding
