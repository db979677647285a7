// Variant strips, behind a norm: the space of linear's, predicted as the product without a norm.
#include "kernel_templates/kit/fixed_answers.h"
#include "kernel_templates/linear/few_tokens_tunables.h"
#include "kernel_templates/linear/variants.h"
#include "kernel_templates/shared_norm_linear/few_tokens_rules.h"
#include "kernel_templates/shared_norm_linear/strips_plan.h"

namespace hone::shared_norm_linear {

const Variant strips{.name = "strips",
                     .summary = "linear's strips, whose results are multiplied with factors",
                     .source = "shared_norm_linear/strips.cu",
                     .min_arch = {8, 0, false},
                     .tunables = linear::strips_tunables,
                     .constraints = few_tokens_constraints<linear::strips>,
                     .kernels = strips_kernels,
                     .plan = typed<strips_plan>,
                     .fallback = no_fallback,
                     .access_elements = accesses_of<8>,
                     .predict_us = as_linear<linear::strips>};

}  // namespace hone::shared_norm_linear
