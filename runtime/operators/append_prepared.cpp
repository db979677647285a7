#include "runtime/operators/append_prepared.h"

#include "runtime/operators/index_check.h"
#include "runtime/operators/number_check.h"

namespace hone::runtime {
namespace {

/// Of calls of at least one token.
template <class Refuse>
Status check_numbers(const RopeKvAppend& rope, const RopeKvAppendArgs& args, std::int64_t tokens,
                     Refuse refuse) {
    if (args.kv_len < 1) return refuse(Status::bad_rows, "kv_len", args.kv_len, "from 1");
    if (rope.rotary_dim != 0 && args.table_rows < 1)
        return refuse(Status::bad_rows, "table_rows", args.table_rows, "from 1");
    if (!rope.slots && (args.q_len < 1 || tokens % args.q_len != 0))
        return refuse(Status::bad_rows, "q_len", args.q_len, "divisors of the call's tokens, {}", tokens);
    const int least = rope.slots || rope.page_size != 0 ? 1 : 0;
    if (args.pool_pages < least)
        return refuse(Status::bad_pages, "pool_pages", args.pool_pages, "from {}", least);
    return Status::ok;
}

template <class Refuse>
Status check_tokens(const RopeKvAppend& rope, std::int64_t tokens, Refuse refuse) {
    if (tokens >= 0 && tokens <= rope.max_tokens) return Status::ok;
    return refuse(Status::bad_rows, "tokens", tokens, "0 to {}, as prepared", rope.max_tokens);
}

constexpr CallName names[] = {{"q_out", "out"},
                              {"q_out_token_stride", "out_token_stride"},
                              {"q_out_head_stride", "out_head_stride"},
                              {"cache_stride", "cache_batch_stride"}};

}  // namespace

RopeKvAppend filled_in(RopeKvAppend rope) {
    if (rope.kv_heads == 0) rope.kv_heads = rope.heads;
    if (rope.rotary_dim == -1) rope.rotary_dim = rope.head_dim;
    return rope;
}

PreparedRopeKvAppend::PreparedRopeKvAppend(const Maker& maker, const RopeKvAppend& description)
    : rope_(filled_in(description)),
      kernels_(maker.dispatcher.prepare(append_problem(rope_))),
      checking_(maker.checking) {}

Explanation PreparedRopeKvAppend::explain(const Dispatcher& dispatcher, const RopeKvAppend& description,
                                          std::int64_t tokens) {
    const Problem largest = append_problem(filled_in(description));
    Sizes sizes = sizes_of(largest);
    sizes[0] = tokens;
    return dispatcher.explain(largest, sizes);
}

Status PreparedRopeKvAppend::run(CUstream stream, const RopeKvAppendArgs& args,
                                 std::int64_t tokens) const noexcept {
    if (const Status wrong = check_tokens(rope_, tokens, JustStatus{}); wrong != Status::ok) return wrong;
    if (tokens == 0) return Status::ok;
    if (const Status wrong = check_numbers(rope_, args, tokens, JustStatus{}); wrong != Status::ok)
        return wrong;
    const Call call = append_call(rope_, args, tokens);
    const Sizes sizes = sizes_of_call(args, tokens);
    if (checking_ != nullptr) {
        if (const Status wrong = kernels_->check(call, sizes); wrong != Status::ok) return wrong;
        const Status wrong = check_indices(*checking_, stream, rope_, args, tokens);
        if (wrong != Status::ok) return wrong;
    }
    return kernels_->run(stream, call, sizes);
}

std::string PreparedRopeKvAppend::refusal(const RopeKvAppendArgs& args, std::int64_t tokens) const {
    std::string text;
    if (check_tokens(rope_, tokens, InWords{text}) != Status::ok || tokens == 0) return text;
    if (check_numbers(rope_, args, tokens, InWords{text}) != Status::ok) return text;
    return kernels_->refusal(append_call(rope_, args, tokens), sizes_of_call(args, tokens), names);
}

}  // namespace hone::runtime
