// A prepared AttentionAppend: its kernels, and the rules that their family does not know.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "runtime/dispatch/prepared_operator.h"
#include "runtime/operators/attention_append.h"
#include "runtime/operators/maker.h"
#include "runtime/operators/number_check.h"

namespace hone::runtime {

/// The description with numbers in place of what stands for them: 0 for kv_heads, -1 for rotary_dim.
[[nodiscard]] AttentionAppend filled_in(AttentionAppend append);

class PreparedAttentionAppend final : public Prepared {
  public:
    PreparedAttentionAppend(const Maker& maker, const AttentionAppend& description);
    [[nodiscard]] static Explanation explain(const Dispatcher& dispatcher, const AttentionAppend& description,
                                             AttentionAppendSizes sizes);

    [[nodiscard]] Status run(CUstream stream, const AttentionAppendArgs& args,
                             AttentionAppendSizes sizes) const noexcept;
    [[nodiscard]] std::string refusal(const AttentionAppendArgs& args, AttentionAppendSizes sizes) const;

    [[nodiscard]] std::vector<PrepareReport> reports() const override { return kernels_->reports(); }
    [[nodiscard]] std::int64_t workspace_bytes(const Sizes& sizes) const override {
        return kernels_->workspace_bytes(sizes);
    }

  private:
    AttentionAppend append_;
    std::shared_ptr<const PreparedOperator> kernels_;
    const DeviceSession* checking_ = nullptr;
};

}  // namespace hone::runtime
