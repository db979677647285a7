// RMSNorm, reference: norm/reference.cuh says how.
#include "norm/row.cuh"

namespace hone::norm {
inline constexpr bool layer_norm = false;
inline constexpr bool has_bias = false;
}  // namespace hone::norm

#include "norm/reference.cuh"
