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

PreparedOperator::PreparedOperator(std::shared_ptr<const DeviceSession> session,
                                   std::shared_ptr<Capture> capture, const Problem& problem, BucketGrid grid,
                                   std::vector<Bucket> buckets, PrepareReport report)
    : session_(std::move(session)),
      capture_(std::move(capture)),
      problem_(problem),
      grid_(std::move(grid)),
      buckets_(std::move(buckets)),
      report_(std::move(report)) {
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) rules_.push_back(rules_for(bucket));
    const std::vector<ScalarArgument> scalars = problem.family->scalars(problem);
    for (std::size_t i = 0; i < scalars.size(); ++i) {
        if (scalars[i].name == "epsilon") epsilon_ = i;
    }
}

PreparedOperator::Rules PreparedOperator::rules_for(std::size_t bucket) const {
    const bool has_workspace = plan_of(buckets_[bucket], grid_.last(bucket)).workspace_bytes > 0;
    const std::vector<Argument> arguments = problem_.family->arguments(problem_);
    const auto alignment = [&](std::size_t argument) {
        return alignment_bytes(problem_, buckets_[bucket].candidate, argument);
    };
    Rules rules;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (!arguments[i].present) continue;
        rules.all_pointers[rules.pointer_count++] = {static_cast<std::uint8_t>(i),
                                                     static_cast<std::uint8_t>(alignment(i) - 1),
                                                     arguments[i].role != Role::workspace || has_workspace};
    }
    for (const RowStride where : problem_.family->row_strides) {
        const Argument& argument = arguments[where.pointer];
        if (!argument.present) continue;
        const std::int64_t elements = alignment(where.pointer) / size_bytes(argument.dtype);
        rules.all_strides[rules.stride_count++] = {argument.shape.back(), where,
                                                   static_cast<std::uint8_t>(elements - 1)};
    }
    return rules;
}

Status PreparedOperator::run(CUstream stream, const Call& call, const Sizes& sizes,
                             const Portion* portion) const noexcept {
    if (!grid_.takes(sizes)) return Status::bad_rows;
    if (grid_.nothing_in(sizes)) return Status::ok;
    const std::size_t i = grid_.find(sizes);
    const Bucket& bucket = buckets_[i];
    if (const Status status = check_call(rules_[i], call); status != Status::ok) return status;

    const CUresult result = enqueue(bucket,
                                    portion == nullptr ? plan_of(bucket, grid_.problem(sizes))
                                                       : plan_of(bucket, grid_.problem(sizes), *portion),
                                    call, stream);
    if (result != CUDA_SUCCESS) [[unlikely]] {
        session_->log().count_failure(bucket.site, static_cast<int>(result));
        return Status::launch_failed;
    }
    if (portion == nullptr || portion->first) bucket.counter->add();
    return Status::ok;
}

std::optional<std::int64_t> PreparedOperator::workspace_beside(const Sizes& sizes) const noexcept {
    if (!grid_.takes(sizes) || grid_.nothing_in(sizes)) return std::nullopt;
    const Plan plan = plan_of(buckets_[grid_.find(sizes)], grid_.problem(sizes));
    if (!plan.runs_beside) return std::nullopt;
    return plan.workspace_bytes;
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

Plan PreparedOperator::plan_of(const Bucket& bucket, const Problem& problem,
                               const Portion& portion) const noexcept {
    DeviceTraits traits = session_->traits();
    if (portion.multiprocessors != 0) traits.sm_count = portion.multiprocessors;
    Plan plan = bucket.candidate.variant->plan(problem, bucket.candidate.config, traits);
    if (portion.early) plan.launches[0].programmatic = true;
    if (!portion.first) plan.first_launch = 1;
    if (!portion.rest) plan.launch_count = 1;
    return plan;
}

Status PreparedOperator::check_call(const Rules& rules, const Call& call) const noexcept {
    std::uint64_t misaligned = 0;
    bool missing = false;
    for (const PointerRule& rule : rules.pointers()) {
        void* const pointer = call.pointers[rule.pointer];
        missing |= rule.required & (pointer == nullptr);
        misaligned |= reinterpret_cast<std::uintptr_t>(pointer) & rule.alignment_mask;
    }
    bool too_short = false;
    for (const StrideRule& rule : rules.strides()) {
        const std::uint64_t stride = call.scalars[rule.where.scalar].bits;
        too_short |= (static_cast<std::int64_t>(stride) < rule.minimum) & (stride != 0);
        misaligned |= stride & rule.alignment_mask;
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
    for (const PointerRule& rule : rules.pointers()) {
        if (rule.required && call.pointers[rule.pointer] == nullptr) return text.missing(rule.pointer);
    }
    if (epsilon_ && !is_epsilon(call.scalars[*epsilon_])) return text.bad_epsilon(call.scalars[*epsilon_]);
    for (const StrideRule& rule : rules.strides()) {
        const auto stride = static_cast<std::int64_t>(call.scalars[rule.where.scalar].bits);
        if (stride != 0 && stride < rule.minimum) return text.short_stride(rule.where, stride, rule.minimum);
    }
    return misalignment(rules, call, text);
}

std::string PreparedOperator::misalignment(const Rules& rules, const Call& call, const CallText& text) {
    for (const PointerRule& rule : rules.pointers()) {
        void* const pointer = call.pointers[rule.pointer];
        if ((reinterpret_cast<std::uintptr_t>(pointer) & rule.alignment_mask) != 0)
            return text.misaligned(rule.pointer, pointer, rule.alignment_mask + 1U);
    }
    for (const StrideRule& rule : rules.strides()) {
        const std::uint64_t stride = call.scalars[rule.where.scalar].bits;
        if ((stride & rule.alignment_mask) != 0)
            return text.misaligned_stride(rule.where, stride, rule.alignment_mask + 1U);
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
