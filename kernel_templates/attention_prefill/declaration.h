// What attention_prefill declares: fields, pointers and scalars. Generated from
// kernel_templates/attention_prefill/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel_templates/enums.h"
#include "kernel_templates/family.h"

namespace hone::attention_prefill {

/// Index of each pointer of a call.
enum Pointer : int {
    q,
    k,
    v,
    q_starts,  ///< first tokens of the sequences, and the end
    kv_starts,
    kv_lengths,
    page_table,
    k_scale,  ///< scales of codes, which count about as much as other elements when tuning
    v_scale,
    sinks,  ///< logits, beside scores times scale
    out,
    lse,  ///< natural logarithms; [heads, q_tokens] where packed
    workspace,
    pointer_count
};
/// Index of each scalar of a call. Strides count elements.
enum CallScalar : int {
    batch,
    q_len,
    kv_len,
    q_tokens,  ///< rows of the packed tensor; batch * q_len where it is not packed
    kv_tokens,
    page_table_stride,  ///< entries a sequence
    pool_pages,
    least_queries,  ///< sequences with fewer are left to another kernel, where queries are packed over pages
    q_batch_stride,
    q_token_stride,
    q_head_stride,
    k_batch_stride,
    k_token_stride,
    k_head_stride,
    v_batch_stride,
    v_token_stride,
    v_head_stride,
    out_batch_stride,
    out_token_stride,
    out_head_stride,
    scale,    ///< positive
    softcap,  ///< positive; small when tuning, so that it bends ordinary scores
    scalar_count
};

/// Choices of the field `lengths`, in order.
enum class Lengths : std::int64_t { none, kv, cumulative, paged };

inline constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
inline constexpr std::string_view yes_no[] = {"no", "yes"};
inline constexpr std::string_view lengths_choices[] = {"none", "kv", "cumulative", "paged"};
inline constexpr std::string_view kv_dtype_choices[] = {"same", "fp8_e4m3"};

inline constexpr Field fields[] = {
    {.name = "dtype",
     .kind = Field::Kind::choice,
     .meaning = "element type of q, k, v and out",
     .min = 0,
     .max = 2,
     .choices = dtype_choices},
    {.name = "causal",
     .kind = Field::Kind::choice,
     .meaning = "query i sees no key behind i + kv_len - q_len",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "window",
     .kind = Field::Kind::extent,
     .meaning = "keys that a query sees at most, its own the last; 0: all",
     .min = 0,
     .max = std::int64_t{1} << 24,
     .default_value = 0},
    {.name = "softcap",
     .kind = Field::Kind::choice,
     .meaning = "scores s become softcap * tanh(s / softcap)",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "lse",
     .kind = Field::Kind::choice,
     .meaning = "also writes the logarithm of a row's sum of exponentials",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "lengths",
     .kind = Field::Kind::choice,
     .meaning =
         "how long sequences are: all the same, kv_lengths[batch], packed tensors with q_starts and "
         "kv_starts, or packed queries with q_starts over pages with kv_lengths",
     .min = 0,
     .max = 3,
     .default_value = 0,
     .choices = lengths_choices},
    {.name = "page_size",
     .kind = Field::Kind::extent,
     .meaning = "tokens of a page of k and v; 0: they do not come in pages",
     .min = 0,
     .max = 65536,
     .default_value = 0,
     .quiet_default = true},
    {.name = "kv_dtype",
     .kind = Field::Kind::choice,
     .meaning = "element type of k and v; fp8 has a scale for each head",
     .min = 0,
     .default_value = 0,
     .choices = kv_dtype_choices,
     .quiet_default = true},
    {.name = "sinks",
     .kind = Field::Kind::choice,
     .meaning = "a learned logit a head counts in the sum of exponentials, and has no value",
     .min = 0,
     .default_value = 0,
     .choices = yes_no,
     .quiet_default = true},
    {.name = "heads", .kind = Field::Kind::extent, .meaning = "heads of q and out", .max = 1024},
    {.name = "kv_heads", .kind = Field::Kind::extent, .meaning = "heads of k and v", .max = 1024},
    {.name = "head_dim", .kind = Field::Kind::extent, .meaning = "elements of a row", .max = 256},
    {.name = "batch", .kind = Field::Kind::dynamic, .meaning = "sequences", .max = 65536},
    {.name = "q_len",
     .kind = Field::Kind::dynamic,
     .meaning = "queries of the longest sequence",
     .max = std::int64_t{1} << 24},
    {.name = "kv_len",
     .kind = Field::Kind::free,
     .meaning = "keys of the longest sequence",
     .max = std::int64_t{1} << 24,
     .default_as = "q_len"},
};

/// A problem's fields by their names.
struct Fields {
    Dtype dtype = Dtype::bf16;
    bool causal = false;
    std::int64_t window = 0;
    bool softcap = false;
    bool lse = false;
    Lengths lengths = Lengths::none;
    std::int64_t page_size = 0;
    KvDtype kv_dtype = KvDtype::same;
    bool sinks = false;
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t batch = 0;
    std::int64_t q_len = 0;
    std::int64_t kv_len = 0;
};
[[nodiscard]] inline Fields fields_of(const Problem& problem) {
    return {.dtype = static_cast<Dtype>(problem[0]),
            .causal = problem[1] != 0,
            .window = problem[2],
            .softcap = problem[3] != 0,
            .lse = problem[4] != 0,
            .lengths = static_cast<Lengths>(problem[5]),
            .page_size = problem[6],
            .kv_dtype = static_cast<KvDtype>(problem[7]),
            .sinks = problem[8] != 0,
            .heads = problem[9],
            .kv_heads = problem[10],
            .head_dim = problem[11],
            .batch = problem[12],
            .q_len = problem[13],
            .kv_len = problem[14]};
}

/// The whole call, as most kernels take it.
inline constexpr KernelArg call_args[] = {
    pointer_arg(q, "q"),
    pointer_arg(k, "k"),
    pointer_arg(v, "v"),
    pointer_arg(q_starts, "q_starts"),
    pointer_arg(kv_starts, "kv_starts"),
    pointer_arg(kv_lengths, "kv_lengths"),
    pointer_arg(page_table, "page_table"),
    pointer_arg(k_scale, "k_scale"),
    pointer_arg(v_scale, "v_scale"),
    pointer_arg(sinks, "sinks"),
    pointer_arg(out, "out"),
    pointer_arg(lse, "lse"),
    pointer_arg(workspace, "workspace"),
    narrow_arg(batch, "batch"),
    narrow_arg(q_len, "q_len"),
    narrow_arg(kv_len, "kv_len"),
    scalar_arg(q_tokens, "q_tokens"),
    scalar_arg(kv_tokens, "kv_tokens"),
    scalar_arg(page_table_stride, "page_table_stride"),
    scalar_arg(pool_pages, "pool_pages"),
    narrow_arg(least_queries, "least_queries"),
    scalar_arg(q_batch_stride, "q_batch_stride"),
    scalar_arg(q_token_stride, "q_token_stride"),
    scalar_arg(q_head_stride, "q_head_stride"),
    scalar_arg(k_batch_stride, "k_batch_stride"),
    scalar_arg(k_token_stride, "k_token_stride"),
    scalar_arg(k_head_stride, "k_head_stride"),
    scalar_arg(v_batch_stride, "v_batch_stride"),
    scalar_arg(v_token_stride, "v_token_stride"),
    scalar_arg(v_head_stride, "v_head_stride"),
    scalar_arg(out_batch_stride, "out_batch_stride"),
    scalar_arg(out_token_stride, "out_token_stride"),
    scalar_arg(out_head_stride, "out_head_stride"),
    float_arg(scale, "scale"),
    float_arg(softcap, "softcap"),
};
/// The scalars that are distances between rows, and whose.
inline constexpr RowStride row_strides[] = {
    {q_batch_stride, q}, {q_token_stride, q},     {q_head_stride, q},      {k_batch_stride, k},
    {k_token_stride, k}, {k_head_stride, k},      {v_batch_stride, v},     {v_token_stride, v},
    {v_head_stride, v},  {out_batch_stride, out}, {out_token_stride, out}, {out_head_stride, out},
};

/// The arguments as tuning passes them.
[[nodiscard]] std::vector<Argument> declared_arguments(const Problem& problem);
[[nodiscard]] std::vector<ScalarArgument> declared_scalars(const Problem& problem);

/// Adds what is declared to what is a family's own: variants, rules, tolerance, work, reference.
[[nodiscard]] constexpr Family declared(Family own) {
    own.name = "attention_prefill";
    own.summary = "softmax(scale * q k^T + mask) v for many queries a sequence, without a matrix of scores";
    own.fields = fields;
    own.call_args = call_args;
    own.row_strides = row_strides;
    own.arguments = declared_arguments;
    own.scalars = declared_scalars;
    return own;
}

}  // namespace hone::attention_prefill
