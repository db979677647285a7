#include <algorithm>

#include "kernel_templates/rope_kv_append/rope_kv_append.h"

namespace hone {
namespace rope_kv_append {
namespace {

constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
constexpr std::string_view kv_dtype_choices[] = {"same", "fp8_e4m3"};
constexpr std::string_view style_choices[] = {"half", "interleaved"};
constexpr std::string_view yes_no[] = {"no", "yes"};

constexpr std::int64_t max_tokens = std::int64_t{1} << 24;  // as far as fills of indices are exact
constexpr std::int64_t max_heads = 1024;
constexpr std::int64_t max_token_heads = (std::int64_t{1} << 31) - 1;  // blocks of a grid

constexpr Field fields[] = {
    {"dtype", Field::Kind::choice, "element type of q, k, v, the norms' weights and the results", 0, 2, -1,
     dtype_choices},
    {"kv_dtype", Field::Kind::choice, "of the cache; fp8_e4m3: codes of value / scale, one scale a head", 0,
     1, 0, kv_dtype_choices},
    {"style", Field::Kind::choice,
     "partners of a rotation: half: elements i and i + rotary_dim / 2; interleaved: neighbours", 0, 1, 0,
     style_choices},
    {"norm", Field::Kind::choice, "an RMSNorm over each head of q and k ahead of the rotation", 0, 1, 0,
     yes_no},
    {"slots", Field::Kind::choice,
     "no: a sequence's new tokens are its last; yes: a position and a slot for each token", 0, 1, 0, yes_no},
    {"page_size", Field::Kind::extent, "tokens a page of the cache; 0: contiguous", 0, 65536, 0},
    {"heads", Field::Kind::extent, "heads of q", 1, max_heads},
    {"kv_heads", Field::Kind::extent, "heads of k and v", 1, max_heads},
    {"head_dim", Field::Kind::extent, "elements a head", 1, 256},
    {"rotary_dim", Field::Kind::extent, "leading elements of a head that rotate; 0: none", 0, 256},
    {"tokens", Field::Kind::dynamic, "new tokens of a call, of all sequences", 1, max_tokens},
    {"q_tokens", Field::Kind::free, "new tokens of a sequence, without slots", 1, max_tokens, 1},
    {"kv_len", Field::Kind::free, "tokens that the cache has room for, a sequence", 1, std::int64_t{1} << 30,
     1},
};

const Variant* const variants[] = {&packets, &plain};

/// When tuning, the cache is just what the new tokens fill, so that every element of it is written. Sequences
/// have q_tokens each if that works out with the tokens and their pages; else there is but one.
struct TuningCache {
    std::int64_t sequences = 1;
    std::int64_t sequence_tokens = 0;
    std::int64_t sequence_pages = 1;
    std::int64_t pages = 1;  ///< or sequences of a contiguous cache

    explicit TuningCache(const RopeProblem& p) : sequence_tokens(p.tokens) {
        const std::int64_t unit = std::max<std::int64_t>(p.page_size, 1);
        if (!p.slots && p.tokens % p.q_tokens == 0 && p.q_tokens % unit == 0) sequence_tokens = p.q_tokens;
        sequences = p.tokens / sequence_tokens;
        if (p.page_size != 0) sequence_pages = ceil_div(sequence_tokens, p.page_size);
        pages = sequences * sequence_pages;
    }
};

Argument rows(std::string_view name, Role role, Dtype dtype, std::int64_t tokens_count,
              std::int64_t heads_count, std::int64_t head_dim) {
    return {.name = name, .role = role, .dtype = dtype, .shape = {1, tokens_count, heads_count, head_dim}};
}

Argument indices(std::string_view name, std::int64_t count, Fill fill, double offset, bool present) {
    return {.name = name,
            .role = Role::input,
            .dtype = index_dtype,
            .shape = {1, 1, count, 1},
            .fill = fill,
            .fill_offset = offset,
            .present = present};
}

/// Pages in any order; but the last page of all, if it is not filled, has to be the pool's last.
Argument page_table_argument(const RopeProblem& p, const TuningCache& cache) {
    const bool filled = p.page_size != 0 && p.tokens % p.page_size == 0;
    return indices("page_table", cache.sequences * cache.sequence_pages,
                   filled ? Fill::permutation : Fill::ramp, 0, p.page_size != 0 && !p.slots);
}

/// Of the table of angles: numbers of their size will do.
Argument angles(std::string_view name, const RopeProblem& p, const TuningCache& cache) {
    return {.name = name,
            .role = Role::weight,
            .dtype = Dtype::fp32,
            .shape = {1, 1, cache.sequence_tokens, std::max<std::int64_t>(p.rotary_dim / 2, 1)},
            .fill = Fill::uniform,
            .present = p.rotary_dim != 0};
}

Argument norm_weight(std::string_view name, const RopeProblem& p) {
    return {.name = name,
            .role = Role::weight,
            .dtype = p.dtype,
            .shape = {1, 1, 1, p.head_dim},
            .fill_scale = 0.25,
            .fill_offset = 1.0,
            .present = p.norm};
}

/// Such that the largest of some thousand values is near the largest code.
Argument cache_scale(std::string_view name, const RopeProblem& p) {
    return {.name = name,
            .role = Role::weight,
            .dtype = Dtype::fp32,
            .shape = {1, 1, p.kv_heads, 1},
            .fill = Fill::uniform,
            .fill_scale = 0.003,
            .fill_offset = 0.012,
            .present = p.quantized};
}

std::vector<Argument> arguments(const Problem& problem) {
    const RopeProblem p = rope_problem(problem);
    const TuningCache cache(p);
    return {
        rows("q", Role::input, p.dtype, p.tokens, p.heads, p.head_dim),
        rows("k", Role::input, p.dtype, p.tokens, p.kv_heads, p.head_dim),
        rows("v", Role::input, p.dtype, p.tokens, p.kv_heads, p.head_dim),
        p.slots ? indices("positions", p.tokens, Fill::ramp, 0, p.rotary_dim != 0)
                : indices("kv_lengths", cache.sequences, Fill::constant,
                          static_cast<double>(cache.sequence_tokens), true),
        indices("slots", p.tokens, Fill::permutation, 0, p.slots),
        page_table_argument(p, cache),
        angles("cos", p, cache),
        angles("sin", p, cache),
        norm_weight("q_weight", p),
        norm_weight("k_weight", p),
        cache_scale("k_scale", p),
        cache_scale("v_scale", p),
        rows("q_out", Role::output, p.dtype, p.tokens, p.heads, p.head_dim),
        rows("k_cache", Role::output, p.cache_dtype(), p.tokens, p.kv_heads, p.head_dim),
        rows("v_cache", Role::output, p.cache_dtype(), p.tokens, p.kv_heads, p.head_dim),
    };
}

std::vector<ScalarArgument> scalars(const Problem& problem) {
    const RopeProblem p = rope_problem(problem);
    const TuningCache cache(p);
    const Scalar head = Scalar::of(p.head_dim);
    const Scalar q_token = Scalar::of(p.heads * p.head_dim);
    const Scalar kv_token = Scalar::of(p.kv_heads * p.head_dim);
    const std::int64_t outer_tokens = p.page_size != 0 ? p.page_size : cache.sequence_tokens;
    return {{"tokens", Scalar::of(p.tokens)},
            {"q_tokens", Scalar::of(cache.sequence_tokens)},
            {"kv_len", Scalar::of(cache.sequence_tokens)},
            {"q_token_stride", q_token},
            {"q_head_stride", head},
            {"k_token_stride", kv_token},
            {"k_head_stride", head},
            {"v_token_stride", kv_token},
            {"v_head_stride", head},
            {"q_out_token_stride", q_token},
            {"q_out_head_stride", head},
            {"cache_stride", Scalar::of(outer_tokens * p.kv_heads * p.head_dim)},
            {"cache_token_stride", kv_token},
            {"cache_head_stride", head},
            {"page_table_stride", Scalar::of(cache.sequence_pages)},
            {"pool_pages", Scalar::of(cache.pages)},
            {"positions", Scalar::of(cache.sequence_tokens)},
            {"epsilon", Scalar::of(1e-6f), true}};
}

std::string validate(const Problem& problem) {
    const RopeProblem p = rope_problem(problem);
    if (p.rotary_dim % 2 != 0)
        return "rotary_dim is " + std::to_string(p.rotary_dim) + "; allowed: even numbers";
    if (p.rotary_dim > p.head_dim) {
        return "rotary_dim is " + std::to_string(p.rotary_dim) + "; allowed: at most head_dim, " +
               std::to_string(p.head_dim);
    }
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
    const RopeProblem p = rope_problem(problem);
    if (p.quantized && argument != q_out) return {.relative_l2 = 4e-2, .max_abs = 0x1.1p-9, .max_rel = 0.13};
    if (argument == v_cache) return {.relative_l2 = 1e-7, .max_abs = 0, .max_rel = 1e-7};
    switch (p.dtype) {
        case Dtype::bf16: return {.relative_l2 = 3e-3, .max_abs = 1e-5, .max_rel = 0x1.1p-8};
        case Dtype::fp16: return {.relative_l2 = 4e-4, .max_abs = 4e-6, .max_rel = 0x1.1p-11};
        default: return {.relative_l2 = 1e-6, .max_abs = 1e-5, .max_rel = 4e-6};
    }
}

Work work(const Problem& problem) {
    double bytes = 0;
    for (const Argument& argument : arguments(problem)) bytes += static_cast<double>(argument.bytes());
    const RopeProblem p = rope_problem(problem);
    const double turned = static_cast<double>(p.tokens * (p.heads + p.kv_heads));
    return {.bytes = bytes,
            .flops = turned * static_cast<double>(3 * p.rotary_dim + (p.norm ? 4 * p.head_dim : 0))};
}

Plan reference_plan(const Problem& problem) {
    const RopeProblem p = rope_problem(problem);
    return single_launch("rope_kv_append_reference", p.tokens * p.all_heads(), 128, false);
}

}  // namespace
}  // namespace rope_kv_append

extern const Family rope_kv_append_family;
const Family rope_kv_append_family{
    .name = "rope_kv_append",
    .summary =
        "rotary embedding of q and k, with or without a norm before it, and k and v into the contiguous or "
        "paged cache",
    .fields = rope_kv_append::fields,
    .variants = rope_kv_append::variants,
    .validate = rope_kv_append::validate,
    .arguments = rope_kv_append::arguments,
    .scalars = rope_kv_append::scalars,
    .tolerance = rope_kv_append::tolerance,
    .work = rope_kv_append::work,
    .reference_source = "rope_kv_append/reference.cu",
    .reference_plan = rope_kv_append::reference_plan,
};

}  // namespace hone
