// Quantized linear, variant wgmma_w16 (sm_90a): weights of 4 or 8 bits in blocks (layout.cuh), 16-bit x.
// Ring, schedule and results are those of linear's tensor-core product (linear/wgmma/product.cuh says how),
// with the weight as the left operand; roles.cuh shares out the work.
//
// Data's way: codes, and of groups their scales and zero points -> ring in shared memory (bulk copies, whole
// blocks) -> registers, 16 bytes a thread and block -> 16-bit numbers, exact, times the group's scale ->
// tensor cores as left operand from registers; x -> ring (tensor copies, 128-byte swizzle) -> tensor cores.
// Scales of whole rows are multiplied to the sums: parts of sums, too, so that they add up.
#include "hone_constants.h"
#include "quantized_linear/wgmma_w16/stage.cuh"

namespace hone::quantized_linear::w16 {
inline constexpr Stage held{
    .bits = Shape::format == 0 ? 4 : 8, .group = static_cast<int>(Shape::group), .zeros = Shape::zeros != 0};
}
namespace hone::linear::gemm {
inline constexpr Operands operands =
    quantized_linear::w16::held.operands(quantized_linear::w16::form_of(static_cast<int>(Tuned::stages_together)));
}

#include "quantized_linear/wgmma_w16/product.cuh"
#include "quantized_linear/wgmma_w16/roles.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::gemm::threads, Tuned::blocks_per_sm)
    quantized_linear_wgmma_w16(HONE_PARAMETERS(quantized_linear_wgmma_w16)) {
    using namespace hone::quantized_linear;
    const Tensors tensors{HONE_ARGUMENTS(quantized_linear_wgmma_w16)};
    const hone::linear::gemm::Maps maps{x_map, x_rest_map, x_map, x_map, result_map};
    w16::run(maps, {bias, residual, out, workspace, static_cast<int>(tokens), residual_stride, out_stride},
             w16::PackedWeights(tensors), w16::WidenedProduct<>(tensors));
}

namespace hone::linear::normalize {
inline constexpr int vector = 8;
}

#include "linear/normalize.cuh"
