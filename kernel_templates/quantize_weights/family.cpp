#include <string>

#include "kernel_templates/quantize_weights/quantize_weights.h"

namespace hone {
namespace quantize_weights {
namespace {

using quantized_linear::block_rows;
using quantized_linear::ceil_div;
using quantized_linear::packed_bytes;
using quantized_linear::scaled_block;
using quantized_linear::whole_blocks;

constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
constexpr std::string_view scale_dtype_choices[] = {"fp16", "bf16"};
constexpr std::string_view format_choices[] = {"w4a16", "w8a16", "w8a8", "fp8"};
constexpr std::string_view yes_no[] = {"no", "yes"};

constexpr std::int64_t max_elements = std::int64_t{1} << 36;  // so that grids end

constexpr Field fields[] = {
    {"dtype", Field::Kind::choice, "element type of the weight", 0, 2, -1, dtype_choices},
    {"format", Field::Kind::choice, "of the codes: docs/formats.md", 0, 3, -1, format_choices},
    {"group", Field::Kind::extent, "columns that share a scale; 0: all", 0, 128, 0},
    {"zeros", Field::Kind::choice, "codes of w4a16 have zero points, one a group", 0, 1, 0, yes_no},
    {"one_scale", Field::Kind::choice, "one scale for the whole weight, not one a row", 0, 1, 0, yes_no},
    {"search", Field::Kind::choice, "w4a16: the scale of least squared error, not the one that clips nothing",
     0, 1, 1, yes_no},
    {"scale_dtype", Field::Kind::choice, "of the scales of w4a16; the others' are fp32, and this is bf16", 0,
     1, 1, scale_dtype_choices},
    {"in", Field::Kind::extent, "columns of the weight", 1, 262144},
    {"out", Field::Kind::dynamic, "rows of the weight", 1, 1048576},
};

const Variant* const variants[] = {&warps};

Argument tensor(std::string_view name, Role role, Dtype dtype, std::int64_t rows, std::int64_t columns,
                bool present = true) {
    return {.name = name, .role = role, .dtype = dtype, .shape = {1, 1, rows, columns}, .present = present};
}

Argument codes_argument(const WeightProblem& p) {
    if (p.is_packed()) {
        const int bits = p.is_w4() ? 4 : 8;
        return tensor("codes", Role::output, Dtype::int8, whole_blocks(p.out), packed_bytes(1, p.in, bits));
    }
    return tensor("codes", Role::output, p.format == Format::fp8 ? Dtype::fp8_e4m3 : Dtype::int8, p.out,
                  p.in);
}

std::vector<Argument> arguments(const Problem& problem) {
    const WeightProblem p = weight_problem(problem);
    return {
        tensor("weight", Role::input, p.dtype, p.out, p.in),
        codes_argument(p),
        tensor("scales", Role::output, p.scale_dtype, 1, p.scale_count()),
        tensor("zeros", Role::output, Dtype::int8, 1, p.scale_count(), p.zeros),
        {.name = "workspace", .role = Role::workspace},
    };
}

std::vector<ScalarArgument> scalars(const Problem& problem) {
    const WeightProblem p = weight_problem(problem);
    return {{"out", Scalar::of(p.out)}, {"weight_stride", Scalar::of(p.in)}};
}

std::string group_error(const WeightProblem& p) {
    const std::string found = "group is " + std::to_string(p.group) + "; allowed: ";
    const bool is_w4_group = p.group == 32 || p.group == 64 || p.group == 128;
    if (p.is_w4() && p.group != 0 && !is_w4_group) return found + "0, 32, 64, 128 for w4a16";
    if (p.format == Format::fp8 && p.group != 0 && p.group != scaled_block) return found + "0, 128 for fp8";
    if (!p.is_w4() && p.format != Format::fp8 && p.group != 0) return found + "0 for integer codes of 8 bits";
    if (p.group != 0 && p.in % p.group != 0)
        return found + "numbers that divide in, " + std::to_string(p.in) + ", or 0";
    return {};
}

std::string validate(const Problem& problem) {
    const WeightProblem p = weight_problem(problem);
    if (std::string wrong = group_error(p); !wrong.empty()) return wrong;
    if (p.zeros && !p.is_w4()) return "zeros is yes; allowed: no, but for w4a16";
    if (p.one_scale && (p.is_packed() || p.group != 0))
        return "one_scale is yes; allowed: no, but for w8a8 and fp8 with group=0";
    if (!p.is_w4() && problem[6] != 1)
        return "scale_dtype is fp16; allowed: bf16, but for w4a16: other formats' scales are fp32";
    if (p.out > max_elements / p.in) {
        return "in x out is " + std::to_string(p.in) + " x " + std::to_string(p.out) +
               "; allowed: up to 2^36 weights";
    }
    return {};
}

// The reference takes the same steps in the same order: not a bit may differ.
Tolerance tolerance(const Problem&, int) { return {.relative_l2 = 0, .max_abs = 0, .max_rel = 0}; }

// Each trial of a scale takes nine operations a value: a product, two comparisons, two additions that round,
// the product with the scale, the rest, its square, the sum.
Work work(const Problem& problem) {
    const WeightProblem p = weight_problem(problem);
    double bytes = 0;
    for (const Argument& argument : arguments(problem)) {
        if (argument.role != Role::workspace) bytes += static_cast<double>(argument.bytes());
    }
    const double values = static_cast<double>(p.in) * static_cast<double>(p.out);
    return {.bytes = bytes, .flops = 9.0 * static_cast<double>(p.trials()) * values};
}

Plan reference_plan(const Problem& problem) {
    const WeightProblem p = weight_problem(problem);
    const std::int64_t groups = whole_blocks(p.out) * block_rows * p.group_places();
    Plan plan{.launch_count = 2};
    plan.launches[0] = p.is_w4() ? launch("quantize_weights_reference_scales", ceil_div(groups, 64), 64)
                                 : launch("quantize_weights_reference_scales", p.scale_count(), 1024);
    const std::int64_t columns = p.is_packed() ? whole_blocks(p.in) * 64 : p.in;
    const std::int64_t rows = p.is_packed() ? whole_blocks(p.out) * 64 : p.out;
    plan.launches[1] = launch("quantize_weights_reference_codes", rows * ceil_div(columns, 256), 256);
    return plan;
}

}  // namespace
}  // namespace quantize_weights

extern const Family quantize_weights_family;
const Family quantize_weights_family{
    .name = "quantize_weights",
    .summary = "codes of 4 or 8 bits of a weight of 16 or 32 bits, packed, with their scales and zero points",
    .fields = quantize_weights::fields,
    .variants = quantize_weights::variants,
    .validate = quantize_weights::validate,
    .arguments = quantize_weights::arguments,
    .scalars = quantize_weights::scalars,
    .tolerance = quantize_weights::tolerance,
    .work = quantize_weights::work,
    .reference_source = "quantize_weights/reference.cu",
    .reference_plan = quantize_weights::reference_plan,
};

}  // namespace hone
