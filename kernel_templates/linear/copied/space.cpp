#include <optional>
#include <vector>

#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/linear/copied/plan.h"
#include "kernel_templates/linear/variants.h"
#include "kernel_templates/linear/wgmma/rules.h"

namespace hone::linear {
namespace {

/// Copies as a share of the device's memory: all layers of a model may use the same workspace.
constexpr std::int64_t memory_parts = 32;
/// Bytes of copies that nobody has asked for.
constexpr std::int64_t most_unmeasured_bytes = 256 << 20;

std::int64_t all_copied_bytes(const LinearProblem& p) {
    return copied_bytes(p, p.tokens + p.products() * p.out);
}

constexpr auto own_constraints = std::to_array<Constraint>({
    rule("tensor cores multiply fp16 and bf16",
         [](const LinearProblem& p) { return p.dtype != Dtype::fp32; }),
    rule("rows are copied that do not begin at multiples of 16 bytes: in is no multiple of 8",
         [](const LinearProblem& p) { return p.in % copies::chunk != 0; }),
    rule("up to 16 tokens are mma's", [](const LinearProblem& p) { return p.tokens > 16; }),
    rule("the copies may take a 32nd of the device's memory as workspace",
         [](const LinearProblem& p, const DeviceTraits& t) {
             return all_copied_bytes(p) <= t.memory_bytes / memory_parts;
         }),
});
constexpr auto constraints = joined(own_constraints, gemm::rules<LinearProblem, gemm::WgmmaConfig>);

double predict(const LinearProblem& p, const gemm::WgmmaConfig& c, const DeviceTraits& traits) {
    const auto copied = static_cast<double>(all_copied_bytes(p));
    return gemm::predict(p, c, traits) + gemm::rewrite_us(copied, copied, traits);
}

std::optional<gemm::WgmmaConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const LinearProblem p(problem);
    if (p.tokens <= 32 || all_copied_bytes(p) > most_unmeasured_bytes) return std::nullopt;
    const std::vector<gemm::WgmmaConfig> configs = gemm::proven_configs(p);
    return best_of(problem, copied, std::span<const gemm::WgmmaConfig>(configs), traits);
}

}  // namespace

const Variant copied{
    .name = "copied",
    .summary = "rows that begin anywhere are copied by a launch in front, then warpgroup tensor cores",
    .source = "linear/copied/kernel.cu",
    .min_arch = {9, 0, true},
    .tunables = gemm::tunables,
    .constraints = constraints,
    .kernels = copied_kernels,
    .plan = typed<copied_plan>,
    .fallback = typed<fallback>,
    .access_elements = typed<copied_access_elements>,
    .predict_us = typed<predict>};

}  // namespace hone::linear
