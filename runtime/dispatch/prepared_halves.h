// Two prepared operators that run one after the other: the second reads what the first has written into the
// workspace. What feed-forward networks are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "runtime/dispatch/prepared_operator.h"

namespace hone::runtime {

class PreparedHalves : public Prepared {
  public:
    using Half = std::shared_ptr<const PreparedOperator>;

    /// `halves`: the two. `row_bytes`: bytes of a row of the intermediate.
    PreparedHalves(std::vector<Half> halves, std::int64_t row_bytes, std::int64_t max_tokens)
        : first_(std::move(halves.at(0))),
          second_(std::move(halves.at(1))),
          row_bytes_(row_bytes),
          most_(max_tokens) {}

    /// The parts of a call's workspace.
    struct Workspace {
        std::byte* intermediate = nullptr;
        std::byte* rest = nullptr;  ///< for both halves' kernels
    };
    [[nodiscard]] Workspace divide(void* workspace, std::int64_t tokens) const noexcept;

    /// What is wrong with the workspace or the number of tokens, before anything else.
    [[nodiscard]] Status check(void* workspace, std::int64_t tokens) const noexcept;
    /// Checks both calls, then enqueues them.
    [[nodiscard]] Status run(CUstream stream, const Call& first, const Call& second,
                             std::int64_t tokens) const noexcept;
    /// Why that is refused; the callers' names of the halves' arguments are in `names`.
    [[nodiscard]] std::string refusal(const Call& first, const Call& second, std::int64_t tokens,
                                      CallNames first_names, CallNames second_names) const;

    [[nodiscard]] std::vector<PrepareReport> reports() const override;
    [[nodiscard]] std::int64_t workspace_bytes(const Sizes& sizes) const override;

  private:
    Half first_;
    Half second_;
    std::int64_t row_bytes_ = 0;
    std::int64_t most_ = 0;
};

}  // namespace hone::runtime
