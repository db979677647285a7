// What is wrong with a call, in words that name the argument. Made only when a call was refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel_templates/family.h"

namespace hone::runtime {

/// A caller's own name of an argument of the family.
struct CallName {
    std::string_view family;
    std::string_view caller;
};
using CallNames = std::span<const CallName>;

class CallText {
  public:
    CallText(const Problem& problem, CallNames names);

    /// "weight is a null pointer"
    [[nodiscard]] std::string missing(std::size_t pointer) const;
    /// "x is at 0x1234; allowed: multiples of 16 bytes"
    [[nodiscard]] std::string misaligned(std::size_t pointer, const void* address, std::uint64_t bytes) const;
    /// "residual_stride is 4000; allowed: 4096 or more"
    [[nodiscard]] std::string short_stride(RowStride where, std::int64_t stride, std::int64_t least) const;
    /// "x_stride is 4097; allowed: multiples of 8 elements"
    [[nodiscard]] std::string misaligned_stride(RowStride where, std::uint64_t stride,
                                                std::uint64_t elements) const;
    /// "epsilon is -1; allowed: finite numbers from 0"
    [[nodiscard]] static std::string bad_epsilon(Scalar epsilon);

  private:
    [[nodiscard]] std::string_view called(std::string_view name) const;

    std::vector<Argument> arguments_;
    std::vector<ScalarArgument> scalars_;
    CallNames names_;
};

}  // namespace hone::runtime
