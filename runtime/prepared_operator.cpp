#include "runtime/prepared_operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>
#include <utility>

#include "runtime/alignment.h"
#include "runtime/launcher.h"

namespace hone::runtime {
namespace {

bool is_epsilon(Scalar scalar) noexcept {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(scalar.bits));
    return value >= 0 && value <= std::numeric_limits<float>::max();
}

}  // namespace

PreparedOperator::PreparedOperator(std::shared_ptr<const DeviceSession> session, const Problem& problem,
                                   std::span<const RowStride> strides, std::vector<Bucket> buckets,
                                   PrepareReport report)
    : session_(std::move(session)),
      problem_(problem),
      dynamic_field_(static_cast<std::size_t>(dynamic_field(*problem.family))),
      index_(bucket_edges(problem[dynamic_field_])),
      buckets_(std::move(buckets)),
      report_(std::move(report)) {
    const std::vector<Argument> arguments = problem.family->arguments(problem);
    pointer_count_ = arguments.size();
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) rules_.push_back(rules_for(bucket));
    for (const RowStride where : strides) {
        const Argument& argument = arguments[where.pointer];
        if (argument.present) strides_.push_back({where, argument.shape.back(), size_bytes(argument.dtype)});
    }
    const std::vector<ScalarArgument> scalars = problem.family->scalars(problem);
    for (std::size_t i = 0; i < scalars.size(); ++i) {
        if (scalars[i].name == "epsilon") epsilon_ = i;
    }
}

PreparedOperator::Rules PreparedOperator::rules_for(std::size_t bucket) const {
    const bool has_workspace = plan_of(buckets_[bucket], index_.edges()[bucket]).workspace_bytes > 0;
    const std::vector<Argument> arguments = problem_.family->arguments(problem_);
    Rules rules;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (!arguments[i].present) continue;
        const std::int64_t alignment = alignment_bytes(problem_, buckets_[bucket].candidate, i);
        rules.pointers[i] = {static_cast<std::uint64_t>(alignment - 1),
                             arguments[i].role != Role::workspace || has_workspace};
    }
    return rules;
}

Status PreparedOperator::run(CUstream stream, const Call& call, std::int64_t value) const noexcept {
    if (!takes(value)) return Status::bad_rows;
    if (value == 0) return Status::ok;
    const std::size_t i = index_.find(value);
    const Bucket& bucket = buckets_[i];
    if (const Status status = check_call(rules_[i], call); status != Status::ok) return status;

    const CUresult result = enqueue(bucket, plan_of(bucket, value), call, stream);
    if (result != CUDA_SUCCESS) [[unlikely]] {
        session_->log().count_failure(bucket.site, static_cast<int>(result));
        return Status::launch_failed;
    }
    session_->log().count_run(bucket.origin);
    return Status::ok;
}

Status PreparedOperator::check(const Call& call, std::int64_t value) const noexcept {
    if (!takes(value)) return Status::bad_rows;
    return value == 0 ? Status::ok : check_call(rules_[index_.find(value)], call);
}

// A bucket's workspace does not shrink when rows are added, so the edges up to `value` and itself suffice.
std::int64_t PreparedOperator::workspace_bytes(std::int64_t value) const {
    if (!takes(value)) {
        throw std::invalid_argument(
            fmt::format("rows is {}; allowed: 0 to {}, as prepared", value, index_.max()));
    }
    std::int64_t most = 0;
    for (std::size_t i = 0; i < buckets_.size() && (i == 0 || index_.edges()[i - 1] < value); ++i) {
        most = std::max(most, plan_of(buckets_[i], std::min(index_.edges()[i], value)).workspace_bytes);
    }
    return most;
}

Plan PreparedOperator::plan_of(const Bucket& bucket, std::int64_t value) const noexcept {
    Problem problem = problem_;
    problem.values[dynamic_field_] = value;
    return bucket.candidate.variant->plan(problem, bucket.candidate.config, session_->traits());
}

Status PreparedOperator::check_call(const Rules& rules, const Call& call) const noexcept {
    std::uint64_t misaligned = 0;
    bool missing = false;
    for (std::size_t i = 0; i < pointer_count_; ++i) {
        missing |= rules.pointers[i].required && call.pointers[i] == nullptr;
        misaligned |= reinterpret_cast<std::uintptr_t>(call.pointers[i]) & rules.pointers[i].alignment_mask;
    }
    bool too_short = false;
    for (const StrideRule& rule : strides_) {
        const std::uint64_t stride = call.scalars[rule.where.scalar].bits;
        too_short |= static_cast<std::int64_t>(stride) < rule.minimum;
        misaligned |= stride * static_cast<std::uint64_t>(rule.element_bytes) &
                      rules.pointers[rule.where.pointer].alignment_mask;
    }
    if (missing) return Status::null_pointer;
    if (epsilon_ && !is_epsilon(call.scalars[*epsilon_])) return Status::bad_epsilon;
    if (too_short) return Status::bad_stride;
    return misaligned != 0 ? Status::misaligned : Status::ok;
}

// A thread that has never touched CUDA has no context current, which the first launch tells.
CUresult PreparedOperator::enqueue(const Bucket& bucket, const Plan& plan, const Call& call,
                                   CUstream stream) const noexcept {
    const Driver& driver = session_->driver();
    const CUresult result = launch(driver, bucket.image->plan(), plan, call, stream);
    if (result != CUDA_ERROR_INVALID_CONTEXT) [[likely]]
        return result;
    CUcontext current = nullptr;
    if (driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != nullptr) return result;
    if (driver.cuCtxSetCurrent(session_->context()) != CUDA_SUCCESS) return result;
    return launch(driver, bucket.image->plan(), plan, call, stream);
}

}  // namespace hone::runtime
