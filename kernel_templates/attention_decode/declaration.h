// What attention_decode declares: fields, pointers and scalars. Generated from
// kernel_templates/attention_decode/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel_templates/enums.h"
#include "kernel_templates/family.h"

namespace hone::attention_decode {

/// Index of each pointer of a call.
enum Pointer : int {
    q,
    k_cache,  ///< every layer has its own, as it has weights
    v_cache,
    kv_lengths,
    q_starts,  ///< first tokens of the sequences, and the end
    page_table,
    k_scale,  ///< scales of codes, which count about as much as other elements when tuning
    v_scale,
    sinks,  ///< logits, beside scores times scale
    out,
    lse,  ///< natural logarithms; [heads, q_rows] where packed
    workspace,
    pointer_count
};
/// Index of each scalar of a call. Strides count elements.
enum CallScalar : int {
    batch,
    kv_len,
    q_len,
    q_rows,  ///< rows of the packed tensor; batch * q_len where it is not packed
    q_batch_stride,
    q_token_stride,
    q_head_stride,
    out_batch_stride,
    out_token_stride,
    out_head_stride,
    cache_stride,  ///< from one sequence, or page, to the next; of k_cache and v_cache, as the next two
    cache_token_stride,
    cache_head_stride,
    page_table_stride,  ///< entries a sequence
    pool_pages,
    scale,    ///< above 0
    softcap,  ///< above 0
    scalar_count
};

/// Choices of the field `lengths`, in order.
enum class Lengths : std::int64_t { no, yes, packed };

inline constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
inline constexpr std::string_view kv_dtype_choices[] = {"same", "fp8_e4m3"};
inline constexpr std::string_view yes_no[] = {"no", "yes"};
inline constexpr std::string_view lengths_choices[] = {"no", "yes", "packed"};

inline constexpr Field fields[] = {
    {.name = "dtype",
     .kind = Field::Kind::choice,
     .meaning = "element type of q and out",
     .min = 0,
     .max = 2,
     .choices = dtype_choices},
    {.name = "kv_dtype",
     .kind = Field::Kind::choice,
     .meaning = "element type of the cache; fp8 has a scale for each head",
     .min = 0,
     .default_value = 0,
     .choices = kv_dtype_choices},
    {.name = "causal",
     .kind = Field::Kind::choice,
     .meaning = "a query sees no later tokens than itself",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "window",
     .kind = Field::Kind::extent,
     .meaning = "tokens that a query sees, its own and earlier ones; 0: all",
     .min = 0,
     .max = std::int64_t{1} << 24,
     .default_value = 0},
    {.name = "softcap",
     .kind = Field::Kind::choice,
     .meaning = "takes softcap * tanh(score / softcap) for a score",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "lse",
     .kind = Field::Kind::choice,
     .meaning = "also writes the logarithm of the sum of e^score",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "sinks",
     .kind = Field::Kind::choice,
     .meaning = "a learned logit a head counts in the sum of exponentials, and has no value",
     .min = 0,
     .default_value = 0,
     .choices = yes_no,
     .quiet_default = true},
    {.name = "lengths",
     .kind = Field::Kind::choice,
     .meaning =
         "whether every sequence has its own length, kept on the device; packed: q and out hold the tokens "
         "of all sequences, too, cut by q_starts: those of a single one are served, the others left alone",
     .min = 0,
     .max = 2,
     .default_value = 0,
     .choices = lengths_choices},
    {.name = "page_size",
     .kind = Field::Kind::extent,
     .meaning = "tokens of a page; 0: the cache is contiguous",
     .min = 0,
     .max = 65536,
     .default_value = 0},
    {.name = "heads", .kind = Field::Kind::extent, .meaning = "query heads", .max = 1024},
    {.name = "kv_heads",
     .kind = Field::Kind::extent,
     .meaning = "heads of the cache, shared by query heads evenly",
     .max = 1024},
    {.name = "head_dim", .kind = Field::Kind::extent, .meaning = "elements of a head", .max = 256},
    {.name = "q_tokens",
     .kind = Field::Kind::extent,
     .meaning = "query tokens a sequence that there is room for",
     .max = 16,
     .default_value = 1},
    {.name = "batch", .kind = Field::Kind::dynamic, .meaning = "sequences", .max = 65536},
    {.name = "kv_len",
     .kind = Field::Kind::dynamic,
     .meaning = "tokens a sequence in the cache, with lengths at most",
     .max = std::int64_t{1} << 24},
    {.name = "q_len",
     .kind = Field::Kind::free,
     .meaning = "query tokens a sequence of this call, the last of its tokens",
     .max = 16,
     .default_as = "q_tokens"},
};

/// A problem's fields by their names.
struct Fields {
    Dtype dtype = Dtype::bf16;
    KvDtype kv_dtype = KvDtype::same;
    bool causal = false;
    std::int64_t window = 0;
    bool softcap = false;
    bool lse = false;
    bool sinks = false;
    Lengths lengths = Lengths::no;
    std::int64_t page_size = 0;
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t q_tokens = 1;
    std::int64_t batch = 0;
    std::int64_t kv_len = 0;
    std::int64_t q_len = 0;
};
[[nodiscard]] inline Fields fields_of(const Problem& problem) {
    return {.dtype = static_cast<Dtype>(problem[0]),
            .kv_dtype = static_cast<KvDtype>(problem[1]),
            .causal = problem[2] != 0,
            .window = problem[3],
            .softcap = problem[4] != 0,
            .lse = problem[5] != 0,
            .sinks = problem[6] != 0,
            .lengths = static_cast<Lengths>(problem[7]),
            .page_size = problem[8],
            .heads = problem[9],
            .kv_heads = problem[10],
            .head_dim = problem[11],
            .q_tokens = problem[12],
            .batch = problem[13],
            .kv_len = problem[14],
            .q_len = problem[15]};
}

/// The whole call, as most kernels take it.
inline constexpr KernelArg call_args[] = {
    pointer_arg(q, "q"),
    pointer_arg(k_cache, "k_cache"),
    pointer_arg(v_cache, "v_cache"),
    pointer_arg(kv_lengths, "kv_lengths"),
    pointer_arg(q_starts, "q_starts"),
    pointer_arg(page_table, "page_table"),
    pointer_arg(k_scale, "k_scale"),
    pointer_arg(v_scale, "v_scale"),
    pointer_arg(sinks, "sinks"),
    pointer_arg(out, "out"),
    pointer_arg(lse, "lse"),
    pointer_arg(workspace, "workspace"),
    scalar_arg(batch, "batch"),
    scalar_arg(kv_len, "kv_len"),
    scalar_arg(q_len, "q_len"),
    scalar_arg(q_rows, "q_rows"),
    scalar_arg(q_batch_stride, "q_batch_stride"),
    scalar_arg(q_token_stride, "q_token_stride"),
    scalar_arg(q_head_stride, "q_head_stride"),
    scalar_arg(out_batch_stride, "out_batch_stride"),
    scalar_arg(out_token_stride, "out_token_stride"),
    scalar_arg(out_head_stride, "out_head_stride"),
    scalar_arg(cache_stride, "cache_stride"),
    scalar_arg(cache_token_stride, "cache_token_stride"),
    scalar_arg(cache_head_stride, "cache_head_stride"),
    scalar_arg(page_table_stride, "page_table_stride"),
    scalar_arg(pool_pages, "pool_pages"),
    float_arg(scale, "scale"),
    float_arg(softcap, "softcap"),
};
/// The scalars that are distances between rows, and whose.
inline constexpr RowStride row_strides[] = {
    {q_batch_stride, q},     {q_token_stride, q},           {q_head_stride, q},
    {out_batch_stride, out}, {out_token_stride, out},       {out_head_stride, out},
    {cache_stride, k_cache}, {cache_token_stride, k_cache}, {cache_head_stride, k_cache},
};

/// The arguments as tuning passes them.
[[nodiscard]] std::vector<Argument> declared_arguments(const Problem& problem);
[[nodiscard]] std::vector<ScalarArgument> declared_scalars(const Problem& problem);

/// Adds what is declared to what is a family's own: variants, rules, tolerance, work, reference.
[[nodiscard]] constexpr Family declared(Family own) {
    own.name = "attention_decode";
    own.summary =
        "softmax(scale * q k^T) v for 1 to 16 query tokens a sequence against a cache of keys and values, "
        "contiguous or in pages";
    own.fields = fields;
    own.call_args = call_args;
    own.row_strides = row_strides;
    own.arguments = declared_arguments;
    own.scalars = declared_scalars;
    return own;
}

}  // namespace hone::attention_decode
