#include <string>
#include <string_view>

#include "kernel_templates/attention_prefill/calibration.h"
#include "kernel_templates/attention_prefill/rank.h"
#include "kernel_templates/attention_prefill/variants.h"
#include "kernel_templates/kit/work.h"

namespace hone {
namespace attention_prefill {
namespace {

constexpr std::int64_t max_rows = std::int64_t{1} << 33;
/// Of packed queries over pages, of which each sequence has room for a tile more (wgmma/schedule.cuh).
constexpr std::int64_t max_paged_rows = std::int64_t{1} << 32;
constexpr std::int64_t max_elements = std::int64_t{1} << 40;

const Variant* const variants[] = {&wgmma, &wgmma_tf32, &mma, &plain};

std::string too_large(std::string_view what, std::int64_t rows, std::int64_t columns, std::int64_t most) {
    if (rows <= most / columns) return {};
    return std::string(what) + " is " + std::to_string(rows) + " x " + std::to_string(columns) +
           "; allowed: at most " + std::to_string(most);
}

std::string wrong_pages(const AttentionProblem& p) {
    if (p.lengths == Lengths::paged && !p.paged())
        return "page_size=0; allowed with lengths=paged: from 1, the tokens of a page";
    if (p.packs_keys() && p.paged())
        return "page_size=" + std::to_string(p.page_size) +
               "; allowed with lengths=cumulative: 0; lengths=paged has packed queries over pages";
    return {};
}

std::string validate(const Problem& problem) {
    const AttentionProblem p(problem);
    if (p.heads % p.kv_heads != 0) {
        return "heads=" + std::to_string(p.heads) +
               " is no multiple of kv_heads=" + std::to_string(p.kv_heads) +
               ": each head of keys serves as many query heads";
    }
    if (p.window > 0 && !p.causal) return "window needs causal=yes: it ends at the query's own key";
    const std::int64_t most_rows = p.lengths == Lengths::paged ? max_paged_rows : max_rows;
    for (const std::string& error :
         {wrong_pages(p), too_large("batch * heads x q_len", p.slots(), p.q_len, most_rows),
          too_large("tokens x elements of q", p.batch * p.q_len, p.heads * p.head_dim, max_elements),
          too_large("tokens x elements of k", p.kv_tensors() * p.kv_tensor_tokens(), p.kv_heads * p.head_dim,
                    max_elements)}) {
        if (!error.empty()) return error;
    }
    return {};
}

// A weight of a 16-bit type is rounded before the product, and the result once more: both errors are 1.6e-3
// (bf16) and 2e-4 (fp16) of their terms' size on average, and at most 2^-8 and 2^-11 of the largest value
// that a row sees, which for normal numbers is hardly above 6. lse comes of unrounded weights; those of a
// polynomial are off by 7.5e-5.
Tolerance tolerance(const Problem& problem, int argument) {
    const AttentionProblem p(problem);
    if (argument == lse) {
        if (p.dtype == Dtype::fp32) return {.relative_l2 = 5e-6, .max_abs = 5e-5, .max_rel = 1e-5};
        return {.relative_l2 = 2e-4, .max_abs = 1e-3, .max_rel = 2e-4};
    }
    switch (p.dtype) {
        case Dtype::bf16: return {.relative_l2 = 4e-3, .max_abs = 6 * 0x1p-8, .max_rel = 0x1.1p-8};
        case Dtype::fp16: return {.relative_l2 = 6e-4, .max_abs = 6 * 0x1p-11, .max_rel = 0x1.1p-11};
        default: break;
    }
    return {.relative_l2 = 1e-5, .max_abs = 5e-5, .max_rel = 2e-5};
}

Work work(const Problem& problem) {
    const AttentionProblem p(problem);
    const double products = visible_pairs(p) * static_cast<double>(p.slots() * p.head_dim);
    return {.bytes = bytes_of(declared_arguments(problem)), .flops = 4.0 * products};
}

constexpr auto reference_args = later_last(std::to_array(call_args));
constexpr Kernel reference_kernels[] = {{"attention_prefill_reference", reference_args}};

Plan reference_plan(const Problem& problem) {
    const AttentionProblem p(problem);
    constexpr std::int64_t tile = 64;
    return plan_of(launch(reference_kernels[0], grid_of(p.slots() * ceil_div(p.q_len, tile)), 256));
}

}  // namespace
}  // namespace attention_prefill

extern const Family attention_prefill_family;
const Family attention_prefill_family = attention_prefill::declared({
    .variants = attention_prefill::variants,
    .validate = attention_prefill::validate,
    .tolerance = attention_prefill::tolerance,
    .work = attention_prefill::work,
    .calibration = attention_prefill::calibration,
    .reference_source = "attention_prefill/reference.cu",
    .reference_kernels = attention_prefill::reference_kernels,
    .reference_plan = attention_prefill::reference_plan,
});

}  // namespace hone
