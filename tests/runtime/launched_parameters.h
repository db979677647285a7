// What a launch hands its kernel: the parameters in the one block, read as the kernel would.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "kernel_templates/plan.h"

namespace hone::test {

/// Parameters that are narrower stand in the low bytes.
[[nodiscard]] inline std::vector<std::uint64_t> launched_parameters(std::span<const KernelArg> args,
                                                                    void** packed) {
    std::vector<std::uint64_t> values;
    std::size_t at = 0;
    for (const KernelArg& arg : args) {
        at = (at + arg.alignment() - 1) / arg.alignment() * arg.alignment();
        std::memcpy(&values.emplace_back(), static_cast<const std::byte*>(packed[1]) + at, arg.bytes());
        at += arg.bytes();
    }
    return values;
}

}  // namespace hone::test
