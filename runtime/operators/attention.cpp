// Attention: its problems. Generated from kernel_templates/attention_prefill/operators.py by `./hone
// generate`.
#include "runtime/operators/attention.h"

#include "runtime/dispatch/public_error.h"
#include "runtime/operators/attention_prepared.h"
#include "runtime/operators/describe_problem.h"
#include "runtime/operators/entry.h"

namespace hone {
namespace runtime {

Problem decode_problem(const Attention& description, std::int64_t q_tokens) {
    return describe_problem(
        "attention_decode",
        {{"dtype", dtype_name(description.dtype)},
         {"kv_dtype", word(description.kv_dtype)},
         {"causal", yes_no(description.causal)},
         {"window", description.window},
         {"softcap", yes_no(description.softcap)},
         {"lse", yes_no(description.lse)},
         {"sinks", yes_no(description.sinks)},
         {"lengths", decode_lengths_of(description)},
         {"page_size", description.page_size},
         {"heads", description.heads},
         {"kv_heads", description.kv_heads},
         {"head_dim", description.head_dim},
         {"q_tokens", q_tokens}},
        {{"max_batch", description.max_batch}, {"max_kv_len", description.max_kv_len}, {"q_len", q_tokens}});
}

Problem prefill_problem(const Attention& description) {
    return describe_problem("attention_prefill",
                            {{"dtype", dtype_name(description.dtype)},
                             {"causal", yes_no(description.causal)},
                             {"window", description.window},
                             {"softcap", yes_no(description.softcap)},
                             {"lse", yes_no(description.lse)},
                             {"lengths", lengths_of(description)},
                             {"page_size", description.page_size},
                             {"kv_dtype", word(description.kv_dtype)},
                             {"sinks", yes_no(description.sinks)},
                             {"heads", description.heads},
                             {"kv_heads", description.kv_heads},
                             {"head_dim", description.head_dim}},
                            {{"max_batch", description.max_batch},
                             {"max_q_len", description.max_q_len},
                             {"max_kv_len", description.max_kv_len}});
}

AttentionKernel prepare_with(const Maker& maker, const Attention& description) {
    return AttentionKernel(std::make_shared<const PreparedAttention>(maker, description));
}

Explanation explain_with(const Dispatcher& dispatcher, const Attention& description, AttentionSizes sizes) {
    return PreparedAttention::explain(dispatcher, description, sizes);
}

}  // namespace runtime

Status AttentionKernel::run(CUstream_st* stream, const AttentionArgs& args,
                            AttentionSizes sizes) const noexcept {
    if (!*this) return Status::not_prepared;
    return static_cast<const runtime::PreparedAttention&>(*prepared_).run(stream, args, sizes);
}

std::string AttentionKernel::refusal(const AttentionArgs& args, AttentionSizes sizes) const {
    if (!*this) runtime::throw_not_prepared("refusal()");
    return static_cast<const runtime::PreparedAttention&>(*prepared_).refusal(args, sizes);
}

std::int64_t AttentionKernel::workspace_bytes(AttentionSizes sizes) const {
    if (!*this) runtime::throw_not_prepared("workspace_bytes()");
    return runtime::guarded("workspace_bytes()", [&] {
        return prepared_->workspace_bytes({sizes.batch, sizes.q_len, sizes.kv_len});
    });
}

}  // namespace hone
