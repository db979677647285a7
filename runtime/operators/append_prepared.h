// A prepared RopeKvAppend: its kernels, and the rules that their family does not know.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/dispatch/prepared_operator.h"
#include "runtime/operators/index_check.h"
#include "runtime/operators/maker.h"
#include "runtime/operators/number_check.h"
#include "runtime/operators/rope_kv_append.h"

namespace hone::runtime {

/// The description with numbers in place of what stands for them: 0 for kv_heads, -1 for rotary_dim.
[[nodiscard]] RopeKvAppend filled_in(RopeKvAppend rope);

/// The rules for numbers of calls that have tokens.
template <class Refuse>
[[nodiscard]] Status check_numbers(const RopeKvAppend& rope, const RopeKvAppendArgs& args,
                                   std::int64_t tokens, Refuse refuse) {
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
[[nodiscard]] Status check_tokens(const RopeKvAppend& rope, std::int64_t tokens, Refuse refuse) {
    if (tokens >= 0 && tokens <= rope.max_tokens) return Status::ok;
    return refuse(Status::bad_rows, "tokens", tokens, "0 to {}, as prepared", rope.max_tokens);
}

class PreparedRopeKvAppend final : public Prepared {
  public:
    PreparedRopeKvAppend(const Maker& maker, const RopeKvAppend& description);
    [[nodiscard]] static Explanation explain(const Dispatcher& dispatcher, const RopeKvAppend& description,
                                             std::int64_t tokens);

    [[nodiscard]] Status run(CUstream stream, const RopeKvAppendArgs& args,
                             std::int64_t tokens) const noexcept;
    [[nodiscard]] std::string refusal(const RopeKvAppendArgs& args, std::int64_t tokens) const;

    [[nodiscard]] std::vector<PrepareReport> reports() const override { return kernels_->reports(); }
    [[nodiscard]] std::int64_t workspace_bytes(const Sizes& sizes) const override {
        return kernels_->workspace_bytes(sizes);
    }

  private:
    [[nodiscard]] Sizes sizes_of_call(const RopeKvAppendArgs& args, std::int64_t tokens) const noexcept {
        return {tokens, rope_.slots ? 1 : args.q_len, args.kv_len};
    }

    RopeKvAppend rope_;
    std::shared_ptr<const PreparedOperator> kernels_;
    const DeviceSession* checking_ = nullptr;
};

inline Status PreparedRopeKvAppend::run(CUstream stream, const RopeKvAppendArgs& args,
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

}  // namespace hone::runtime
