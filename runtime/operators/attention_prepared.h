// A prepared Attention: kernels of decode for few queries a sequence, those of prefill for more, and both for
// queries packed over pages, where decode takes the sequences of a single one.
#pragma once

#include <array>
#include <memory>
#include <optional>
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
    struct Part {
        const PreparedOperator& kernels;
        Call call;
        Sizes sizes;
    };
    /// What serves a call that has something to do: one of them, or both, of which each leaves the other's
    /// sequences alone.
    struct Parts {
        std::optional<Part> decode;
        std::optional<Part> prefill;

        [[nodiscard]] std::array<const Part*, 2> all() const noexcept {
            return {decode ? &*decode : nullptr, prefill ? &*prefill : nullptr};
        }
    };
    [[nodiscard]] Parts parts_for(const AttentionArgs& args, AttentionSizes sizes) const noexcept;
    [[nodiscard]] Part decode_part(const AttentionArgs& args, AttentionSizes sizes) const noexcept;
    [[nodiscard]] static Status check(const Parts& parts) noexcept;
    [[nodiscard]] static Status run_both(CUstream stream, Part decode, const Part& prefill) noexcept;

    using Kernels = std::shared_ptr<const PreparedOperator>;

    Attention attention_;
    /// Kernels for up to 1, 2, 4, 8 and 16 queries a sequence, the first also for single tokens among packed
    /// queries; what calls cannot reach is nullptr.
    std::array<Kernels, 5> decode_;
    Kernels prefill_;
    const DeviceSession* checking_ = nullptr;
};

}  // namespace hone::runtime
