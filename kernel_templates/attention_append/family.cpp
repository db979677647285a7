#include <algorithm>
#include <numeric>
#include <string>

#include "kernel_templates/attention_append/attention_append.h"
#include "kernel_templates/attention_decode/ring/plan.h"
#include "kernel_templates/attention_decode/variants.h"
#include "kernel_templates/kit/work.h"

namespace hone {

extern const Family attention_decode_family;

namespace attention_append {

using attention_decode::DecodeProblem;

DecodeProblem left_of(const AppendProblem& p) {
    DecodeProblem left;
    left.dtype = p.dtype;
    left.causal = p.window > 0;
    left.window = p.window;
    left.softcap = p.softcap;
    left.lengths = attention_decode::Lengths::yes;
    left.page_size = p.page_size;
    left.heads = p.heads;
    left.kv_heads = p.kv_heads;
    left.head_dim = p.head_dim;
    left.batch = p.batch;
    left.kv_len = p.kv_len;
    left.q_len = 1;
    return left;
}

Problem decode_problem(const Problem& append) {
    const DecodeProblem p = left_of(AppendProblem(append));
    // In the order of the family's fields.
    return {.family = &attention_decode_family,
            .values = {static_cast<std::int64_t>(p.dtype), static_cast<std::int64_t>(p.kv_dtype), p.causal,
                       p.window, p.softcap, p.lse, p.sinks, static_cast<std::int64_t>(p.lengths), p.page_size,
                       p.heads, p.kv_heads, p.head_dim, p.q_tokens, p.batch, p.kv_len, p.q_len}};
}

attention_decode::RingConfig beside_others(const AppendProblem& p, attention_decode::RingConfig c) {
    constexpr std::int64_t most_bytes = 64 * 1024;
    if (c.cluster <= 4) return c;
    const std::int64_t stages = most_bytes / attention_decode::shape(left_of(p), c).stage_bytes();
    // A stage belongs to one warp that computes and to one that copies: where that asks for more stages than
    // the computing warps alone do, the copy engine takes the others' place.
    const std::int64_t both = std::lcm(c.warps, std::max<std::int64_t>(c.producers, 1));
    const bool has_boxes = attention_decode::shape(left_of(p), c).has_boxes();
    if (has_boxes && both > c.warps && stages < both) c.producers = 0;
    const std::int64_t step = std::lcm(c.warps, std::max<std::int64_t>(c.producers, 1));
    while (c.stages > std::max(stages, step)) c.stages -= step;
    return c;
}

namespace {

const Variant* const variants[] = {&ring, &plain};

std::string validate(const Problem& problem) {
    const AppendProblem p(problem);
    if (p.rotary_dim % 2 != 0)
        return "rotary_dim is " + std::to_string(p.rotary_dim) + "; allowed: even numbers";
    if (p.rotary_dim > p.head_dim)
        return "rotary_dim is " + std::to_string(p.rotary_dim) + "; allowed: at most head_dim, " +
               std::to_string(p.head_dim);
    if (p.unit_offset && !p.norm) return "unit_offset is yes; allowed without a norm: no";
    return attention_decode_family.validate(decode_problem(problem));
}

Tolerance tolerance(const Problem& problem, int) {
    return attention_decode_family.tolerance(decode_problem(problem), attention_decode::out);
}

Work work(const Problem& problem) {
    const AppendProblem p(problem);
    Work work = attention_decode_family.work(decode_problem(problem));
    work.bytes += 4.0 * static_cast<double>(p.batch * p.kv_heads * p.head_dim * size_bytes(p.dtype));
    return work;
}

/// The same with a norm's weights as they stand, without a norm, and with whole rotations, which change what
/// a block computes, not how it reads the cache; of that, what is left to attention_decode.
std::optional<Problem> kin(const Problem& problem) {
    const auto plainer = [&problem](const char* field, std::int64_t value) {
        return with(problem, static_cast<std::size_t>(field_index(*problem.family, field)), value);
    };
    const AppendProblem p(problem);
    if (p.unit_offset) return plainer("unit_offset", 0);
    if (p.norm) return plainer("norm", 0);
    if (p.style != RopeStyle::half) return plainer("style", static_cast<std::int64_t>(RopeStyle::half));
    if (p.rotary_dim != p.head_dim) return plainer("rotary_dim", p.head_dim);
    return decode_problem(problem);
}
Candidate from_kin(const Problem& problem, const Candidate& candidate) {
    if (candidate.variant != &attention_decode::ring) return candidate;
    const auto theirs = values_of<attention_decode::RingConfig>(candidate.config);
    return {&ring, config_of(beside_others(AppendProblem(problem), theirs))};
}

constexpr Kernel reference_kernels[] = {{"attention_append_reference", call_args}};

Plan reference_plan(const Problem& problem) {
    const AppendProblem p(problem);
    return plan_of(launch(reference_kernels[0], grid_of(p.batch * p.heads), 256));
}

}  // namespace
}  // namespace attention_append

extern const Family attention_append_family;
const Family attention_append_family = attention_append::declared({
    .device_namespace = "attention_decode",
    .variants = attention_append::variants,
    .validate = attention_append::validate,
    .tolerance = attention_append::tolerance,
    .work = attention_append::work,
    .kin = attention_append::kin,
    .from_kin = attention_append::from_kin,
    .reference_source = "attention_append/reference.cu",
    .reference_kernels = attention_append::reference_kernels,
    .reference_plan = attention_append::reference_plan,
});

}  // namespace hone
