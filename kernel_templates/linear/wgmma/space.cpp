#include "kernel_templates/linear/normalize.h"
#include "kernel_templates/linear/wgmma/rules.h"

namespace hone::linear {
namespace {

using namespace gemm;

constexpr Constraint elements[] = {
    {"tensor cores multiply fp16 and bf16",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return linear_problem(p).dtype != Dtype::fp32;
     }},
    {"rows must start at multiples of 16 bytes: in and out are multiples of 8",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return linear_problem(p).in % 8 == 0 && linear_problem(p).out % 8 == 0;
     }},
};
constexpr auto constraints = joined(elements, rules<linear_problem>);

Plan plan(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    Plan plan = plan_product("linear_wgmma", p, config, traits, {.result = p.dtype});
    Launch& gemm = plan.launches[0];
    for (const int index : {bias, residual, out, workspace}) gemm.args[gemm.arg_count++] = pointer_arg(index);
    for (const int index : {tokens, residual_stride, out_stride})
        gemm.args[gemm.arg_count++] = scalar_arg(index);
    return normalize_first(p, plan);
}

std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    if (p.tokens <= 8) return std::nullopt;  // mma and gemv are faster
    return best_of(problem, wgmma, proven_configs(p), traits);
}

double predict_us(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    return predict(linear_problem(problem), config, traits);
}

}  // namespace

const Variant wgmma{.name = "wgmma",
                    .summary = "warpgroup tensor cores fed by tensor copies, one warpgroup for the copies",
                    .source = "linear/wgmma/kernel.cu",
                    .min_arch = {9, 0, true},
                    .tunables = tunables,
                    .constraints = constraints,
                    .plan = plan,
                    .fallback = fallback,
                    .access_elements = [](const Problem&, const Config&) { return std::int64_t{8}; },
                    .predict_us = predict_us};

}  // namespace hone::linear
