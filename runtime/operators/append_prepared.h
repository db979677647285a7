// A prepared RopeKvAppend: its kernels, and the rules that their family does not know.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/dispatch/prepared_operator.h"
#include "runtime/operators/maker.h"
#include "runtime/operators/rope_kv_append.h"

namespace hone::runtime {

/// The description with numbers in place of what stands for them: 0 for kv_heads, -1 for rotary_dim.
[[nodiscard]] RopeKvAppend filled_in(RopeKvAppend rope);

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

}  // namespace hone::runtime
