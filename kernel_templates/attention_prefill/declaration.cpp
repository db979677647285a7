// Generated from kernel_templates/attention_prefill/operators.py by `./hone generate`.
#include "kernel_templates/attention_prefill/declaration.h"

#include <cmath>

#include "kernel_templates/attention_prefill/attention_prefill.h"

namespace hone::attention_prefill {

std::vector<Argument> declared_arguments(const Problem& problem) {
    const AttentionProblem p(problem);
    return {
        {.name = "q",
         .dtype = p.dtype,
         .shape = {p.tensors(), p.tensor_tokens(p.q_len), p.heads, p.head_dim}},
        {.name = "k",
         .dtype = p.cache_dtype(),
         .shape = {p.kv_tensors(), p.kv_tensor_tokens(), p.kv_heads, p.head_dim}},
        {.name = "v",
         .dtype = p.cache_dtype(),
         .shape = {p.kv_tensors(), p.kv_tensor_tokens(), p.kv_heads, p.head_dim}},
        {.name = "q_starts",
         .dtype = index_dtype,
         .shape = {1, 1, p.batch + 1, 1},
         .fill = Fill::ramp,
         .fill_scale = static_cast<double>(p.q_len),
         .present = p.packed()},
        {.name = "kv_starts",
         .dtype = index_dtype,
         .shape = {1, 1, p.batch + 1, 1},
         .fill = Fill::ramp,
         .fill_scale = static_cast<double>(p.kv_len),
         .present = p.packs_keys()},
        {.name = "kv_lengths",
         .dtype = index_dtype,
         .shape = {1, 1, p.batch, 1},
         .fill = Fill::ramp,
         .fill_scale = static_cast<double>(-p.tuning_step()),
         .fill_offset = static_cast<double>(p.kv_len),
         .present = p.has_kv_lengths()},
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
         .shape = {p.tensors(), p.tensor_tokens(p.q_len), p.heads, p.head_dim}},
        {.name = "lse",
         .role = Role::output,
         .shape = {p.tensors(), p.heads, p.tensor_tokens(p.q_len), 1},
         .present = p.lse},
        {.name = "workspace", .role = Role::workspace},
    };
}

std::vector<ScalarArgument> declared_scalars(const Problem& problem) {
    const AttentionProblem p(problem);
    return {
        {.name = "batch", .tuning_value = Scalar::of(p.batch)},
        {.name = "q_len", .tuning_value = Scalar::of(p.q_len)},
        {.name = "kv_len", .tuning_value = Scalar::of(p.kv_len)},
        {.name = "q_tokens", .tuning_value = Scalar::of(p.batch * p.q_len)},
        {.name = "kv_tokens", .tuning_value = Scalar::of(p.batch * p.kv_len)},
        {.name = "page_table_stride", .tuning_value = Scalar::of(p.paged() ? p.pages() : 0)},
        {.name = "pool_pages", .tuning_value = Scalar::of(p.paged() ? p.batch * p.pages() : 0)},
        {.name = "least_queries", .tuning_value = Scalar::of(std::int64_t{1})},
        {.name = "q_batch_stride",
         .tuning_value = Scalar::of(p.tensor_tokens(p.q_len) * p.heads * p.head_dim)},
        {.name = "q_token_stride", .tuning_value = Scalar::of(p.heads * p.head_dim)},
        {.name = "q_head_stride", .tuning_value = Scalar::of(p.head_dim)},
        {.name = "k_batch_stride",
         .tuning_value = Scalar::of(p.kv_tensor_tokens() * p.kv_heads * p.head_dim)},
        {.name = "k_token_stride", .tuning_value = Scalar::of(p.kv_heads * p.head_dim)},
        {.name = "k_head_stride", .tuning_value = Scalar::of(p.head_dim)},
        {.name = "v_batch_stride",
         .tuning_value = Scalar::of(p.kv_tensor_tokens() * p.kv_heads * p.head_dim)},
        {.name = "v_token_stride", .tuning_value = Scalar::of(p.kv_heads * p.head_dim)},
        {.name = "v_head_stride", .tuning_value = Scalar::of(p.head_dim)},
        {.name = "out_batch_stride",
         .tuning_value = Scalar::of(p.tensor_tokens(p.q_len) * p.heads * p.head_dim)},
        {.name = "out_token_stride", .tuning_value = Scalar::of(p.heads * p.head_dim)},
        {.name = "out_head_stride", .tuning_value = Scalar::of(p.head_dim)},
        {.name = "scale", .tuning_value = Scalar::of(1.0f / std::sqrt(static_cast<float>(p.head_dim)))},
        {.name = "softcap", .tuning_value = Scalar::of(2.0f)},
    };
}

}  // namespace hone::attention_prefill
