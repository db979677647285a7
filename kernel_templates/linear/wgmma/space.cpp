#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/linear/variants.h"
#include "kernel_templates/linear/wgmma/plan.h"
#include "kernel_templates/linear/wgmma/rules.h"

namespace hone::linear {
namespace {

using gemm::WgmmaConfig;

constexpr auto elements = std::to_array<Constraint>({
    rule("tensor cores multiply fp16 and bf16",
         [](const LinearProblem& p) { return p.dtype != Dtype::fp32; }),
    rule("rows must start at multiples of 16 bytes: in and out are multiples of 8",
         [](const LinearProblem& p) { return p.in % 8 == 0 && p.out % 8 == 0; }),
});
constexpr auto constraints = joined(elements, gemm::rules<LinearProblem, WgmmaConfig>);

std::optional<WgmmaConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const LinearProblem p(problem);
    if (p.tokens <= 8) return std::nullopt;  // mma and gemv are faster
    const std::vector<WgmmaConfig> configs = gemm::proven_configs(p);
    return best_of(problem, wgmma, std::span<const WgmmaConfig>(configs), traits);
}

}  // namespace

const Variant wgmma{.name = "wgmma",
                    .summary = "warpgroup tensor cores fed by tensor copies, one warpgroup for the copies",
                    .source = "linear/wgmma/kernel.cu",
                    .min_arch = {9, 0, true},
                    .tunables = gemm::tunables,
                    .constraints = constraints,
                    .kernels = wgmma_kernels,
                    .plan = typed<wgmma_plan>,
                    .fallback = typed<fallback>,
                    .access_elements = typed<wgmma_access_elements>,
                    .predict_us = typed<gemm::predict>};

}  // namespace hone::linear
