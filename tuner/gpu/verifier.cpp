#include "tuner/gpu/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace hone::tuner {
namespace {

using cache::TrialStatus;

Verdict wrong(std::string detail, double relative_l2 = 0) {
    return {.status = TrialStatus::wrong_result, .detail = std::move(detail), .relative_l2 = relative_l2};
}

bool ok(const Verdict& verdict) { return verdict.status == TrialStatus::ok; }

/// sqrt(sum (out - ref)^2 / sum ref^2); a reference of zeros allows no difference at all.
double relative_l2(const CompareSlots& slots) {
    if (slots.ref2 > 0) return std::sqrt(slots.diff2 / slots.ref2);
    return slots.diff2 > 0 ? std::numeric_limits<double>::infinity() : 0.0;
}

}  // namespace

Verifier::Verifier(DeviceContext& device, const Harness& harness, InputSets& sets)
    : device_(device), harness_(harness), sets_(sets), slots_(device.driver(), slot_count) {}

CUdeviceptr Verifier::slot(std::size_t index) const {
    return slots_.address() + index * sizeof(std::uint64_t);
}

void Verifier::clear_slots() const {
    device_.check(device_.driver().cuMemsetD8Async(slots_.address(), 0, slots_.bytes(), device_.stream()),
                  "clearing result slots");
}

Verifier::Slots Verifier::read_slots() const {
    Slots slots{};
    device_.check(device_.driver().cuMemcpyDtoH(slots.data(), slots_.address(), sizeof slots),
                  "reading result slots");
    return slots;
}

Verdict Verifier::launch(const runtime::LoadedPlan& loaded, const Plan& plan, const Call& call) const {
    const CUresult result = runtime::launch(device_.driver(), loaded, plan, call, device_.stream());
    if (result == CUDA_SUCCESS) return {};
    if (runtime::is_sticky(result)) device_.check(result, "launching the candidate");
    const char* name = nullptr;
    device_.driver().cuGetErrorName(result, &name);
    return {.status = TrialStatus::launch_failed,
            .detail = fmt::format("the driver refused the launch: {} ({})",
                                  name == nullptr ? "unknown error" : name, static_cast<int>(result))};
}

Verdict Verifier::begin(const runtime::LoadedPlan& reference, const Plan& plan, Clock::time_point deadline) {
    sets_.size_workspace(plan.workspace_bytes);
    clear_slots();
    Verdict verdict;
    for (int set = 0; set < verified_sets && ok(verdict); ++set) {
        verdict = launch(reference, plan, sets_.reference_call(set));
    }
    check_inputs();
    device_.finish(deadline);
    const Slots slots = read_slots();
    std::copy_n(slots.begin() + checksum_slots, verified_sets, input_checksums_.begin());
    if (!ok(verdict)) verdict.detail = "reference kernel: " + verdict.detail;
    return verdict;
}

Verdict Verifier::verify(const runtime::LoadedPlan& candidate, const Plan& plan, Clock::time_point deadline) {
    sets_.size_workspace(plan.workspace_bytes);
    clear_slots();
    Verdict verdict = first_launches(candidate, plan);
    if (ok(verdict)) verdict = repeated_launches(candidate, plan);
    check_guards();
    check_inputs();
    device_.finish(deadline);
    if (!ok(verdict)) return verdict;
    const Slots slots = read_slots();
    verdict = judge(slots);
    if (slots[output_guard_slot] + slots[workspace_guard_slot] > 0) sets_.fill_guards();
    // The next candidate finds them as they were.
    if (inputs_changed(slots) || sets_.has_appended()) sets_.fill_inputs();
    return verdict;
}

Verdict Verifier::first_launches(const runtime::LoadedPlan& candidate, const Plan& plan) const {
    Verdict verdict;
    for (int set = verified_sets - 1; set >= 0 && ok(verdict); --set) {  // set 0 last: the snapshot is its
        sets_.poison_outputs();
        verdict = launch(candidate, plan, sets_.call(set));
        compare_outputs(set);
    }
    keep_snapshot();
    return verdict;
}

Verdict Verifier::repeated_launches(const runtime::LoadedPlan& candidate, const Plan& plan) const {
    Verdict verdict;
    for (int i = 1; i < agreeing_launches && ok(verdict); ++i) {
        verdict = launch(candidate, plan, sets_.call(0));
        count_differences();
    }
    return verdict;
}

void Verifier::compare_outputs(int set) const {
    for (const std::size_t i : sets_.outputs()) {
        const std::size_t first =
            compare_slots + (i * verified_sets + static_cast<std::size_t>(set)) * compare_slot_count;
        harness_.compare(sets_.address(set, i), sets_.reference_address(set, i), sets_.arguments()[i],
                         sets_.tolerances()[i], slot(first));
    }
}

void Verifier::keep_snapshot() const {
    for (const std::size_t i : sets_.outputs()) {
        const auto bytes = static_cast<std::size_t>(sets_.arguments()[i].bytes());
        device_.check(device_.driver().cuMemcpyDtoDAsync(sets_.snapshot_address(i), sets_.address(0, i),
                                                         bytes, device_.stream()),
                      "keeping the first output");
    }
}

void Verifier::count_differences() const {
    for (const std::size_t i : sets_.outputs()) {
        harness_.count_differences(sets_.address(0, i), sets_.snapshot_address(i),
                                   sets_.arguments()[i].bytes(), slot(difference_slots + i));
    }
}

void Verifier::check_guards() const {
    const auto check_around = [&](CUdeviceptr data, std::int64_t bytes, std::size_t count) {
        harness_.count_other(data - static_cast<CUdeviceptr>(guard_bytes), guard_bytes, guard_pattern,
                             slot(count));
        harness_.count_other(data + static_cast<CUdeviceptr>(bytes), guard_bytes, guard_pattern, slot(count));
    };
    for (const std::size_t i : sets_.outputs()) {
        check_around(sets_.address(0, i), sets_.arguments()[i].bytes(), output_guard_slot);
    }
    if (sets_.workspace_bytes() > 0) {
        check_around(sets_.workspace_address(), sets_.workspace_bytes(), workspace_guard_slot);
    }
}

void Verifier::check_inputs() const {
    for (int set = 0; set < verified_sets; ++set) {
        for (const std::size_t i : sets_.inputs()) {
            if (sets_.arguments()[i].appended) continue;
            harness_.checksum(sets_.address(set, i), sets_.arguments()[i].bytes(),
                              slot(checksum_slots + static_cast<std::size_t>(set)));
        }
    }
}

bool Verifier::inputs_changed(const Slots& slots) const {
    return !std::equal(input_checksums_.begin(), input_checksums_.end(), slots.begin() + checksum_slots);
}

Verdict Verifier::judge(const Slots& slots) const {
    if (const auto outside = slots[output_guard_slot]; outside > 0) {
        return wrong(fmt::format("wrote outside its outputs: {} bytes of the guard zones changed", outside));
    }
    if (const auto outside = slots[workspace_guard_slot]; outside > 0) {
        return wrong(
            fmt::format("wrote outside its workspace: {} bytes of the guard zones changed", outside));
    }
    if (inputs_changed(slots)) return wrong("changed its inputs");
    Verdict worst;
    for (const std::size_t i : sets_.outputs()) {
        for (int set = 0; set < verified_sets; ++set) {
            const Verdict verdict = judge_output(slots, i, set);
            if (!ok(verdict)) return verdict;
            worst.relative_l2 = std::max(worst.relative_l2, verdict.relative_l2);
        }
        if (const auto bytes = slots[difference_slots + i]; bytes > 0) {
            return wrong(fmt::format("launches disagree: output {} changed in {} bytes over {} launches",
                                     sets_.arguments()[i].name, bytes, agreeing_launches));
        }
    }
    return worst;
}

Verdict Verifier::judge_output(const Slots& slots, std::size_t argument, int set) const {
    const std::size_t first =
        compare_slots + (argument * verified_sets + static_cast<std::size_t>(set)) * compare_slot_count;
    std::array<std::uint64_t, compare_slot_count> words{};
    std::copy_n(slots.begin() + static_cast<std::ptrdiff_t>(first), compare_slot_count, words.begin());
    const auto found = std::bit_cast<CompareSlots>(words);
    const Argument& output = sets_.arguments()[argument];
    const double error = relative_l2(found);
    const auto index = output.elements() - static_cast<std::int64_t>(found.first_bad);
    if (found.non_finite > 0) {
        return wrong(fmt::format("output {}: {} elements are not finite or were not written, the first at {}",
                                 output.name, found.non_finite, index),
                     error);
    }
    if (found.beyond > 0) {
        return wrong(
            fmt::format(
                "output {}: {} elements are beyond the tolerance, the first at {}; relative error {:.2e}",
                output.name, found.beyond, index, error),
            error);
    }
    const double allowed = sets_.tolerances()[argument].relative_l2;
    if (!(error <= allowed)) {
        return wrong(
            fmt::format("output {}: relative error {:.2e} is above {:.2e}", output.name, error, allowed),
            error);
    }
    return {.detail = {}, .relative_l2 = error};
}

}  // namespace hone::tuner
