// Generated from kernel_templates/attention_append/operators.py by `./hone generate`.
#include "kernel_templates/attention_append/declaration.h"

#include <cmath>

#include "kernel_templates/attention_append/attention_append.h"

namespace hone::attention_append {

std::vector<Argument> declared_arguments(const Problem& problem) {
    const AppendProblem p(problem);
    return {
        {.name = "q", .dtype = p.dtype, .shape = {1, p.batch, p.heads, p.head_dim}},
        {.name = "k_cache",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {p.cache_rows(), p.cache_row_tokens(), p.kv_heads, p.head_dim},
         .appended = true},
        {.name = "v_cache",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {p.cache_rows(), p.cache_row_tokens(), p.kv_heads, p.head_dim},
         .appended = true},
        {.name = "k", .dtype = p.dtype, .shape = {1, p.batch, p.kv_heads, p.head_dim}},
        {.name = "v", .dtype = p.dtype, .shape = {1, p.batch, p.kv_heads, p.head_dim}},
        {.name = "kv_lengths",
         .dtype = index_dtype,
         .shape = {1, 1, p.batch, 1},
         .fill = Fill::constant,
         .fill_offset = static_cast<double>(p.kv_len)},
        {.name = "page_table",
         .dtype = index_dtype,
         .shape = {1, p.batch, p.pages(), 1},
         .fill = Fill::permutation,
         .present = p.paged()},
        {.name = "cos",
         .role = Role::weight,
         .shape = {1, 1, p.kv_len, p.angles()},
         .fill = Fill::uniform,
         .present = p.rotary_dim != 0},
        {.name = "sin",
         .role = Role::weight,
         .shape = {1, 1, p.kv_len, p.angles()},
         .fill = Fill::uniform,
         .present = p.rotary_dim != 0},
        {.name = "q_weight",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, 1, 1, p.head_dim},
         .fill_scale = 0.25,
         .fill_offset = 1.0,
         .present = p.norm},
        {.name = "k_weight",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, 1, 1, p.head_dim},
         .fill_scale = 0.25,
         .fill_offset = 1.0,
         .present = p.norm},
        {.name = "out", .role = Role::output, .dtype = p.dtype, .shape = {1, p.batch, p.heads, p.head_dim}},
        {.name = "workspace", .role = Role::workspace},
    };
}

std::vector<ScalarArgument> declared_scalars(const Problem& problem) {
    const AppendProblem p(problem);
    return {
        {.name = "batch", .tuning_value = Scalar::of(p.batch)},
        {.name = "kv_len", .tuning_value = Scalar::of(p.kv_len)},
        {.name = "q_batch_stride", .tuning_value = Scalar::of(p.heads * p.head_dim)},
        {.name = "q_head_stride", .tuning_value = Scalar::of(p.head_dim)},
        {.name = "k_batch_stride", .tuning_value = Scalar::of(p.kv_heads * p.head_dim)},
        {.name = "k_head_stride", .tuning_value = Scalar::of(p.head_dim)},
        {.name = "v_batch_stride", .tuning_value = Scalar::of(p.kv_heads * p.head_dim)},
        {.name = "v_head_stride", .tuning_value = Scalar::of(p.head_dim)},
        {.name = "out_batch_stride", .tuning_value = Scalar::of(p.heads * p.head_dim)},
        {.name = "out_head_stride", .tuning_value = Scalar::of(p.head_dim)},
        {.name = "cache_stride", .tuning_value = Scalar::of(p.cache_row_tokens() * p.kv_heads * p.head_dim)},
        {.name = "cache_token_stride", .tuning_value = Scalar::of(p.kv_heads * p.head_dim)},
        {.name = "cache_head_stride", .tuning_value = Scalar::of(p.head_dim)},
        {.name = "page_table_stride", .tuning_value = Scalar::of(p.paged() ? p.pages() : 0)},
        {.name = "pool_pages", .tuning_value = Scalar::of(p.paged() ? p.batch * p.pages() : 0)},
        {.name = "positions", .tuning_value = Scalar::of(p.kv_len)},
        {.name = "scale", .tuning_value = Scalar::of(1.0f / std::sqrt(static_cast<float>(p.head_dim)))},
        {.name = "softcap", .tuning_value = Scalar::of(p.softcap ? 30.0f : 0.0f)},
        {.name = "epsilon", .tuning_value = Scalar::of(1e-6f)},
    };
}

}  // namespace hone::attention_append
