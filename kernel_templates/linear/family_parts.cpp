#include "kernel_templates/linear/family_parts.h"

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/kit/work.h"

namespace hone::linear {

std::string wrong_gate(const LinearProblem& p) {
    if (!p.gated) return {};
    if (p.activation == Activation::none)
        return "gated=yes needs an activation other than none: the gate would be a plain product";
    if (p.bias) return "gated=yes has no bias; allowed with gated=no";
    if (p.residual) return "gated=yes has no residual; allowed with gated=no";
    return {};
}

std::string too_large(std::string_view what, std::int64_t rows, std::int64_t columns) {
    constexpr std::int64_t max_elements = std::int64_t{1} << 40;
    if (rows <= max_elements / columns) return {};
    return std::string(what) + " is " + std::to_string(rows) + " x " + std::to_string(columns) +
           "; allowed: at most 2^40 elements";
}

std::optional<Problem> plain_product(const Problem& problem) {
    Problem plain = problem;
    for (const std::string_view field : {"norm", "bias", "residual"})
        plain = with(plain, static_cast<std::size_t>(field_index(*problem.family, field)), 0);
    if (plain == problem) return std::nullopt;
    return plain;
}

Work work_of(const LinearProblem& p, std::span<const Argument> arguments) {
    return {.bytes = bytes_of(arguments), .flops = p.flops()};
}

Dim3 reference_grid(const LinearProblem& p) {
    constexpr std::int64_t tile = 64;
    return grid_of(ceil_div(p.out, tile) * ceil_div(p.tokens, tile));
}

}  // namespace hone::linear
