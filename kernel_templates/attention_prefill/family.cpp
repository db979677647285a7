#include <algorithm>
#include <cmath>

#include "kernel_templates/attention_prefill/attention_prefill.h"

namespace hone {
namespace attention_prefill {
namespace {

constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
constexpr std::string_view yes_no[] = {"no", "yes"};
constexpr std::string_view lengths_choices[] = {"none", "kv", "cumulative"};

constexpr std::int64_t max_tokens = std::int64_t{1} << 24;
constexpr std::int64_t max_rows = std::int64_t{1} << 33;
constexpr std::int64_t max_elements = std::int64_t{1} << 40;

constexpr Field fields[] = {
    {"dtype", Field::Kind::choice, "element type of q, k, v and out", 0, 2, -1, dtype_choices},
    {"causal", Field::Kind::choice, "query i sees no key behind i + kv_len - q_len", 0, 1, 0, yes_no},
    {"window", Field::Kind::extent, "keys that a query sees at most, its own the last; 0: all", 0, max_tokens,
     0},
    {"softcap", Field::Kind::choice, "scores s become softcap * tanh(s / softcap)", 0, 1, 0, yes_no},
    {"lse", Field::Kind::choice, "also writes the logarithm of a row's sum of exponentials", 0, 1, 0, yes_no},
    {"lengths", Field::Kind::choice,
     "of the sequences: all the same, kv_lengths[batch], or packed tensors with q_starts and kv_starts", 0, 2,
     0, lengths_choices},
    {"heads", Field::Kind::extent, "heads of q and out", 1, 1024},
    {"kv_heads", Field::Kind::extent, "heads of k and v", 1, 1024},
    {"head_dim", Field::Kind::extent, "elements of a row", 1, 256},
    {"batch", Field::Kind::dynamic, "sequences", 1, 65536},
    {"q_len", Field::Kind::dynamic, "queries of the longest sequence", 1, max_tokens},
    {"kv_len", Field::Kind::free, "keys of the longest sequence", 1, max_tokens, -1, {}, "q_len"},
};

const Variant* const variants[] = {&wgmma, &wgmma_tf32, &mma, &plain};

/// What tensors look like when tuning: contiguous, [batch, tokens, heads, head_dim]; packed ones have one
/// sequence behind the other.
Argument tensor(std::string_view name, Role role, const AttentionProblem& p, std::int64_t tokens,
                std::int64_t heads) {
    return {.name = name,
            .role = role,
            .dtype = p.dtype,
            .shape = p.packed() ? std::array<std::int64_t, 4>{1, p.batch * tokens, heads, p.head_dim}
                                : std::array<std::int64_t, 4>{p.batch, tokens, heads, p.head_dim}};
}

/// offset, offset + step, ...
Argument indices(std::string_view name, std::int64_t count, std::int64_t offset, std::int64_t step,
                 bool present) {
    return {.name = name,
            .dtype = index_dtype,
            .shape = {1, 1, count, 1},
            .fill = Fill::ramp,
            .fill_scale = static_cast<double>(step),
            .fill_offset = static_cast<double>(offset),
            .present = present};
}

std::vector<Argument> arguments(const Problem& problem) {
    const AttentionProblem p = attention_problem(problem);
    // From kv_len down, but by no more than a half and not below q_len.
    const std::int64_t shorter = (p.kv_len - std::min(p.q_len, p.kv_len)) / 2 / p.batch;
    Argument row_sums{.name = "lse", .role = Role::output, .shape = {p.batch, p.heads, p.q_len, 1}};
    if (p.packed()) row_sums.shape = {1, p.heads, p.batch * p.q_len, 1};
    row_sums.present = p.lse;
    return {tensor("q", Role::input, p, p.q_len, p.heads),
            tensor("k", Role::input, p, p.kv_len, p.kv_heads),
            tensor("v", Role::input, p, p.kv_len, p.kv_heads),
            indices("q_starts", p.batch + 1, 0, p.q_len, p.packed()),
            indices("kv_starts", p.batch + 1, 0, p.kv_len, p.packed()),
            indices("kv_lengths", p.batch, p.kv_len, -shorter, p.lengths == Lengths::kv),
            tensor("out", Role::output, p, p.q_len, p.heads),
            row_sums,
            {.name = "workspace", .role = Role::workspace}};
}

std::vector<ScalarArgument> scalars(const Problem& problem) {
    const AttentionProblem p = attention_problem(problem);
    const auto number = [](std::string_view name, std::int64_t value) {
        return ScalarArgument{name, Scalar::of(value)};
    };
    const std::int64_t q_row = p.heads * p.head_dim;
    const std::int64_t kv_row = p.kv_heads * p.head_dim;
    const float scale = 1.0f / std::sqrt(static_cast<float>(p.head_dim));
    return {number("batch", p.batch),
            number("q_len", p.q_len),
            number("kv_len", p.kv_len),
            number("q_tokens", p.batch * p.q_len),
            number("kv_tokens", p.batch * p.kv_len),
            number("q_batch_stride", p.q_len * q_row),
            number("q_token_stride", q_row),
            number("q_head_stride", p.head_dim),
            number("k_batch_stride", p.kv_len * kv_row),
            number("k_token_stride", kv_row),
            number("k_head_stride", p.head_dim),
            number("v_batch_stride", p.kv_len * kv_row),
            number("v_token_stride", kv_row),
            number("v_head_stride", p.head_dim),
            number("out_batch_stride", p.q_len * q_row),
            number("out_token_stride", q_row),
            number("out_head_stride", p.head_dim),
            {"scale", Scalar::of(scale), true},
            {"softcap", Scalar::of(2.0f), true}};  // small, so that it bends ordinary scores
}

std::string too_large(std::string_view what, std::int64_t rows, std::int64_t columns, std::int64_t most) {
    if (rows <= most / columns) return {};
    return std::string(what) + " is " + std::to_string(rows) + " x " + std::to_string(columns) +
           "; allowed: at most " + std::to_string(most);
}

std::string validate(const Problem& problem) {
    const AttentionProblem p = attention_problem(problem);
    if (p.heads % p.kv_heads != 0) {
        return "heads=" + std::to_string(p.heads) +
               " is no multiple of kv_heads=" + std::to_string(p.kv_heads) +
               ": each head of keys serves as many query heads";
    }
    if (p.window > 0 && !p.causal) return "window needs causal=yes: it ends at the query's own key";
    for (const std::string& error :
         {too_large("batch * heads x q_len", p.slots(), p.q_len, max_rows),
          too_large("tokens x elements of q", p.batch * p.q_len, p.heads * p.head_dim, max_elements),
          too_large("tokens x elements of k", p.batch * p.kv_len, p.kv_heads * p.head_dim, max_elements)}) {
        if (!error.empty()) return error;
    }
    return {};
}

// Of 16-bit types a weight is rounded before the product, and the result once more: both errors are 1.6e-3
// (bf16) and 2e-4 (fp16) of their terms' size on average, and at most 2^-8 and 2^-11 of the largest value
// that a row sees, which for normal numbers is hardly above 6. lse comes of unrounded weights; those of a
// polynomial are off by 7.5e-5.
Tolerance tolerance(const Problem& problem, int argument) {
    const AttentionProblem p = attention_problem(problem);
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
    double bytes = 0;
    for (const Argument& argument : arguments(problem)) {
        if (argument.role != Role::workspace) bytes += static_cast<double>(argument.bytes());
    }
    return {.bytes = bytes, .flops = attention_problem(problem).flops()};
}

Plan reference_plan(const Problem& problem) {
    const AttentionProblem p = attention_problem(problem);
    constexpr std::int64_t tile = 64;
    Plan plan{.launch_count = 1};
    const std::int64_t tiles = p.slots() * ceil_div(p.q_len, tile);
    plan.launches[0] = launch("attention_prefill_reference", {static_cast<std::uint32_t>(tiles), 1, 1}, 256);
    return plan;
}

}  // namespace

}  // namespace attention_prefill

extern const Family attention_prefill_family;
const Family attention_prefill_family{
    .name = "attention_prefill",
    .summary = "softmax(scale * q k^T + mask) v for many queries a sequence, without a matrix of scores",
    .fields = attention_prefill::fields,
    .variants = attention_prefill::variants,
    .validate = attention_prefill::validate,
    .arguments = attention_prefill::arguments,
    .scalars = attention_prefill::scalars,
    .tolerance = attention_prefill::tolerance,
    .work = attention_prefill::work,
    .reference_source = "attention_prefill/reference.cu",
    .reference_plan = attention_prefill::reference_plan,
};

}  // namespace hone
