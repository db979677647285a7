// A prepared operator of one problem: every kernel that a call can reach, loaded. Immutable; run() may be
// called from any number of threads, takes no lock, allocates nothing, makes no system call, and is allowed
// under stream capture. Knows families and problems, not norms: the typed fronts (runtime/operators/) fill a
// Call and come here.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hone/error.h"
#include "hone/report.h"
#include "kernel_templates/family.h"
#include "runtime/compile/image_provider.h"
#include "runtime/dispatch/bucket_grid.h"
#include "runtime/dispatch/call_text.h"
#include "runtime/dispatch/capture.h"
#include "runtime/dispatch/prepared.h"

namespace hone::runtime {

/// What serves the calls of one cell.
struct Bucket {
    Candidate candidate;
    std::shared_ptr<const LoadedImage> image;
    Origin origin = Origin::fallback;
    std::uint32_t site = 0;         ///< the dispatcher's number for this kernel, for error texts
    RunCounter* counter = nullptr;  ///< of its calls; lives in the session, or in the capture
};

/// What run() enqueues of a call that shares the GPU with another one.
struct Portion {
    int multiprocessors = 0;  ///< that the call is planned for; 0: all
    bool first = true;        ///< the plan's first launch
    bool rest = true;         ///< those behind it
    bool early = false;       ///< the first may start while what stands in front of it runs
};

class PreparedOperator final : public Prepared {
  public:
    /// `problem` carries the maxima in its run-time fields; `buckets` belong to the cells of the grid, one
    /// each. `capture`, if there is one, has their counters.
    PreparedOperator(std::shared_ptr<const DeviceSession> session, std::shared_ptr<Capture> capture,
                     const Problem& problem, BucketGrid grid, std::vector<Bucket> buckets,
                     PrepareReport report);

    /// A dynamic size of 0 enqueues nothing. The call's scalars are complete: strides in elements.
    [[nodiscard]] Status run(CUstream stream, const Call& call, const Sizes& sizes,
                             const Portion* portion = nullptr) const noexcept;

    /// Bytes that such a call needs by itself, where its kernel may run beside another (Plan::runs_beside).
    [[nodiscard]] std::optional<std::int64_t> workspace_beside(const Sizes& sizes) const noexcept;

    /// What run() would say before it enqueues anything.
    [[nodiscard]] Status check(const Call& call, const Sizes& sizes) const noexcept;

    /// Why run() refuses such a call: the argument, its value, what is allowed; empty: it does not. `names`
    /// has what the caller calls otherwise than the family.
    [[nodiscard]] std::string refusal(const Call& call, const Sizes& sizes, CallNames names = {}) const;

    [[nodiscard]] std::vector<PrepareReport> reports() const override { return {report_}; }
    [[nodiscard]] std::int64_t workspace_bytes(const Sizes& sizes) const override;

    [[nodiscard]] const PrepareReport& report() const { return report_; }
    [[nodiscard]] const DeviceSession& session() const { return *session_; }

  private:
    /// How a pointer that the problem has must be in one bucket. `alignment_mask` is alignment - 1 in bytes.
    struct PointerRule {
        std::uint8_t pointer = 0;  ///< index in Call::pointers
        std::uint8_t alignment_mask = 0;
        bool required = false;
    };
    /// `alignment_mask` is alignment - 1 in elements.
    struct StrideRule {
        std::int64_t minimum = 0;  ///< or 0: one row for all, or none
        RowStride where;
        std::uint8_t alignment_mask = 0;
    };
    /// What a call is checked against in one bucket: close together, since a driver's launch leaves little of
    /// a cache.
    struct Rules {
        std::uint8_t pointer_count = 0;
        std::uint8_t stride_count = 0;
        std::array<PointerRule, max_call_pointers> all_pointers{};
        std::array<StrideRule, max_call_scalars> all_strides{};

        [[nodiscard]] std::span<const PointerRule> pointers() const noexcept {
            return std::span(all_pointers).first(pointer_count);
        }
        [[nodiscard]] std::span<const StrideRule> strides() const noexcept {
            return std::span(all_strides).first(stride_count);
        }
    };

    [[nodiscard]] Rules rules_for(std::size_t bucket) const;
    [[nodiscard]] Plan plan_of(const Bucket& bucket, const Problem& problem) const noexcept;
    [[nodiscard]] Plan plan_of(const Bucket& bucket, const Problem& problem,
                               const Portion& portion) const noexcept;
    [[nodiscard]] Status check_call(const Rules& rules, const Call& call) const noexcept;
    [[nodiscard]] static std::string misalignment(const Rules& rules, const Call& call, const CallText& text);
    [[nodiscard]] CUresult enqueue(const Bucket& bucket, const Plan& plan, const Call& call,
                                   CUstream stream) const noexcept;

    std::shared_ptr<const DeviceSession> session_;
    std::shared_ptr<Capture> capture_;
    Problem problem_;
    BucketGrid grid_;
    std::vector<Bucket> buckets_;
    std::vector<Rules> rules_;
    std::optional<std::size_t> epsilon_;  ///< index in Call::scalars
    PrepareReport report_;
};

/// What an operator of one problem holds.
[[nodiscard]] inline const PreparedOperator& single(const Prepared& prepared) noexcept {
    return static_cast<const PreparedOperator&>(prepared);
}

}  // namespace hone::runtime
