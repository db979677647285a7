// Variant gemv, behind a norm: the space of linear's, predicted as the product without a norm.
#include "kernel_templates/kit/fixed_answers.h"
#include "kernel_templates/linear/few_tokens_tunables.h"
#include "kernel_templates/linear/variants.h"
#include "kernel_templates/shared_norm_linear/few_tokens_rules.h"
#include "kernel_templates/shared_norm_linear/gemv_plan.h"

namespace hone::shared_norm_linear {

const Variant gemv{.name = "gemv",
                   .summary = "linear's gemv, whose results are multiplied with factors",
                   .source = "shared_norm_linear/gemv.cu",
                   .tunables = linear::gemv_tunables,
                   .constraints = few_tokens_constraints<linear::gemv>,
                   .kernels = gemv_kernels,
                   .plan = typed<gemv_plan>,
                   .fallback = no_fallback,
                   .access_elements = accesses_of<8>,
                   .predict_us = as_linear<linear::gemv>};

}  // namespace hone::shared_norm_linear
