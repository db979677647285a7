// AttentionAppend: its problems. Generated from kernel_templates/attention_append/operators.py by `./hone
// generate`.
#include "runtime/operators/attention_append.h"

#include "runtime/dispatch/public_error.h"
#include "runtime/operators/attention_append_prepared.h"
#include "runtime/operators/describe_problem.h"
#include "runtime/operators/entry.h"

namespace hone {
namespace runtime {

Problem attention_append_problem(const AttentionAppend& description) {
    return describe_problem("attention_append",
                            {{"dtype", dtype_name(description.dtype)},
                             {"style", word(description.style)},
                             {"norm", yes_no(description.norm)},
                             {"unit_offset", yes_no(description.unit_offset)},
                             {"window", description.window},
                             {"softcap", yes_no(description.softcap)},
                             {"page_size", description.page_size},
                             {"heads", description.heads},
                             {"kv_heads", description.kv_heads},
                             {"head_dim", description.head_dim},
                             {"rotary_dim", description.rotary_dim}},
                            {{"max_batch", description.max_batch}, {"max_kv_len", description.max_kv_len}});
}

AttentionAppendKernel prepare_with(const Maker& maker, const AttentionAppend& description) {
    return AttentionAppendKernel(std::make_shared<const PreparedAttentionAppend>(maker, description));
}

Explanation explain_with(const Dispatcher& dispatcher, const AttentionAppend& description,
                         AttentionAppendSizes sizes) {
    return PreparedAttentionAppend::explain(dispatcher, description, sizes);
}

}  // namespace runtime

Status AttentionAppendKernel::run(CUstream_st* stream, const AttentionAppendArgs& args,
                                  AttentionAppendSizes sizes) const noexcept {
    if (!*this) return Status::not_prepared;
    return static_cast<const runtime::PreparedAttentionAppend&>(*prepared_).run(stream, args, sizes);
}

std::string AttentionAppendKernel::refusal(const AttentionAppendArgs& args,
                                           AttentionAppendSizes sizes) const {
    if (!*this) runtime::throw_not_prepared("refusal()");
    return static_cast<const runtime::PreparedAttentionAppend&>(*prepared_).refusal(args, sizes);
}

std::int64_t AttentionAppendKernel::workspace_bytes(AttentionAppendSizes sizes) const {
    if (!*this) runtime::throw_not_prepared("workspace_bytes()");
    return runtime::guarded("workspace_bytes()", [&] {
        return prepared_->workspace_bytes({sizes.batch, sizes.kv_len});
    });
}

}  // namespace hone
