// The rotary embedding with the append to the cache.
#include "hone/rope_kv_append.h"

#include <fmt/format.h>

#include "runtime/dispatch/prepared_operator.h"
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/attention_call.h"
#include "runtime/operators/attention_problem.h"
#include "runtime/operators/entry.h"
#include "runtime/operators/index_check.h"

namespace hone {
namespace runtime {
namespace {

/// What the family's own checks do not know of calls of at least one token.
Status check_numbers(const RopeKvAppend& rope, const RopeKvAppendArgs& args, std::int64_t tokens) noexcept {
    if (args.kv_len < 1 || (rope.rotary_dim != 0 && args.table_rows < 1)) return Status::bad_rows;
    if (!rope.slots && (args.q_len < 1 || tokens % args.q_len != 0)) return Status::bad_rows;
    const bool needs_pool = rope.slots || rope.page_size != 0;
    return args.pool_pages < (needs_pool ? 1 : 0) ? Status::bad_pages : Status::ok;
}

std::string wrong_numbers(const RopeKvAppend& rope, const RopeKvAppendArgs& args, std::int64_t tokens) {
    const auto is = [](const char* name, std::int64_t value, const std::string& allowed) {
        return fmt::format("{} is {}; allowed: {}", name, value, allowed);
    };
    if (args.kv_len < 1) return is("kv_len", args.kv_len, "from 1");
    if (rope.rotary_dim != 0 && args.table_rows < 1) return is("table_rows", args.table_rows, "from 1");
    if (!rope.slots && (args.q_len < 1 || tokens % args.q_len != 0))
        return is("q_len", args.q_len, fmt::format("divisors of the call's tokens, {}", tokens));
    return is("pool_pages", args.pool_pages, rope.slots || rope.page_size != 0 ? "from 1" : "from 0");
}

class PreparedAppend final : public Prepared {
  public:
    PreparedAppend(std::shared_ptr<const PreparedOperator> kernels, const RopeKvAppend& rope,
                   const DeviceSession* checking)
        : kernels_(std::move(kernels)), rope_(rope), checking_(checking) {}

    [[nodiscard]] Status run(CUstream stream, const RopeKvAppendArgs& args,
                             std::int64_t tokens) const noexcept {
        if (tokens < 0 || tokens > rope_.max_tokens) return Status::bad_rows;
        if (tokens == 0) return Status::ok;
        if (const Status wrong = check_numbers(rope_, args, tokens); wrong != Status::ok) return wrong;
        const Call call = rope_call(rope_, args, tokens);
        const Sizes sizes = sizes_of_call(args, tokens);
        if (checking_ != nullptr) {
            if (const Status wrong = kernels_->check(call, sizes); wrong != Status::ok) return wrong;
            const Status wrong = check_indices(*checking_, stream, rope_, args, tokens);
            if (wrong != Status::ok) return wrong;
        }
        return kernels_->run(stream, call, sizes);
    }

    [[nodiscard]] std::string refusal(const RopeKvAppendArgs& args, std::int64_t tokens) const {
        if (tokens < 0 || tokens > rope_.max_tokens)
            return fmt::format("tokens is {}; allowed: 0 to {}, as prepared", tokens, rope_.max_tokens);
        if (tokens == 0) return {};
        if (check_numbers(rope_, args, tokens) != Status::ok) return wrong_numbers(rope_, args, tokens);
        return kernels_->refusal(rope_call(rope_, args, tokens), sizes_of_call(args, tokens), names);
    }

    [[nodiscard]] std::vector<PrepareReport> reports() const override { return kernels_->reports(); }
    [[nodiscard]] std::int64_t workspace_bytes(const Sizes& sizes) const override {
        return kernels_->workspace_bytes(sizes);
    }

  private:
    static constexpr CallName names[] = {{"q_out", "out"},
                                         {"q_out_token_stride", "out_token_stride"},
                                         {"q_out_head_stride", "out_head_stride"},
                                         {"cache_stride", "cache_batch_stride"}};

    [[nodiscard]] Sizes sizes_of_call(const RopeKvAppendArgs& args, std::int64_t tokens) const noexcept {
        return {tokens, rope_.slots ? 1 : args.q_len, args.kv_len};
    }

    std::shared_ptr<const PreparedOperator> kernels_;
    RopeKvAppend rope_;
    const DeviceSession* checking_ = nullptr;
};

}  // namespace

RopeKvAppendKernel prepare_with(const Maker& maker, const RopeKvAppend& description) {
    return RopeKvAppendKernel(std::make_shared<const PreparedAppend>(
        maker.dispatcher.prepare(rope_problem(description)), filled_in(description), maker.checking));
}

Explanation explain_with(const Dispatcher& dispatcher, const RopeKvAppend& description, std::int64_t tokens) {
    const Problem largest = rope_problem(description);
    Sizes sizes = sizes_of(largest);
    sizes[0] = tokens;
    return dispatcher.explain(largest, sizes);
}

}  // namespace runtime

Status RopeKvAppendKernel::run(CUstream_st* stream, const RopeKvAppendArgs& args,
                               std::int64_t tokens) const noexcept {
    if (!*this) return Status::not_prepared;
    return static_cast<const runtime::PreparedAppend&>(*prepared_).run(stream, args, tokens);
}

std::string RopeKvAppendKernel::refusal(const RopeKvAppendArgs& args, std::int64_t tokens) const {
    if (!*this) runtime::throw_not_prepared("refusal()");
    return static_cast<const runtime::PreparedAppend&>(*prepared_).refusal(args, tokens);
}

}  // namespace hone
