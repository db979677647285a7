// run() of the rotary embedding with the append to the cache.
#include "hone/attention.h"
#include "runtime/dispatch/prepared_operator.h"
#include "runtime/operators/attention_call.h"
#include "runtime/operators/index_check.h"

namespace hone {
namespace {

/// What the family's own checks do not know, of calls of at least one token.
Status check_numbers(const RopeKvAppend& rope, const RopeKvAppendArgs& args, std::int64_t tokens) noexcept {
    if (args.kv_len < 1 || (rope.rotary_dim != 0 && args.table_rows < 1)) return Status::bad_rows;
    if (!rope.slots && (args.q_len < 1 || tokens % args.q_len != 0)) return Status::bad_rows;
    const bool needs_pool = rope.slots || rope.page_size != 0;
    return args.pool_pages < (needs_pool ? 1 : 0) ? Status::bad_pages : Status::ok;
}

}  // namespace

Status RopeKvAppendKernel::run(CUstream_st* stream, const RopeKvAppendArgs& args,
                               std::int64_t tokens) const noexcept {
    if (operator_ == nullptr) return Status::not_prepared;
    if (tokens < 0 || tokens > rope_.max_tokens) return Status::bad_rows;
    if (tokens == 0) return Status::ok;
    if (const Status wrong = check_numbers(rope_, args, tokens); wrong != Status::ok) return wrong;
    const Call call = runtime::rope_call(rope_, args, tokens);
    const Sizes sizes{tokens, rope_.slots ? 1 : args.q_len, args.kv_len};
    if (checking_ != nullptr) {
        if (const Status wrong = operator_->check(call, sizes); wrong != Status::ok) return wrong;
        const Status wrong = runtime::check_indices(*checking_, stream, rope_, args, tokens);
        if (wrong != Status::ok) return wrong;
    }
    return operator_->run(stream, call, sizes);
}

}  // namespace hone
