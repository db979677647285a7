// LayerNorm, reference: norm/reference.cuh says how.
#include "norm/row.cuh"

namespace hone::norm {
inline constexpr bool layer_norm = true;
inline constexpr bool has_bias = Shape::bias != 0;
}  // namespace hone::norm

#include "norm/reference.cuh"
