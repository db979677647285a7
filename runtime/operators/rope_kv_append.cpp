// RopeKvAppend: its problems. Generated from kernel_templates/rope_kv_append/operators.py by `./hone
// generate`.
#include "runtime/operators/rope_kv_append.h"

#include "runtime/dispatch/public_error.h"
#include "runtime/operators/append_prepared.h"
#include "runtime/operators/describe_problem.h"
#include "runtime/operators/entry.h"

namespace hone {
namespace runtime {

Problem append_problem(const RopeKvAppend& description) {
    return describe_problem("rope_kv_append",
                            {{"dtype", dtype_name(description.dtype)},
                             {"kv_dtype", word(description.kv_dtype)},
                             {"style", word(description.style)},
                             {"norm", yes_no(description.norm)},
                             {"unit_offset", yes_no(description.unit_offset)},
                             {"slots", yes_no(description.slots)},
                             {"page_size", description.page_size},
                             {"heads", description.heads},
                             {"kv_heads", description.kv_heads},
                             {"head_dim", description.head_dim},
                             {"rotary_dim", description.rotary_dim}},
                            {{"max_tokens", description.max_tokens},
                             {"q_tokens", description.max_tokens},
                             {"kv_len", std::int64_t{1} << 30}});
}

RopeKvAppendKernel prepare_with(const Maker& maker, const RopeKvAppend& description) {
    return RopeKvAppendKernel(std::make_shared<const PreparedRopeKvAppend>(maker, description));
}

Explanation explain_with(const Dispatcher& dispatcher, const RopeKvAppend& description, std::int64_t tokens) {
    return PreparedRopeKvAppend::explain(dispatcher, description, tokens);
}

}  // namespace runtime

Status RopeKvAppendKernel::run(CUstream_st* stream, const RopeKvAppendArgs& args,
                               std::int64_t tokens) const noexcept {
    if (!*this) return Status::not_prepared;
    return static_cast<const runtime::PreparedRopeKvAppend&>(*prepared_).run(stream, args, tokens);
}

std::string RopeKvAppendKernel::refusal(const RopeKvAppendArgs& args, std::int64_t tokens) const {
    if (!*this) runtime::throw_not_prepared("refusal()");
    return static_cast<const runtime::PreparedRopeKvAppend&>(*prepared_).refusal(args, tokens);
}

}  // namespace hone
