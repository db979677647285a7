// A prepared Attention: kernels of decode for few queries a sequence, those of prefill for more.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "hone/attention.h"
#include "runtime/dispatch/prepared_operator.h"
#include "runtime/operators/maker.h"

namespace hone::runtime {

class PreparedAttention final : public Prepared {
  public:
    /// Where maker.checking, run() looks at the indices first.
    PreparedAttention(const Maker& maker, const Attention& description);
    [[nodiscard]] static Explanation explain(const Dispatcher& dispatcher, const Attention& description,
                                             AttentionSizes sizes);

    [[nodiscard]] Status run(CUstream stream, const AttentionArgs& args, AttentionSizes sizes) const noexcept;
    [[nodiscard]] std::string refusal(const AttentionArgs& args, AttentionSizes sizes) const;

    [[nodiscard]] std::vector<PrepareReport> reports() const override;
    /// `sizes`: batch, q_len, kv_len.
    [[nodiscard]] std::int64_t workspace_bytes(const Sizes& sizes) const override;

  private:
    /// What serves a call that has something to do.
    struct Part {
        const PreparedOperator& kernels;
        Call call;
        Sizes sizes;
    };
    [[nodiscard]] Part part_for(const AttentionArgs& args, AttentionSizes sizes) const noexcept;

    using Kernels = std::shared_ptr<const PreparedOperator>;

    Attention attention_;
    /// Kernels for up to 1, 2, 4, 8 and 16 queries a sequence; what calls cannot reach is nullptr.
    std::array<Kernels, 5> decode_;
    Kernels prefill_;
    const DeviceSession* checking_ = nullptr;
};

}  // namespace hone::runtime
