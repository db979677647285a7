#include <string>

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/kit/work.h"
#include "kernel_templates/quantize_weights/trials.h"
#include "kernel_templates/quantize_weights/variants.h"

namespace hone {
namespace quantize_weights {
namespace {

using quantized_linear::block_rows;
using quantized_linear::scaled_block;
using quantized_linear::whole_blocks;

constexpr std::int64_t max_elements = std::int64_t{1} << 36;  // so that grids end

const Variant* const variants[] = {&warps};

std::string group_error(const WeightProblem& p) {
    const std::string found = "group is " + std::to_string(p.group) + "; allowed: ";
    const bool is_w4_group = p.group == 32 || p.group == 64 || p.group == 128;
    if (p.is_w4() && p.group != 0 && !is_w4_group) return found + "0, 32, 64, 128 for w4a16";
    if (p.format == QuantFormat::fp8 && p.group != 0 && p.group != scaled_block)
        return found + "0, 128 for fp8";
    if (!p.is_w4() && p.format != QuantFormat::fp8 && p.group != 0)
        return found + "0 for integer codes of 8 bits";
    if (p.group != 0 && p.in % p.group != 0)
        return found + "numbers that divide in, " + std::to_string(p.in) + ", or 0";
    return {};
}

std::string validate(const Problem& problem) {
    const WeightProblem p(problem);
    if (std::string wrong = group_error(p); !wrong.empty()) return wrong;
    if (p.zeros && !p.is_w4()) return "zeros is yes; allowed: no, but for w4a16";
    if (p.one_scale && (p.is_packed() || p.group != 0))
        return "one_scale is yes; allowed: no, but for w8a8 and fp8 with group=0";
    if (!p.is_w4() && p.scale_dtype != Dtype::bf16)
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
    const WeightProblem p(problem);
    const double values = static_cast<double>(p.in) * static_cast<double>(p.out);
    return {.bytes = bytes_of(declared_arguments(problem)),
            .flops = 9.0 * static_cast<double>(trials(p)) * values};
}

constexpr Kernel reference_kernels[] = {{"quantize_weights_reference_scales", call_args},
                                        {"quantize_weights_reference_codes", call_args}};

Plan reference_plan(const Problem& problem) {
    const WeightProblem p(problem);
    const std::int64_t groups = whole_blocks(p.out) * block_rows * p.group_places();
    Plan plan{.launch_count = 2};
    plan.launches[0] = p.is_w4() ? launch(reference_kernels[0], grid_of(ceil_div(groups, 64)), 64)
                                 : launch(reference_kernels[0], grid_of(p.scale_count()), 1024);
    const std::int64_t columns = p.is_packed() ? whole_blocks(p.in) * 64 : p.in;
    const std::int64_t rows = p.is_packed() ? whole_blocks(p.out) * 64 : p.out;
    plan.launches[1] = launch(reference_kernels[1], grid_of(rows * ceil_div(columns, 256)), 256);
    return plan;
}

}  // namespace
}  // namespace quantize_weights

extern const Family quantize_weights_family;
const Family quantize_weights_family = quantize_weights::declared({
    .variants = quantize_weights::variants,
    .validate = quantize_weights::validate,
    .tolerance = quantize_weights::tolerance,
    .work = quantize_weights::work,
    .reference_source = "quantize_weights/reference.cu",
    .reference_kernels = quantize_weights::reference_kernels,
    .reference_plan = quantize_weights::reference_plan,
});

}  // namespace hone
