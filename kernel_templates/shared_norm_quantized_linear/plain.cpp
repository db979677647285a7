// Variant plain.
#include "kernel_templates/kit/fixed_answers.h"
#include "kernel_templates/shared_norm_linear/plain_space.h"
#include "kernel_templates/shared_norm_quantized_linear/plain_plan.h"

namespace hone::shared_norm_quantized_linear {

const Variant plain{.name = "plain",
                    .summary = "a warp a column, on CUDA cores; right everywhere, and slow",
                    .source = "shared_norm_quantized_linear/plain.cu",
                    .tunables = shared_norm_linear::plain_tunables,
                    .constraints = shared_norm_linear::plain_constraints,
                    .kernels = plain_kernels,
                    .plan = typed<plain_plan>,
                    .fallback = typed<shared_norm_linear::plain_fallback<SharedNormQuantizedProblem>>,
                    .access_elements = accesses_of<1>,
                    .predict_us = typed<shared_norm_linear::predict_plain_us<SharedNormQuantizedProblem>>};

}  // namespace hone::shared_norm_quantized_linear
