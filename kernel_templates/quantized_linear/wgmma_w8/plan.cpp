#include "kernel_templates/quantized_linear/wgmma_w8/plan.h"

namespace hone::quantized_linear {

Plan wgmma_w8_plan(const QuantizedProblem& p, const WgmmaW8Config& c, const DeviceTraits& traits) {
    const Plan product = linear::gemm::plan_product(wgmma_w8_kernels[0], CodeProduct(p), c, traits,
                                                    {.result = p.dtype,
                                                     .x = x,
                                                     .weight = weight,
                                                     .up = up,
                                                     .out = out,
                                                     .x_stride = x_stride,
                                                     .weight_stride = weight_stride,
                                                     .up_stride = up_stride,
                                                     .out_stride = out_stride},
                                                    c.neighbours);
    return quantize_first(p, product, wgmma_w8_kernels[1]);
}

}  // namespace hone::quantized_linear
