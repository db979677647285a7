// One problem's memory on the GPU: K rotating sets of inputs and weights that together with the outputs
// exceed three times L2; one set of outputs, which every call writes anew, as engines and framework
// allocators reuse activations; the reference's outputs for two of the sets, and a workspace. Guard zones
// stand before and after every output and the workspace. One arena holds it all and is kept from problem to
// problem. Lives in the measuring worker; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernel_templates/plan.h"
#include "runtime/cuda/memory.h"
#include "tuner/gpu/device_context.h"
#include "tuner/gpu/harness.h"
#include "tuner/measure/wire.h"

namespace hone::tuner {

inline constexpr std::int64_t guard_bytes = 256;
inline constexpr std::uint8_t guard_pattern = 0xA5;
inline constexpr std::uint8_t poison = 0xFF;  ///< NaN in every float format
inline constexpr int verified_sets = 2;       ///< the reference runs on this many, each from another seed

/// How many sets rotate: enough to exceed three times L2 together, 2 to 64, as memory allows.
[[nodiscard]] int set_count(double bytes_per_call, std::int64_t l2_bytes, std::int64_t free_bytes,
                            std::int64_t bytes_per_set);

class InputSets {
  public:
    InputSets(DeviceContext& device, const Harness& harness) : device_(device), harness_(harness) {}

    /// Lays out and fills everything, and enqueues checksums of the inputs. Throws CudaError (out of memory
    /// when not even two sets fit).
    void prepare(const ProblemSetup& setup);

    [[nodiscard]] int count() const { return count_; }
    /// Calls of a sample, which goes through all sets: once, or, where a call does little else than read
    /// weights or a cache, until it has ten calls. There one call's end runs beside the next one's beginning,
    /// and the first call, which begins alone and writes back what stood in L2, has to weigh little.
    [[nodiscard]] int calls() const { return calls_; }
    /// What all sets and the outputs take: more than L2, or small enough to stay there.
    [[nodiscard]] std::int64_t touched_bytes() const { return count_ * set_bytes_ + output_bytes_; }
    [[nodiscard]] const std::vector<Argument>& arguments() const { return arguments_; }
    [[nodiscard]] const std::vector<Tolerance>& tolerances() const { return tolerances_; }
    /// Indices of the arguments that are present, ascending.
    [[nodiscard]] const std::vector<std::size_t>& outputs() const { return outputs_; }
    [[nodiscard]] const std::vector<std::size_t>& inputs() const { return inputs_; }
    [[nodiscard]] bool has_appended() const;

    [[nodiscard]] Call call(int set) const;
    /// The same inputs, with float32 outputs for the reference.
    [[nodiscard]] Call reference_call(int set) const;
    [[nodiscard]] CUdeviceptr address(int set, std::size_t argument) const;
    [[nodiscard]] CUdeviceptr reference_address(int set, std::size_t argument) const;
    [[nodiscard]] CUdeviceptr snapshot_address(std::size_t argument) const;  ///< a copy of an output
    [[nodiscard]] CUdeviceptr workspace_address() const;

    /// Makes room for a workspace of at least this size. Throws CudaError.
    void reserve_workspace(std::int64_t bytes);
    /// How often its address has changed: captured graphs hold the old one.
    [[nodiscard]] int workspace_moves() const { return workspace_moves_; }
    /// Makes room for a workspace of exactly this size between two guard zones, filled with poison. Throws
    /// CudaError.
    void size_workspace(std::int64_t bytes);
    [[nodiscard]] std::int64_t workspace_bytes() const { return workspace_bytes_; }
    void poison_outputs() const;
    /// Fills every input of every set, always with the same values for a problem.
    void fill_inputs() const;
    /// Reads every input of every set: they are in L2 then, as far as they fit, as another operator would
    /// have left them, whatever ran before.
    void warm_inputs();
    /// Fills every guard zone of the outputs again.
    void fill_guards() const;

  private:
    struct Slot {
        std::int64_t offset = -1;  ///< in the set, or among the outputs; -1: absent
        std::int64_t bytes = 0;
    };
    [[nodiscard]] bool is_output(std::size_t argument) const;
    [[nodiscard]] bool is_input(std::size_t argument) const;
    void lay_out();
    [[nodiscard]] bool reads_weights() const;
    void reserve(std::int64_t bytes);
    void memset8(CUdeviceptr at, std::uint8_t value, std::int64_t bytes) const;
    void guard(CUdeviceptr data, std::int64_t bytes) const;

    DeviceContext& device_;
    const Harness& harness_;
    std::vector<Argument> arguments_;
    std::vector<std::size_t> outputs_;
    std::vector<std::size_t> inputs_;
    std::vector<Tolerance> tolerances_;
    std::vector<Scalar> scalars_;
    std::array<Slot, max_call_pointers> slots_{};
    std::array<std::int64_t, max_call_pointers> reference_offsets_{};
    std::array<std::int64_t, max_call_pointers> snapshot_offsets_{};
    std::int64_t set_bytes_ = 0;
    std::int64_t output_bytes_ = 0;
    std::int64_t reference_bytes_ = 0;  ///< one set's
    std::int64_t snapshot_bytes_ = 0;
    int count_ = 0;
    int calls_ = 0;
    std::uint64_t seed_ = 0;
    runtime::DeviceBuffer<std::byte> arena_;
    runtime::DeviceBuffer<std::byte> workspace_;
    runtime::DeviceBuffer<std::uint64_t> unread_;  ///< what reading inputs gives, for nobody
    std::int64_t workspace_bytes_ = 0;
    int workspace_moves_ = 0;
};

}  // namespace hone::tuner
