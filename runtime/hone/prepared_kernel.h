// What all prepared operators have in common: the bases of RmsNormKernel and its siblings, which add run().
// Small; copies share the loaded kernels and may outlive the Runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "hone/error.h"
#include "hone/report.h"

struct CUstream_st;  // CUstream and cudaStream_t are both CUstream_st*

namespace hone {

struct Call;

namespace runtime {
class PreparedOperator;
}

class PreparedKernel {
  public:
    /// False for one that Runtime::prepare() did not make.
    [[nodiscard]] explicit operator bool() const noexcept { return operator_ != nullptr; }

    /// What prepare() chose. Throws Error when the object is empty.
    [[nodiscard]] const PrepareReport& report() const;

    /// Bytes of device memory, aligned to 256, that any call of up to `rows` rows needs; 0: none. Throws
    /// Error for rows below 0 or above the prepared maximum, and when the object is empty.
    [[nodiscard]] std::int64_t workspace_bytes(std::int64_t rows) const;

  protected:
    PreparedKernel() = default;
    explicit PreparedKernel(std::shared_ptr<const runtime::PreparedOperator> prepared)
        : operator_(std::move(prepared)) {}

    std::shared_ptr<const runtime::PreparedOperator> operator_;
};

/// Two prepared operators that run one after the other: the second reads what the first has written into the
/// workspace. The base of feed-forward networks.
class PreparedHalves {
  public:
    /// The halves, for their reports.
    [[nodiscard]] const PreparedKernel& first() const noexcept { return first_; }
    [[nodiscard]] const PreparedKernel& second() const noexcept { return second_; }
    [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(first_); }

    /// Bytes of device memory, aligned to 256, that any call of up to `tokens` rows needs: the intermediate,
    /// and what the halves' kernels need beside it. Throws Error for tokens below 0 or above the prepared
    /// maximum, and when the object is empty.
    [[nodiscard]] std::int64_t workspace_bytes(std::int64_t tokens) const;

  protected:
    PreparedHalves() = default;
    /// `row_bytes`: of a row of the intermediate.
    PreparedHalves(std::shared_ptr<const runtime::PreparedOperator> first,
                   std::shared_ptr<const runtime::PreparedOperator> second, std::int64_t row_bytes,
                   std::int64_t max_tokens)
        : first_(std::move(first)), second_(std::move(second)), row_bytes_(row_bytes), most_(max_tokens) {}

    /// The parts of a call's workspace.
    struct Rooms {
        std::byte* intermediate = nullptr;
        std::byte* rest = nullptr;  ///< of both halves' kernels
    };
    /// What run() says of the workspace and the tokens, before anything else.
    [[nodiscard]] Status divide(void* workspace, std::int64_t tokens, Rooms& rooms) const noexcept;
    /// Checks both calls, then enqueues them.
    [[nodiscard]] Status run_both(CUstream_st* stream, const Call& first, const Call& second,
                                  std::int64_t tokens) const noexcept;

  private:
    /// Gives run_both() a half's operator.
    struct Half : PreparedKernel {
        Half() = default;
        explicit Half(std::shared_ptr<const runtime::PreparedOperator> prepared)
            : PreparedKernel(std::move(prepared)) {}
        [[nodiscard]] const runtime::PreparedOperator& prepared() const { return *operator_; }
    };

    Half first_;
    Half second_;
    std::int64_t row_bytes_ = 0;
    std::int64_t most_ = 0;
};

}  // namespace hone
