// How expert_linear/wgmma/kernel.cu is launched.
#pragma once

#include <array>

#include "kernel_templates/expert_linear/combine.h"
#include "kernel_templates/expert_linear/copies.h"
#include "kernel_templates/linear/wgmma/product.h"

namespace hone::expert_linear {

struct WgmmaConfig {
    std::int64_t tile_m = 128;
    std::int64_t tile_n = 128;
    std::int64_t consumers = 1;
    std::int64_t blocks_per_sm = 1;
    std::int64_t swapped = 0;
    std::int64_t tail_split = 0;
    std::int64_t l2_hint = 0;
    std::int64_t copied_x = 0;
    std::int64_t programmatic = 0;
};

inline constexpr KernelArg wgmma_maps[] = {
    tensor_map_arg(0, "weight_map"),
    tensor_map_arg(1, "x_map"),
    tensor_map_arg(2, "up_map"),
};
inline constexpr auto wgmma_args = join(call_args, wgmma_maps);
inline constexpr Kernel wgmma_kernels[] = {{"expert_linear_wgmma", wgmma_args}, copies, combine};

/// As the kernel has it (wgmma/tile.cuh).
[[nodiscard]] linear::gemm::Geometry geometry(const ExpertProblem&, const WgmmaConfig&);
/// Rows of x of a tile, and columns of tiles.
[[nodiscard]] std::int64_t tile_rows(const WgmmaConfig&);
[[nodiscard]] std::int64_t tiles_across(const ExpertProblem&, const WgmmaConfig&);
/// The map of x, [places, in], in boxes of so many rows: of the call's, or of copies in the workspace, whose
/// pointer the family numbers.
[[nodiscard]] TensorMap sorted_x_map(const ExpertProblem&, const WgmmaConfig&, const linear::gemm::Geometry&,
                                     int box_rows, int workspace_pointer);
/// Blocks of a call: all that are resident, or a tile each.
[[nodiscard]] std::int64_t blocks_of(const ExpertProblem&, const WgmmaConfig&, const DeviceTraits&);

[[nodiscard]] Plan wgmma_plan(const ExpertProblem&, const WgmmaConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t wgmma_access_elements(const ExpertProblem&, const WgmmaConfig&) {
    return 8;
}

}  // namespace hone::expert_linear
