// Quantized linear, variant two_widths (sm_90a): weights of 4 or 8 bits in blocks (layout.cuh), 16-bit x, no
// gate; some hundred tokens and more. wgmma_w16 (wgmma_w16/kernel.cu says how data moves) with tiles of two
// widths: wide ones as long as they fill whole rounds of all blocks, narrow ones for the rows that are left
// (rounds.cuh). Products of narrow tiles are instructions of fewer columns.
#include "hone_constants.h"
#include "quantized_linear/wgmma_w16/stage.cuh"

namespace hone::quantized_linear::w16 {
inline constexpr Stage held{
    .bits = Shape::format == 0 ? 4 : 8, .group = static_cast<int>(Shape::group), .zeros = Shape::zeros != 0};
}
namespace hone::linear::gemm {
inline constexpr Operands operands = quantized_linear::w16::held.operands(
    quantized_linear::w16::form_of(static_cast<int>(Tuned::stages_together)));
}

#include "quantized_linear/two_widths/roles.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::gemm::threads, 1)
    quantized_linear_two_widths(HONE_PARAMETERS(quantized_linear_two_widths)) {
    using namespace hone::quantized_linear;
    const Tensors tensors{HONE_ARGUMENTS(quantized_linear_two_widths)};
    const widths::Maps maps{{x_map, x_rest_map, x_map, x_map, result_map},
                            {last_x_map, last_x_rest_map, x_map, x_map, last_result_map}};
    widths::run(maps, {bias, residual, out, workspace, static_cast<int>(tokens), residual_stride, out_stride},
                tensors);
}

namespace hone::linear::normalize {
inline constexpr int vector = 8;
}

#include "linear/normalize.cuh"
