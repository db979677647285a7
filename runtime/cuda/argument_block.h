// The parameters of a kernel in one block, as the driver copies them (CU_LAUNCH_PARAM_BUFFER_POINTER), filled
// at each launch: those that kernel_templates/source.h renders, in order, each at its natural alignment.
// Immutable after construction; fill() allocates nothing.
#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernel_templates/plan.h"

namespace hone::runtime {

/// All parameters at their widest: every tensor map, and eight bytes for each other one.
inline constexpr std::size_t max_argument_bytes =
    max_tensor_maps * sizeof(CUtensorMap) + max_kernel_args * 8 + alignof(CUtensorMap);

/// What the parameters of a plan's launches are copied from.
struct ArgumentSources {
    /// Maps and values stay uninitialized: the plan fills those that it has.
    explicit ArgumentSources(const Call& given) noexcept : call(given) {}

    const Call& call;
    std::array<CUtensorMap, max_tensor_maps> maps;
    std::array<std::int64_t, max_plan_values> values;
};

/// Memory that the driver reads a kernel's parameters from.
struct alignas(CUtensorMap) ArgumentBlock {
    std::array<std::byte, max_argument_bytes> bytes;
};

class ArgumentLayout {
  public:
    ArgumentLayout() = default;
    /// Throws std::logic_error for a kernel of more than max_kernel_args parameters.
    explicit ArgumentLayout(const Kernel& kernel);

    /// Bytes of the block that the kernel takes.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

    /// Copies every parameter, and then the values that the launch takes in place of some.
    void fill(ArgumentBlock& block, const Launch& launch, const ArgumentSources& sources) const noexcept;

  private:
    /// Parameters that lie side by side at their source, too.
    struct Run {
        KernelArg::Kind kind = KernelArg::Kind::pointer;
        std::uint8_t index = 0;
        std::uint16_t to = 0;
        std::uint16_t bytes = 0;
    };
    struct Place {
        std::uint16_t at = 0;
        std::uint8_t bytes = 0;
    };
    void add(std::size_t parameter, const KernelArg& arg, std::size_t at);

    std::array<Run, max_kernel_args> runs_{};
    std::size_t run_count_ = 0;
    std::array<Place, max_kernel_args> places_{};
    std::size_t bytes_ = 0;
};

}  // namespace hone::runtime
