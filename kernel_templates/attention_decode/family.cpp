#include <algorithm>
#include <cmath>
#include <string>

#include "kernel_templates/attention_decode/calibration.h"
#include "kernel_templates/attention_decode/rank.h"
#include "kernel_templates/attention_decode/variants.h"

namespace hone {
namespace attention_decode {
namespace {

constexpr std::int64_t max_elements = std::int64_t{1} << 40;

const Variant* const variants[] = {&ring, &registers, &plain};

std::string validate(const Problem& problem) {
    const DecodeProblem p(problem);
    if (p.heads % p.kv_heads != 0)
        return "heads=" + std::to_string(p.heads) +
               " is no multiple of kv_heads=" + std::to_string(p.kv_heads) +
               "; allowed: query heads that share key-value heads evenly";
    if (p.packed() && p.q_tokens != 1)
        return "lengths=packed with q_tokens=" + std::to_string(p.q_tokens) +
               "; allowed: 1, single tokens among packed queries";
    if (p.q_len > p.q_tokens)
        return "q_len=" + std::to_string(p.q_len) + " is more than q_tokens=" + std::to_string(p.q_tokens) +
               "; allowed: 1 to q_tokens";
    if (p.batch * p.kv_len > max_elements / (p.kv_heads * p.head_dim))
        return "the cache of batch=" + std::to_string(p.batch) + " times kv_len=" + std::to_string(p.kv_len) +
               " has more than 2^40 elements; allowed: at most 2^40";
    // Positions on the line of units are 32-bit numbers (schedule.cuh).
    if (p.batch * ceil_div(p.kv_len, 16) > (std::int64_t{1} << 30) / (p.kv_heads * ceil_div(p.rows(), 4)))
        return "batch=" + std::to_string(p.batch) + " times kv_len=" + std::to_string(p.kv_len) +
               " times key-value heads and groups of rows has more than 2^34 tokens; allowed: at most 2^34";
    return {};
}

// Weights are rounded to the output type before they multiply V, each for itself, as the result is at the
// end. Results are means of V: of tokens seen in number n, with scores of unit variance, they are of size
// sqrt(e / n). Each element may be off by eight of such errors. Float32 sums of weights lose less than the
// approximations of powers of two, 2^-22.
Tolerance tolerance(const Problem& problem, int argument) {
    const DecodeProblem p(problem);
    if (argument == lse) return {.relative_l2 = 1e-4, .max_abs = 1e-3, .max_rel = 1e-4};
    const double relative = p.dtype == Dtype::bf16 ? 4e-3 : p.dtype == Dtype::fp16 ? 6e-4 : 5e-6;
    const std::int64_t least = p.causal ? p.kv_len - p.q_len + 1 : p.kv_len;
    const std::int64_t seen = p.window > 0 ? std::min(p.window, least) : least;
    const double size = std::min(1.0, 1.7 / std::sqrt(static_cast<double>(std::max<std::int64_t>(seen, 1))));
    return {.relative_l2 = relative, .max_abs = 8 * relative * size, .max_rel = 8 * relative};
}

Work work(const Problem& problem) {
    const DecodeProblem p(problem);
    double bytes = cache_bytes(p);
    for (const Argument& argument : declared_arguments(problem)) {
        const bool is_cache = argument.name == "k_cache" || argument.name == "v_cache";
        if (!is_cache && argument.role != Role::workspace) bytes += static_cast<double>(argument.bytes());
    }
    const double products =
        static_cast<double>(p.batch * p.heads * p.q_len) * static_cast<double>(p.tokens_seen() * p.head_dim);
    return {.bytes = bytes, .flops = 4.0 * products};
}

/// Single tokens among packed queries are read as those of a batch are.
std::optional<Problem> not_packed(const Problem& problem) {
    if (!DecodeProblem(problem).packed()) return std::nullopt;
    return with(problem, static_cast<std::size_t>(field_index(*problem.family, "lengths")),
                static_cast<std::int64_t>(Lengths::yes));
}

constexpr Kernel reference_kernels[] = {{"attention_decode_reference", kernel_args}};

Plan reference_plan(const Problem& problem) {
    const DecodeProblem p(problem);
    return plan_of(launch(reference_kernels[0], grid_of(p.batch * p.q_len * p.heads), 256));
}

}  // namespace
}  // namespace attention_decode

extern const Family attention_decode_family;
const Family attention_decode_family = attention_decode::declared({
    .variants = attention_decode::variants,
    .validate = attention_decode::validate,
    .tolerance = attention_decode::tolerance,
    .work = attention_decode::work,
    .calibration = attention_decode::calibration,
    .kin = attention_decode::not_packed,
    .reference_source = "attention_decode/reference.cu",
    .reference_kernels = attention_decode::reference_kernels,
    .reference_plan = attention_decode::reference_plan,
});

}  // namespace hone
