#include "kernel_templates/expert_linear/sizes.h"

#include <string_view>

namespace hone::expert_linear {
namespace {

constexpr std::int64_t most_places = std::int64_t{1} << 24;
constexpr std::int64_t most_weights = std::int64_t{1} << 40;

std::string too_large(std::string_view what, const ExpertProblem& p, std::int64_t columns) {
    constexpr std::int64_t most = std::int64_t{1} << 38;
    if (p.places() <= most / columns) return {};
    return "tokens x top_k x " + std::string(what) + " is " + std::to_string(p.tokens) + " x " +
           std::to_string(p.top_k) + " x " + std::to_string(columns) + "; allowed: at most 2^38 elements";
}

}  // namespace

std::string wrong_sizes(const ExpertProblem& p) {
    if (p.activation == Activation::swiglu_oai && !p.gated)
        return "activation is swiglu_oai, which joins two products; allowed: with gated=yes";
    if (p.top_k > p.experts)
        return "top_k is " + std::to_string(p.top_k) + "; allowed: at most experts, " +
               std::to_string(p.experts);
    if (p.places() > most_places)
        return "tokens x top_k is " + std::to_string(p.tokens) + " x " + std::to_string(p.top_k) +
               "; allowed: at most 2^24";
    if (p.experts * p.out > most_weights / p.in)
        return "experts x out x in is " + std::to_string(p.experts) + " x " + std::to_string(p.out) + " x " +
               std::to_string(p.in) + "; allowed: at most 2^40";
    if (std::string error = too_large("in", p, p.in); !error.empty()) return error;
    return too_large("out", p, p.out);
}

Work work_of(const ExpertProblem& p, double weight_bytes) {
    const double rows = static_cast<double>(p.x_rows() * p.in + p.out_rows() * p.out);
    const std::int64_t numbers_a_place = p.combine ? 2 : p.gather ? 1 : 0;
    const auto places = static_cast<double>(4 * (p.experts + 1 + numbers_a_place * p.places()));
    return {.bytes = weight_bytes + rows * static_cast<double>(p.element_bytes()) + places,
            .flops = p.flops()};
}

Plan reference_plan_of(const ExpertProblem& p, std::span<const Kernel, 2> kernels) {
    Plan plan = plan_of(launch(kernels[0], grid_of(p.experts * ceil_div(p.out, 64)), 256));
    if (!p.combine) return plan;
    plan.launches[1] = launch(kernels[1], grid_of(ceil_div(p.tokens * p.out, 256)), 256);
    plan.launch_count = 2;
    plan.workspace_bytes = 4 * p.places() * p.out;
    return plan;
}

}  // namespace hone::expert_linear
