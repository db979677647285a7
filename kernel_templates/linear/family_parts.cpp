#include "kernel_templates/linear/family_parts.h"

#include <cmath>

namespace hone::linear {

Argument matrix(std::string_view name, Role role, Dtype dtype, std::int64_t rows, std::int64_t columns,
                bool present) {
    return {.name = name, .role = role, .dtype = dtype, .shape = {1, 1, rows, columns}, .present = present};
}

Argument norm_weight_argument(const LinearProblem& p) {
    Argument argument = matrix("norm_weight", Role::weight, p.dtype, 1, p.in, p.norm);
    argument.fill_scale = 0.25;
    argument.fill_offset = 1.0;
    return argument;
}

double weight_deviation(const LinearProblem& p) { return 1.0 / std::sqrt(static_cast<double>(p.in)); }

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

Work work_of(const LinearProblem& p, std::span<const Argument> arguments) {
    double bytes = 0;
    for (const Argument& argument : arguments) {
        if (argument.role != Role::workspace) bytes += static_cast<double>(argument.bytes());
    }
    return {.bytes = bytes, .flops = p.flops()};
}

Dim3 reference_grid(const LinearProblem& p) {
    constexpr std::int64_t tile = 64;
    return {static_cast<std::uint32_t>(ceil_div(p.out, tile) * ceil_div(p.tokens, tile)), 1, 1};
}

}  // namespace hone::linear
