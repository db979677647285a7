// What rope_kv_append declares: fields, pointers and scalars. Generated from
// kernel_templates/rope_kv_append/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel_templates/enums.h"
#include "kernel_templates/family.h"

namespace hone::rope_kv_append {

/// Index of each pointer of a call.
enum Pointer : int {
    q,
    k,
    v,
    kv_lengths,  ///< [batch], new tokens included; with slots: positions, [tokens]
    slots,
    page_table,  ///< [batch, pages of a sequence]
    cos,         ///< [positions, rotary_dim / 2]
    sin,
    q_weight,
    k_weight,
    k_scale,  ///< such that the largest of some thousand values is near the largest code
    v_scale,
    q_out,
    k_cache,
    v_cache,
    pointer_count
};
/// Index of each scalar of a call. Strides count elements.
enum CallScalar : int {
    tokens,
    q_tokens,
    kv_len,
    q_token_stride,
    q_head_stride,
    k_token_stride,
    k_head_stride,
    v_token_stride,
    v_head_stride,
    q_out_token_stride,
    q_out_head_stride,
    cache_stride,  ///< both caches' distance from one page, or one sequence, to the next
    cache_token_stride,
    cache_head_stride,
    page_table_stride,
    pool_pages,  ///< pages of the pool; sequences of a contiguous cache
    positions,   ///< rows of cos and sin
    epsilon,     ///< the norms'
    scalar_count
};

inline constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
inline constexpr std::string_view kv_dtype_choices[] = {"same", "fp8_e4m3"};
inline constexpr std::string_view style_choices[] = {"half", "interleaved"};
inline constexpr std::string_view yes_no[] = {"no", "yes"};

inline constexpr Field fields[] = {
    {.name = "dtype",
     .kind = Field::Kind::choice,
     .meaning = "element type of q, k, v, the norms' weights and the results",
     .min = 0,
     .max = 2,
     .choices = dtype_choices},
    {.name = "kv_dtype",
     .kind = Field::Kind::choice,
     .meaning = "element type of the cache; fp8_e4m3: codes of value / scale, one scale a head",
     .min = 0,
     .default_value = 0,
     .choices = kv_dtype_choices},
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
    {.name = "slots",
     .kind = Field::Kind::choice,
     .meaning = "no: a sequence's new tokens are its last; yes: a position and a slot for each token",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "page_size",
     .kind = Field::Kind::extent,
     .meaning = "tokens a page of the cache; 0: contiguous",
     .min = 0,
     .max = 65536,
     .default_value = 0},
    {.name = "heads", .kind = Field::Kind::extent, .meaning = "heads of q", .max = 1024},
    {.name = "kv_heads", .kind = Field::Kind::extent, .meaning = "heads of k and v", .max = 1024},
    {.name = "head_dim", .kind = Field::Kind::extent, .meaning = "elements a head", .max = 256},
    {.name = "rotary_dim",
     .kind = Field::Kind::extent,
     .meaning = "leading elements of a head that rotate; 0: none",
     .min = 0,
     .max = 256},
    {.name = "tokens",
     .kind = Field::Kind::dynamic,
     .meaning = "new tokens of a call, of all sequences",
     .max = std::int64_t{1} << 24},
    {.name = "q_tokens",
     .kind = Field::Kind::free,
     .meaning = "new tokens of a sequence, without slots",
     .max = std::int64_t{1} << 24,
     .default_value = 1},
    {.name = "kv_len",
     .kind = Field::Kind::free,
     .meaning = "tokens that the cache has room for, a sequence",
     .max = std::int64_t{1} << 30,
     .default_value = 1},
};

/// A problem's fields by their names.
struct Fields {
    Dtype dtype = Dtype::bf16;
    KvDtype kv_dtype = KvDtype::same;
    RopeStyle style = RopeStyle::half;
    bool norm = false;
    bool unit_offset = false;
    bool slots = false;
    std::int64_t page_size = 0;
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t rotary_dim = 0;
    std::int64_t tokens = 0;
    std::int64_t q_tokens = 1;
    std::int64_t kv_len = 1;
};
[[nodiscard]] inline Fields fields_of(const Problem& problem) {
    return {.dtype = static_cast<Dtype>(problem[0]),
            .kv_dtype = static_cast<KvDtype>(problem[1]),
            .style = static_cast<RopeStyle>(problem[2]),
            .norm = problem[3] != 0,
            .unit_offset = problem[4] != 0,
            .slots = problem[5] != 0,
            .page_size = problem[6],
            .heads = problem[7],
            .kv_heads = problem[8],
            .head_dim = problem[9],
            .rotary_dim = problem[10],
            .tokens = problem[11],
            .q_tokens = problem[12],
            .kv_len = problem[13]};
}

/// The whole call, as most kernels take it.
inline constexpr KernelArg call_args[] = {
    pointer_arg(q, "q"),
    pointer_arg(k, "k"),
    pointer_arg(v, "v"),
    pointer_arg(kv_lengths, "kv_lengths"),
    pointer_arg(slots, "slots"),
    pointer_arg(page_table, "page_table"),
    pointer_arg(cos, "cos"),
    pointer_arg(sin, "sin"),
    pointer_arg(q_weight, "q_weight"),
    pointer_arg(k_weight, "k_weight"),
    pointer_arg(k_scale, "k_scale"),
    pointer_arg(v_scale, "v_scale"),
    pointer_arg(q_out, "q_out"),
    pointer_arg(k_cache, "k_cache"),
    pointer_arg(v_cache, "v_cache"),
    scalar_arg(tokens, "tokens"),
    scalar_arg(q_tokens, "q_tokens"),
    scalar_arg(kv_len, "kv_len"),
    scalar_arg(q_token_stride, "q_token_stride"),
    scalar_arg(q_head_stride, "q_head_stride"),
    scalar_arg(k_token_stride, "k_token_stride"),
    scalar_arg(k_head_stride, "k_head_stride"),
    scalar_arg(v_token_stride, "v_token_stride"),
    scalar_arg(v_head_stride, "v_head_stride"),
    scalar_arg(q_out_token_stride, "q_out_token_stride"),
    scalar_arg(q_out_head_stride, "q_out_head_stride"),
    scalar_arg(cache_stride, "cache_stride"),
    scalar_arg(cache_token_stride, "cache_token_stride"),
    scalar_arg(cache_head_stride, "cache_head_stride"),
    scalar_arg(page_table_stride, "page_table_stride"),
    scalar_arg(pool_pages, "pool_pages"),
    scalar_arg(positions, "positions"),
    float_arg(epsilon, "epsilon"),
};
/// The scalars that are distances between rows, and whose.
inline constexpr RowStride row_strides[] = {
    {q_token_stride, q},          {q_head_stride, q},
    {k_token_stride, k},          {k_head_stride, k},
    {v_token_stride, v},          {v_head_stride, v},
    {q_out_token_stride, q_out},  {q_out_head_stride, q_out},
    {cache_stride, k_cache},      {cache_token_stride, k_cache},
    {cache_head_stride, k_cache},
};

/// The arguments as tuning passes them.
[[nodiscard]] std::vector<Argument> declared_arguments(const Problem& problem);
[[nodiscard]] std::vector<ScalarArgument> declared_scalars(const Problem& problem);

/// Adds what is declared to what is a family's own: variants, rules, tolerance, work, reference.
[[nodiscard]] constexpr Family declared(Family own) {
    own.name = "rope_kv_append";
    own.summary =
        "rotary embedding of q and k, with or without a norm before it, and k and v into the contiguous or "
        "paged cache";
    own.fields = fields;
    own.call_args = call_args;
    own.row_strides = row_strides;
    own.arguments = declared_arguments;
    own.scalars = declared_scalars;
    return own;
}

}  // namespace hone::rope_kv_append
