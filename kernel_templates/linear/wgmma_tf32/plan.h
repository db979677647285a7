// How linear/wgmma_tf32/kernel.cu is launched: its config, and what follows from it.
#pragma once

#include "kernel_templates/linear/normalize.h"
#include "kernel_templates/linear/wgmma_tf32/geometry.cuh"

namespace hone::linear {

struct WgmmaTf32Config {
    std::int64_t tile_m = 128;
    std::int64_t tile_n = 64;
    std::int64_t consumers = 1;
    std::int64_t blocks_per_sm = 1;
    std::int64_t swapped = 0;
    std::int64_t cluster_k = 1;
    std::int64_t raster = 8;
    std::int64_t l2_hint = 0;
    std::int64_t programmatic = 0;
};

namespace tf32 {

[[nodiscard]] Geometry geometry(const LinearProblem&, const WgmmaTf32Config&);

/// Tiles of results in the direction of the left operand's rows, of the right one's, and in all.
[[nodiscard]] std::int64_t tiles_across(const LinearProblem&, const Geometry&);
[[nodiscard]] std::int64_t tiles_along(const LinearProblem&, const Geometry&);
[[nodiscard]] std::int64_t tiles(const LinearProblem&, const Geometry&);

}  // namespace tf32

inline constexpr KernelArg wgmma_tf32_args[] = {
    tensor_map_arg(0, "x_map"),           tensor_map_arg(1, "weight_map"),
    tensor_map_arg(2, "up_map"),          pointer_arg(bias, "bias"),
    pointer_arg(residual, "residual"),    pointer_arg(out, "out"),
    narrow_arg(tokens, "tokens"),         scalar_arg(residual_stride, "residual_stride"),
    scalar_arg(out_stride, "out_stride"),
};
inline constexpr Kernel wgmma_tf32_kernels[] = {{"linear_wgmma_tf32", wgmma_tf32_args}, normalize};

[[nodiscard]] Plan wgmma_tf32_plan(const LinearProblem&, const WgmmaTf32Config&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t wgmma_tf32_access_elements(const LinearProblem&,
                                                                const WgmmaTf32Config&) {
    return 4;
}

}  // namespace hone::linear
