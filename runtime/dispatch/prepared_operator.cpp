#include "runtime/dispatch/prepared_operator.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>
#include <utility>

#include "runtime/cuda/launcher.h"
#include "runtime/dispatch/alignment.h"
#include "runtime/dispatch/call_text.h"

namespace hone::runtime {
namespace {

bool is_epsilon(Scalar scalar) noexcept {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(scalar.bits));
    return value >= 0 && value <= std::numeric_limits<float>::max();
}

}  // namespace

PreparedOperator::PreparedOperator(std::shared_ptr<const DeviceSession> session, const Problem& problem,
                                   BucketGrid grid, std::vector<Bucket> buckets, PrepareReport report)
    : session_(std::move(session)),
      problem_(problem),
      grid_(std::move(grid)),
      buckets_(std::move(buckets)),
      report_(std::move(report)) {
    const std::vector<Argument> arguments = problem.family->arguments(problem);
    pointer_count_ = arguments.size();
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) rules_.push_back(rules_for(bucket));
    for (const RowStride where : problem.family->row_strides) {
        const Argument& argument = arguments[where.pointer];
        if (argument.present) strides_.push_back({where, argument.shape.back(), size_bytes(argument.dtype)});
    }
    const std::vector<ScalarArgument> scalars = problem.family->scalars(problem);
    for (std::size_t i = 0; i < scalars.size(); ++i) {
        if (scalars[i].name == "epsilon") epsilon_ = i;
    }
}

PreparedOperator::Rules PreparedOperator::rules_for(std::size_t bucket) const {
    const bool has_workspace = plan_of(buckets_[bucket], grid_.last(bucket)).workspace_bytes > 0;
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

Status PreparedOperator::run(CUstream stream, const Call& call, const Sizes& sizes) const noexcept {
    if (!grid_.takes(sizes)) return Status::bad_rows;
    if (grid_.nothing_in(sizes)) return Status::ok;
    const std::size_t i = grid_.find(sizes);
    const Bucket& bucket = buckets_[i];
    if (const Status status = check_call(rules_[i], call); status != Status::ok) return status;

    const CUresult result = enqueue(bucket, plan_of(bucket, grid_.problem(sizes)), call, stream);
    if (result != CUDA_SUCCESS) [[unlikely]] {
        session_->log().count_failure(bucket.site, static_cast<int>(result));
        return Status::launch_failed;
    }
    session_->log().count_run(bucket.origin);
    return Status::ok;
}

Status PreparedOperator::check(const Call& call, const Sizes& sizes) const noexcept {
    if (!grid_.takes(sizes)) return Status::bad_rows;
    return grid_.nothing_in(sizes) ? Status::ok : check_call(rules_[grid_.find(sizes)], call);
}

// A cell's workspace does not shrink when sizes grow, so that the largest call of each cell suffices.
std::int64_t PreparedOperator::workspace_bytes(const Sizes& sizes) const {
    if (!grid_.takes(sizes)) throw std::invalid_argument(grid_.why_not(sizes));
    std::int64_t most = 0;
    for (std::size_t cell = 0; cell < buckets_.size(); ++cell) {
        const std::optional<Problem> largest = grid_.largest_below(cell, sizes);
        if (largest) most = std::max(most, plan_of(buckets_[cell], *largest).workspace_bytes);
    }
    return most;
}

Plan PreparedOperator::plan_of(const Bucket& bucket, const Problem& problem) const noexcept {
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
        too_short |= (static_cast<std::int64_t>(stride) < rule.minimum) & (stride != 0);
        misaligned |= stride * static_cast<std::uint64_t>(rule.element_bytes) &
                      rules.pointers[rule.where.pointer].alignment_mask;
    }
    if (missing) return Status::null_pointer;
    if (epsilon_ && !is_epsilon(call.scalars[*epsilon_])) return Status::bad_epsilon;
    if (too_short) return Status::bad_stride;
    return misaligned != 0 ? Status::misaligned : Status::ok;
}

std::string PreparedOperator::refusal(const Call& call, const Sizes& sizes, CallNames names) const {
    if (!grid_.takes(sizes)) return grid_.why_not(sizes);
    if (grid_.nothing_in(sizes)) return {};
    const Rules& rules = rules_[grid_.find(sizes)];
    const CallText text(problem_, names);
    for (std::size_t i = 0; i < pointer_count_; ++i) {
        if (rules.pointers[i].required && call.pointers[i] == nullptr) return text.missing(i);
    }
    if (epsilon_ && !is_epsilon(call.scalars[*epsilon_])) return text.bad_epsilon(call.scalars[*epsilon_]);
    for (const StrideRule& rule : strides_) {
        const auto stride = static_cast<std::int64_t>(call.scalars[rule.where.scalar].bits);
        if (stride != 0 && stride < rule.minimum) return text.short_stride(rule.where, stride, rule.minimum);
    }
    for (std::size_t i = 0; i < pointer_count_; ++i) {
        const std::uint64_t mask = rules.pointers[i].alignment_mask;
        if ((reinterpret_cast<std::uintptr_t>(call.pointers[i]) & mask) != 0)
            return text.misaligned(i, call.pointers[i], mask + 1);
    }
    return misaligned_stride(rules, call, text);
}

std::string PreparedOperator::misaligned_stride(const Rules& rules, const Call& call,
                                                const CallText& text) const {
    for (const StrideRule& rule : strides_) {
        const std::uint64_t stride = call.scalars[rule.where.scalar].bits;
        const std::uint64_t mask = rules.pointers[rule.where.pointer].alignment_mask;
        const auto element_bytes = static_cast<std::uint64_t>(rule.element_bytes);
        if ((stride * element_bytes & mask) != 0)
            return text.misaligned_stride(rule.where, stride, (mask + 1) / element_bytes);
    }
    return {};
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
