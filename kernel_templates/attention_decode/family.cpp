#include <algorithm>
#include <cmath>

#include "kernel_templates/attention_decode/attention_decode.h"

namespace hone {
namespace attention_decode {
namespace {

constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
constexpr std::string_view kv_dtype_choices[] = {"same", "fp8_e4m3"};
constexpr std::string_view yes_no[] = {"no", "yes"};

constexpr std::int64_t max_tokens = std::int64_t{1} << 24;
constexpr std::int64_t max_elements = std::int64_t{1} << 40;

constexpr Field fields[] = {
    {"dtype", Field::Kind::choice, "element type of q and out", 0, 2, -1, dtype_choices},
    {"kv_dtype", Field::Kind::choice, "of the cache; fp8 has a scale for each head", 0, 1, 0,
     kv_dtype_choices},
    {"causal", Field::Kind::choice, "a query sees no later tokens than itself", 0, 1, 0, yes_no},
    {"window", Field::Kind::extent, "of its own token and earlier ones, those that a query sees; 0: all", 0,
     max_tokens, 0},
    {"softcap", Field::Kind::choice, "takes softcap * tanh(score / softcap) for a score", 0, 1, 0, yes_no},
    {"lse", Field::Kind::choice, "also writes the logarithm of the sum of e^score", 0, 1, 0, yes_no},
    {"lengths", Field::Kind::choice, "every sequence has its own length, kept on the device", 0, 1, 0,
     yes_no},
    {"page_size", Field::Kind::extent, "tokens of a page; 0: the cache is contiguous", 0, 65536, 0},
    {"heads", Field::Kind::extent, "query heads", 1, 1024},
    {"kv_heads", Field::Kind::extent, "heads of the cache, shared by query heads evenly", 1, 1024},
    {"head_dim", Field::Kind::extent, "elements of a head", 1, 256},
    {"q_tokens", Field::Kind::extent, "query tokens a sequence that there is room for", 1, 16, 1},
    {"batch", Field::Kind::dynamic, "sequences", 1, 65536},
    {"kv_len", Field::Kind::dynamic, "tokens a sequence in the cache, with lengths at most", 1, max_tokens},
    {"q_len",
     Field::Kind::free,
     "query tokens a sequence of this call, the last of its tokens",
     1,
     16,
     -1,
     {},
     "q_tokens"},
};

const Variant* const variants[] = {&ring, &registers, &plain};

Argument tensor(std::string_view name, Role role, Dtype dtype, std::array<std::int64_t, 4> shape,
                bool present = true) {
    return {.name = name, .role = role, .dtype = dtype, .shape = shape, .present = present};
}

/// Every layer has its own, as it has weights.
Argument cache(std::string_view name, const DecodeProblem& p) {
    const bool paged = p.page_size > 0;
    return tensor(
        name, Role::weight, p.cache_dtype(),
        {paged ? p.batch * p.pages() : p.batch, paged ? p.page_size : p.kv_len, p.kv_heads, p.head_dim});
}

/// Of codes, so that they count as much as other elements do, more or less.
Argument code_scale(std::string_view name, const DecodeProblem& p) {
    Argument argument = tensor(name, Role::weight, Dtype::fp32, {1, 1, p.kv_heads, 1}, p.fp8_cache);
    argument.fill = Fill::uniform;
    argument.fill_scale = 0.25;
    argument.fill_offset = 0.75;
    return argument;
}

std::vector<Argument> arguments(const Problem& problem) {
    const DecodeProblem p = decode_problem(problem);
    const bool paged = p.page_size > 0;
    Argument lengths = tensor("kv_lengths", Role::input, index_dtype, {1, 1, p.batch, 1}, p.lengths);
    lengths.fill = Fill::constant;
    lengths.fill_offset = static_cast<double>(p.kv_len);
    Argument table =
        tensor("page_table", Role::input, index_dtype, {1, p.batch, paged ? p.pages() : 1, 1}, paged);
    table.fill = Fill::permutation;
    return {tensor("q", Role::input, p.dtype, {p.batch, p.q_len, p.heads, p.head_dim}),
            cache("k_cache", p),
            cache("v_cache", p),
            lengths,
            table,
            code_scale("k_scale", p),
            code_scale("v_scale", p),
            tensor("out", Role::output, p.dtype, {p.batch, p.q_len, p.heads, p.head_dim}),
            tensor("lse", Role::output, Dtype::fp32, {p.batch, p.heads, p.q_len, 1}, p.lse),
            tensor("workspace", Role::workspace, Dtype::fp32, {1, 1, 1, 1})};
}

std::vector<ScalarArgument> scalars(const Problem& problem) {
    const DecodeProblem p = decode_problem(problem);
    const bool paged = p.page_size > 0;
    const Scalar batch_stride = Scalar::of(p.q_len * p.heads * p.head_dim);
    const Scalar token_stride = Scalar::of(p.heads * p.head_dim);
    const Scalar head_stride = Scalar::of(p.head_dim);
    const std::int64_t cache_token = p.kv_heads * p.head_dim;
    return {{"batch", Scalar::of(p.batch)},
            {"kv_len", Scalar::of(p.kv_len)},
            {"q_len", Scalar::of(p.q_len)},
            {"q_batch_stride", batch_stride},
            {"q_token_stride", token_stride},
            {"q_head_stride", head_stride},
            {"out_batch_stride", batch_stride},
            {"out_token_stride", token_stride},
            {"out_head_stride", head_stride},
            {"cache_stride", Scalar::of(cache_token * (paged ? p.page_size : p.kv_len))},
            {"cache_token_stride", Scalar::of(cache_token)},
            {"cache_head_stride", head_stride},
            {"page_table_stride", Scalar::of(paged ? p.pages() : 0)},
            {"pool_pages", Scalar::of(paged ? p.batch * p.pages() : 0)},
            {"scale", Scalar::of(1.0f / std::sqrt(static_cast<float>(p.head_dim))), true},
            {"softcap", Scalar::of(p.softcap ? 30.0f : 0.0f), true}};
}

std::string validate(const Problem& problem) {
    const DecodeProblem p = decode_problem(problem);
    if (p.heads % p.kv_heads != 0)
        return "heads=" + std::to_string(p.heads) +
               " is no multiple of kv_heads=" + std::to_string(p.kv_heads) +
               "; allowed: query heads that share key-value heads evenly";
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
    const DecodeProblem p = decode_problem(problem);
    if (argument == lse) return {.relative_l2 = 1e-4, .max_abs = 1e-3, .max_rel = 1e-4};
    const double relative = p.dtype == Dtype::bf16 ? 4e-3 : p.dtype == Dtype::fp16 ? 6e-4 : 5e-6;
    const std::int64_t least = p.causal ? p.kv_len - p.q_len + 1 : p.kv_len;
    const std::int64_t seen = p.window > 0 ? std::min(p.window, least) : least;
    const double size = std::min(1.0, 1.7 / std::sqrt(static_cast<double>(std::max<std::int64_t>(seen, 1))));
    return {.relative_l2 = relative, .max_abs = 8 * relative * size, .max_rel = 8 * relative};
}

Work work(const Problem& problem) {
    const DecodeProblem p = decode_problem(problem);
    double bytes = p.cache_bytes();
    for (const Argument& argument : arguments(problem)) {
        const bool is_cache = argument.name == "k_cache" || argument.name == "v_cache";
        if (!is_cache && argument.role != Role::workspace) bytes += static_cast<double>(argument.bytes());
    }
    const double products =
        static_cast<double>(p.batch * p.heads * p.q_len) * static_cast<double>(p.tokens_seen() * p.head_dim);
    return {.bytes = bytes, .flops = 4.0 * products};
}

Plan reference_plan(const Problem& problem) {
    const DecodeProblem p = decode_problem(problem);
    Plan plan{.launch_count = 1};
    plan.launches[0] = launch("attention_decode_reference",
                              {static_cast<std::uint32_t>(p.batch * p.q_len * p.heads), 1, 1}, 256);
    return plan;
}

}  // namespace
}  // namespace attention_decode

extern const Family attention_decode_family;
const Family attention_decode_family{
    .name = "attention_decode",
    .summary =
        "softmax(scale * q k^T) v for 1 to 16 query tokens a sequence against a cache of keys and "
        "values, contiguous or in pages",
    .fields = attention_decode::fields,
    .variants = attention_decode::variants,
    .validate = attention_decode::validate,
    .arguments = attention_decode::arguments,
    .scalars = attention_decode::scalars,
    .tolerance = attention_decode::tolerance,
    .work = attention_decode::work,
    .reference_source = "attention_decode/reference.cu",
    .reference_plan = attention_decode::reference_plan,
};

}  // namespace hone
