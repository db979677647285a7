// Right before fast: poisoned outputs between guard zones, the whole output against the reference for two
// seeds, ten launches that agree bit by bit, inputs that must not change. Everything is enqueued at once and
// judged on the GPU; one small array of counts comes back. Lives in the measuring worker; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/cuda/launcher.h"
#include "tuner/gpu/input_sets.h"

namespace hone::tuner {

inline constexpr int agreeing_launches = 10;

class Verifier {
  public:
    Verifier(DeviceContext& device, const Harness& harness, InputSets& sets);

    /// Runs the reference on the verified sets and remembers the inputs' checksums. Throws CudaError,
    /// DeadlinePassed.
    [[nodiscard]] Verdict begin(const runtime::LoadedPlan& reference, const Plan& plan,
                                Clock::time_point deadline);
    /// Throws CudaError for what the driver reports after the launch, DeadlinePassed.
    [[nodiscard]] Verdict verify(const runtime::LoadedPlan& candidate, const Plan& plan,
                                 Clock::time_point deadline);

  private:
    enum Slot : std::size_t {
        compare_slots = 0,  ///< [argument][verified set][compare_slot_count]
        difference_slots =
            compare_slots + max_call_pointers * verified_sets * compare_slot_count,  ///< [argument]
        output_guard_slot = difference_slots + max_call_pointers,
        workspace_guard_slot,
        checksum_slots,  ///< [verified set]
        slot_count = checksum_slots + verified_sets
    };
    using Slots = std::array<std::uint64_t, slot_count>;

    [[nodiscard]] CUdeviceptr slot(std::size_t index) const;
    [[nodiscard]] Verdict launch(const runtime::LoadedPlan& loaded, const Plan& plan, const Call& call) const;
    [[nodiscard]] Verdict first_launches(const runtime::LoadedPlan& candidate, const Plan& plan) const;
    [[nodiscard]] Verdict repeated_launches(const runtime::LoadedPlan& candidate, const Plan& plan) const;
    void compare_outputs(int set) const;
    void keep_snapshot() const;
    void count_differences() const;
    void check_guards() const;
    void check_inputs() const;
    void clear_slots() const;
    [[nodiscard]] Slots read_slots() const;
    [[nodiscard]] bool inputs_changed(const Slots& slots) const;
    [[nodiscard]] Verdict judge(const Slots& slots) const;
    [[nodiscard]] Verdict judge_output(const Slots& slots, std::size_t argument, int set) const;

    DeviceContext& device_;
    const Harness& harness_;
    InputSets& sets_;
    runtime::DeviceBuffer<std::uint64_t> slots_;
    std::array<std::uint64_t, verified_sets> input_checksums_{};
};

}  // namespace hone::tuner
