// Generated from kernel_templates/attention_decode/operators.py by `./hone generate`.
#include "kernel_templates/attention_decode/declaration.h"

#include <cmath>

#include "kernel_templates/attention_decode/attention_decode.h"

namespace hone::attention_decode {

std::vector<Argument> declared_arguments(const Problem& problem) {
    const DecodeProblem p(problem);
    return {
        {.name = "q", .dtype = p.dtype, .shape = {p.tensors(), p.tensor_tokens(), p.heads, p.head_dim}},
        {.name = "k_cache",
         .role = Role::weight,
         .dtype = p.cache_dtype(),
         .shape = {p.cache_rows(), p.cache_row_tokens(), p.kv_heads, p.head_dim}},
        {.name = "v_cache",
         .role = Role::weight,
         .dtype = p.cache_dtype(),
         .shape = {p.cache_rows(), p.cache_row_tokens(), p.kv_heads, p.head_dim}},
        {.name = "kv_lengths",
         .dtype = index_dtype,
         .shape = {1, 1, p.batch, 1},
         .fill = Fill::constant,
         .fill_offset = static_cast<double>(p.kv_len),
         .present = p.has_lengths()},
        {.name = "q_starts",
         .dtype = index_dtype,
         .shape = {1, 1, p.batch + 1, 1},
         .fill = Fill::ramp,
         .fill_scale = static_cast<double>(1),
         .present = p.packed()},
        {.name = "page_table",
         .dtype = index_dtype,
         .shape = {1, p.batch, p.pages(), 1},
         .fill = Fill::permutation,
         .present = p.paged()},
        {.name = "k_scale",
         .role = Role::weight,
         .shape = {1, 1, p.kv_heads, 1},
         .fill = Fill::uniform,
         .fill_scale = 0.25,
         .fill_offset = 0.75,
         .present = p.fp8_cache()},
        {.name = "v_scale",
         .role = Role::weight,
         .shape = {1, 1, p.kv_heads, 1},
         .fill = Fill::uniform,
         .fill_scale = 0.25,
         .fill_offset = 0.75,
         .present = p.fp8_cache()},
        {.name = "sinks", .role = Role::weight, .shape = {1, 1, p.heads, 1}, .present = p.sinks},
        {.name = "out",
         .role = Role::output,
         .dtype = p.dtype,
         .shape = {p.tensors(), p.tensor_tokens(), p.heads, p.head_dim}},
        {.name = "lse",
         .role = Role::output,
         .shape = {p.tensors(), p.heads, p.tensor_tokens(), 1},
         .present = p.lse},
        {.name = "workspace", .role = Role::workspace},
    };
}

std::vector<ScalarArgument> declared_scalars(const Problem& problem) {
    const DecodeProblem p(problem);
    return {
        {.name = "batch", .tuning_value = Scalar::of(p.batch)},
        {.name = "kv_len", .tuning_value = Scalar::of(p.kv_len)},
        {.name = "q_len", .tuning_value = Scalar::of(p.q_len)},
        {.name = "q_rows", .tuning_value = Scalar::of(p.batch * p.q_len)},
        {.name = "q_batch_stride", .tuning_value = Scalar::of(p.tensor_tokens() * p.heads * p.head_dim)},
        {.name = "q_token_stride", .tuning_value = Scalar::of(p.heads * p.head_dim)},
        {.name = "q_head_stride", .tuning_value = Scalar::of(p.head_dim)},
        {.name = "out_batch_stride", .tuning_value = Scalar::of(p.tensor_tokens() * p.heads * p.head_dim)},
        {.name = "out_token_stride", .tuning_value = Scalar::of(p.heads * p.head_dim)},
        {.name = "out_head_stride", .tuning_value = Scalar::of(p.head_dim)},
        {.name = "cache_stride", .tuning_value = Scalar::of(p.cache_row_tokens() * p.kv_heads * p.head_dim)},
        {.name = "cache_token_stride", .tuning_value = Scalar::of(p.kv_heads * p.head_dim)},
        {.name = "cache_head_stride", .tuning_value = Scalar::of(p.head_dim)},
        {.name = "page_table_stride", .tuning_value = Scalar::of(p.paged() ? p.pages() : 0)},
        {.name = "pool_pages", .tuning_value = Scalar::of(p.paged() ? p.batch * p.pages() : 0)},
        {.name = "scale", .tuning_value = Scalar::of(1.0f / std::sqrt(static_cast<float>(p.head_dim)))},
        {.name = "softcap", .tuning_value = Scalar::of(p.softcap ? 30.0f : 0.0f)},
    };
}

}  // namespace hone::attention_decode
