// A prepared Attention: kernels of decode for few queries a sequence, those of prefill for more.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "hone/attention.h"
#include "runtime/dispatch/prepared_operator.h"

namespace hone::runtime {

class PreparedAttention final : public Prepared {
  public:
    /// Kernels for up to 1, 2, 4, 8 and 16 queries a sequence.
    using Decode = std::array<std::shared_ptr<const PreparedOperator>, 5>;

    /// What calls cannot reach is nullptr. With `checking`, the prepared operators' session, run() looks at
    /// the indices first.
    PreparedAttention(Decode decode, std::shared_ptr<const PreparedOperator> prefill,
                      const Attention& attention, const DeviceSession* checking);

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

    Decode decode_;
    std::shared_ptr<const PreparedOperator> prefill_;
    Attention attention_;
    const DeviceSession* checking_ = nullptr;
};

}  // namespace hone::runtime
