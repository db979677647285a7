#include "runtime/operators/append_prepared.h"

namespace hone::runtime {

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

std::string PreparedRopeKvAppend::refusal(const RopeKvAppendArgs& args, std::int64_t tokens) const {
    std::string text;
    if (check_tokens(rope_, tokens, InWords{text}) != Status::ok || tokens == 0) return text;
    if (check_numbers(rope_, args, tokens, InWords{text}) != Status::ok) return text;
    return kernels_->refusal(append_call(rope_, args, tokens), sizes_of_call(args, tokens), append_names);
}

}  // namespace hone::runtime
