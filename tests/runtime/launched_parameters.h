// What a launch hands its kernel: the parameters, read as the driver would.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "kernel_templates/plan.h"

namespace hone::test {

/// Parameters that are narrower stand in the low bytes.
[[nodiscard]] inline std::vector<std::uint64_t> launched_parameters(std::span<const KernelArg> args,
                                                                    void** parameters) {
    std::vector<std::uint64_t> values;
    for (std::size_t i = 0; i < args.size(); ++i)
        std::memcpy(&values.emplace_back(), parameters[i], args[i].bytes());
    return values;
}

}  // namespace hone::test
