// What attention_append declares: fields, pointers and scalars. Generated from
// kernel_templates/attention_append/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel_templates/enums.h"
#include "kernel_templates/family.h"

namespace hone::attention_append {

/// Index of each pointer of a call.
enum Pointer : int {
    q,
    k_cache,  ///< the new token's row is written
    v_cache,
    k,
    v,
    kv_lengths,
    page_table,
    cos,  ///< [positions, rotary_dim / 2]
    sin,
    q_weight,
    k_weight,
    out,
    workspace,
    pointer_count
};
/// Index of each scalar of a call. Strides count elements.
enum CallScalar : int {
    batch,
    kv_len,
    q_batch_stride,
    q_head_stride,
    k_batch_stride,
    k_head_stride,
    v_batch_stride,
    v_head_stride,
    out_batch_stride,
    out_head_stride,
    cache_stride,  ///< from one sequence, or page, to the next; of k_cache and v_cache, as the next two
    cache_token_stride,
    cache_head_stride,
    page_table_stride,  ///< entries a sequence
    pool_pages,
    positions,  ///< rows of cos and sin
    scale,      ///< above 0
    softcap,    ///< above 0
    epsilon,    ///< the norms'
    scalar_count
};

inline constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
inline constexpr std::string_view style_choices[] = {"half", "interleaved"};
inline constexpr std::string_view yes_no[] = {"no", "yes"};

inline constexpr Field fields[] = {
    {.name = "dtype",
     .kind = Field::Kind::choice,
     .meaning = "element type of every tensor but the table",
     .min = 0,
     .max = 2,
     .choices = dtype_choices},
    {.name = "style",
     .kind = Field::Kind::choice,
     .meaning = "partners of a rotation: half: elements i and i + rotary_dim / 2; interleaved: neighbours",
     .min = 0,
     .default_value = 0,
     .choices = style_choices},
    {.name = "norm",
     .kind = Field::Kind::choice,
     .meaning = "an RMSNorm over each head of q and k ahead of the rotation",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "unit_offset",
     .kind = Field::Kind::choice,
     .meaning = "adds 1 to the norms' weights, in fp32",
     .min = 0,
     .default_value = 0,
     .choices = yes_no,
     .quiet_default = true},
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
    {.name = "rotary_dim",
     .kind = Field::Kind::extent,
     .meaning = "leading elements of a head that rotate; 0: none",
     .min = 0,
     .max = 256},
    {.name = "batch", .kind = Field::Kind::dynamic, .meaning = "sequences", .max = 65536},
    {.name = "kv_len",
     .kind = Field::Kind::dynamic,
     .meaning = "tokens a sequence in the cache, at most, the new one included",
     .max = std::int64_t{1} << 24},
};

/// A problem's fields by their names.
struct Fields {
    Dtype dtype = Dtype::bf16;
    RopeStyle style = RopeStyle::half;
    bool norm = false;
    bool unit_offset = false;
    std::int64_t window = 0;
    bool softcap = false;
    std::int64_t page_size = 0;
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t rotary_dim = 0;
    std::int64_t batch = 0;
    std::int64_t kv_len = 0;
};
[[nodiscard]] inline Fields fields_of(const Problem& problem) {
    return {.dtype = static_cast<Dtype>(problem[0]),
            .style = static_cast<RopeStyle>(problem[1]),
            .norm = problem[2] != 0,
            .unit_offset = problem[3] != 0,
            .window = problem[4],
            .softcap = problem[5] != 0,
            .page_size = problem[6],
            .heads = problem[7],
            .kv_heads = problem[8],
            .head_dim = problem[9],
            .rotary_dim = problem[10],
            .batch = problem[11],
            .kv_len = problem[12]};
}

/// The whole call, as most kernels take it.
inline constexpr KernelArg call_args[] = {
    pointer_arg(q, "q"),
    pointer_arg(k_cache, "k_cache"),
    pointer_arg(v_cache, "v_cache"),
    pointer_arg(k, "k"),
    pointer_arg(v, "v"),
    pointer_arg(kv_lengths, "kv_lengths"),
    pointer_arg(page_table, "page_table"),
    pointer_arg(cos, "cos"),
    pointer_arg(sin, "sin"),
    pointer_arg(q_weight, "q_weight"),
    pointer_arg(k_weight, "k_weight"),
    pointer_arg(out, "out"),
    pointer_arg(workspace, "workspace"),
    scalar_arg(batch, "batch"),
    scalar_arg(kv_len, "kv_len"),
    scalar_arg(q_batch_stride, "q_batch_stride"),
    scalar_arg(q_head_stride, "q_head_stride"),
    scalar_arg(k_batch_stride, "k_batch_stride"),
    scalar_arg(k_head_stride, "k_head_stride"),
    scalar_arg(v_batch_stride, "v_batch_stride"),
    scalar_arg(v_head_stride, "v_head_stride"),
    scalar_arg(out_batch_stride, "out_batch_stride"),
    scalar_arg(out_head_stride, "out_head_stride"),
    scalar_arg(cache_stride, "cache_stride"),
    scalar_arg(cache_token_stride, "cache_token_stride"),
    scalar_arg(cache_head_stride, "cache_head_stride"),
    scalar_arg(page_table_stride, "page_table_stride"),
    scalar_arg(pool_pages, "pool_pages"),
    scalar_arg(positions, "positions"),
    float_arg(scale, "scale"),
    float_arg(softcap, "softcap"),
    float_arg(epsilon, "epsilon"),
};
/// The scalars that are distances between rows, and whose.
inline constexpr RowStride row_strides[] = {
    {q_batch_stride, q},          {q_head_stride, q},
    {k_batch_stride, k},          {k_head_stride, k},
    {v_batch_stride, v},          {v_head_stride, v},
    {out_batch_stride, out},      {out_head_stride, out},
    {cache_stride, k_cache},      {cache_token_stride, k_cache},
    {cache_head_stride, k_cache},
};

/// The arguments as tuning passes them.
[[nodiscard]] std::vector<Argument> declared_arguments(const Problem& problem);
[[nodiscard]] std::vector<ScalarArgument> declared_scalars(const Problem& problem);

/// Adds what is declared to what is a family's own: variants, rules, tolerance, work, reference.
[[nodiscard]] constexpr Family declared(Family own) {
    own.name = "attention_append";
    own.summary =
        "rotation and append of a new token's query, key and value, and attention of that query over the "
        "cache, for one token a sequence";
    own.fields = fields;
    own.call_args = call_args;
    own.row_strides = row_strides;
    own.arguments = declared_arguments;
    own.scalars = declared_scalars;
    return own;
}

}  // namespace hone::attention_append
