#include <string>

#include "kernel_templates/kit/work.h"
#include "kernel_templates/rope_kv_append/calibration.h"
#include "kernel_templates/rope_kv_append/rope_kv_append.h"
#include "kernel_templates/rope_kv_append/variants.h"

namespace hone {
namespace rope_kv_append {
namespace {

constexpr std::int64_t max_token_heads = (std::int64_t{1} << 31) - 1;  // blocks of a grid

const Variant* const variants[] = {&packets, &plain};

std::string validate(const Problem& problem) {
    const RopeProblem p(problem);
    if (p.rotary_dim % 2 != 0)
        return "rotary_dim is " + std::to_string(p.rotary_dim) + "; allowed: even numbers";
    if (p.rotary_dim > p.head_dim) {
        return "rotary_dim is " + std::to_string(p.rotary_dim) + "; allowed: at most head_dim, " +
               std::to_string(p.head_dim);
    }
    if (p.unit_offset && !p.norm) return "unit_offset is yes; allowed without a norm: no";
    if (p.tokens > max_token_heads / p.all_heads()) {
        return "tokens x (heads + 2 kv_heads) is " + std::to_string(p.tokens) + " x " +
               std::to_string(p.all_heads()) + "; allowed: less than 2^31";
    }
    return {};
}

// One rounding to the result's type, plus what float32 arithmetic may add: a rotated element is a difference
// of two products and may be far smaller than they. Codes may differ by one step where the float32 result
// lies next to the border of two codes. Values that are merely copied have no error.
Tolerance tolerance(const Problem& problem, int argument) {
    const RopeProblem p(problem);
    if (p.quantized() && argument != q_out)
        return {.relative_l2 = 4e-2, .max_abs = 0x1.1p-9, .max_rel = 0.13};
    if (argument == v_cache) return {.relative_l2 = 1e-7, .max_abs = 0, .max_rel = 1e-7};
    switch (p.dtype) {
        case Dtype::bf16: return {.relative_l2 = 3e-3, .max_abs = 1e-5, .max_rel = 0x1.1p-8};
        case Dtype::fp16: return {.relative_l2 = 4e-4, .max_abs = 4e-6, .max_rel = 0x1.1p-11};
        default: return {.relative_l2 = 1e-6, .max_abs = 1e-5, .max_rel = 4e-6};
    }
}

Work work(const Problem& problem) {
    const RopeProblem p(problem);
    const double turned = static_cast<double>(p.tokens * (p.heads + p.kv_heads));
    return {.bytes = bytes_of(declared_arguments(problem)),
            .flops = turned * static_cast<double>(3 * p.rotary_dim + (p.norm ? 4 * p.head_dim : 0))};
}

constexpr Kernel reference_kernels[] = {{"rope_kv_append_reference", call_args}};

Plan reference_plan(const Problem& problem) {
    const RopeProblem p(problem);
    return plan_of(launch(reference_kernels[0], grid_of(p.tokens * p.all_heads()), 128));
}

}  // namespace
}  // namespace rope_kv_append

extern const Family rope_kv_append_family;
const Family rope_kv_append_family = rope_kv_append::declared({
    .variants = rope_kv_append::variants,
    .validate = rope_kv_append::validate,
    .tolerance = rope_kv_append::tolerance,
    .work = rope_kv_append::work,
    .calibration = rope_kv_append::calibration,
    .reference_source = "rope_kv_append/reference.cu",
    .reference_kernels = rope_kv_append::reference_kernels,
    .reference_plan = rope_kv_append::reference_plan,
});

}  // namespace hone
