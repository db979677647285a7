// How linear/copied/kernel.cu is launched: a launch that copies rows into the workspace (rows.cuh), and the
// product of those (linear/wgmma/).
#pragma once

#include "kernel_templates/linear/copied/geometry.cuh"
#include "kernel_templates/linear/normalize.h"
#include "kernel_templates/linear/wgmma/plan.h"

namespace hone::linear {

/// Those of the launch in front. The last three are places in the workspace, which the plan substitutes.
inline constexpr KernelArg copy_rows_args[] = {
    pointer_arg(x, "x"),
    pointer_arg(weight, "weight"),
    pointer_arg(up, "up"),
    narrow_arg(tokens, "tokens"),
    scalar_arg(x_stride, "x_stride"),
    scalar_arg(weight_stride, "weight_stride"),
    scalar_arg(up_stride, "up_stride"),
    pointer_arg(workspace, "x_rows"),
    pointer_arg(workspace, "weight_rows"),
    pointer_arg(workspace, "up_rows"),
};
/// Place of x_rows among them; weight_rows and up_rows follow.
inline constexpr std::uint8_t copied_rows_member = 7;

inline constexpr Kernel copied_kernels[] = {
    {"linear_copied", wgmma_args}, {"linear_copy_rows", copy_rows_args}, normalize};

/// Bytes of `rows` copied rows.
[[nodiscard]] inline std::int64_t copied_bytes(const LinearProblem& p, std::int64_t rows) {
    return rows * copies::pitch_of(p.in) * p.element_bytes();
}

[[nodiscard]] Plan copied_plan(const LinearProblem&, const gemm::WgmmaConfig&, const DeviceTraits&);

/// Of the results: rows of x and the weights begin anywhere.
[[nodiscard]] constexpr std::int64_t copied_access_elements(const LinearProblem&, const gemm::WgmmaConfig&) {
    return 8;
}

}  // namespace hone::linear
