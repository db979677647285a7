// Variant plain.
#include "kernel_templates/kit/fixed_answers.h"
#include "kernel_templates/shared_norm_linear/plain_plan.h"
#include "kernel_templates/shared_norm_linear/plain_space.h"

namespace hone::shared_norm_linear {

const Variant plain{.name = "plain",
                    .summary = "a warp a column, on CUDA cores; right everywhere, and slow",
                    .source = "shared_norm_linear/plain.cu",
                    .tunables = plain_tunables,
                    .constraints = plain_constraints,
                    .kernels = plain_kernels,
                    .plan = typed<plain_plan>,
                    .fallback = typed<plain_fallback<SharedNormProblem>>,
                    .access_elements = accesses_of<1>,
                    .predict_us = typed<predict_plain_us<SharedNormProblem>>};

}  // namespace hone::shared_norm_linear
