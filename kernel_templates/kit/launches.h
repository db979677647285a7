// Pieces that launch plans are made of. All are evaluated at each call: they allocate nothing.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "kernel_templates/plan.h"

namespace hone {

/// A grid of one dimension.
[[nodiscard]] constexpr Dim3 grid_of(std::int64_t blocks) {
    return {static_cast<std::uint32_t>(blocks), 1, 1};
}

/// `grid` blocks of `threads` threads of a kernel.
[[nodiscard]] constexpr Launch launch(const Kernel& kernel, Dim3 grid, std::int64_t threads) {
    Launch launch;
    launch.kernel = &kernel;
    launch.grid = grid;
    launch.block = {static_cast<std::uint32_t>(threads), 1, 1};
    return launch;
}

/// A plan of one launch, which needs no workspace.
[[nodiscard]] constexpr Plan plan_of(const Launch& launch) {
    Plan plan;
    plan.launch_count = 1;
    // Member by member: copied as a whole, the words just written would be read back by wider loads, which
    // wait for all of them.
    Launch& only = plan.launches[0];
    only.kernel = launch.kernel;
    only.grid = launch.grid;
    only.block = launch.block;
    only.cluster = launch.cluster;
    only.shared_bytes = launch.shared_bytes;
    only.programmatic = launch.programmatic;
    only.substitution_count = launch.substitution_count;
    only.substitutions = launch.substitutions;
    return plan;
}

/// Adds a number that the plan makes up; returns its index in Plan::values.
constexpr std::uint8_t add_value(Plan& plan, const PlanValue& value) {
    plan.values[static_cast<std::size_t>(plan.value_count)] = value;
    return static_cast<std::uint8_t>(plan.value_count++);
}

/// Adds a tensor map; returns its index in Plan::tensor_maps.
constexpr std::uint8_t add_map(Plan& plan, const TensorMap& map) {
    plan.tensor_maps[static_cast<std::size_t>(plan.tensor_map_count)] = map;
    return static_cast<std::uint8_t>(plan.tensor_map_count++);
}

/// The launch takes value number `value` of its plan for the call's argument `what`, where its kernel has
/// that.
constexpr void substitute(Launch& launch, const KernelArg& what, std::uint8_t value) {
    for (std::size_t i = 0; i < launch.kernel->args.size(); ++i) {
        const KernelArg& arg = launch.kernel->args[i];
        if (arg.kind != what.kind || arg.index != what.index) continue;
        launch.substitutions[launch.substitution_count++] = {static_cast<std::uint8_t>(i), value};
    }
}

/// The same for one parameter, by its place in Kernel::args: where several take one argument.
constexpr void substitute(Launch& launch, std::uint8_t parameter, std::uint8_t value) {
    launch.substitutions[launch.substitution_count++] = {parameter, value};
}

/// The call's arguments followed by others, for a kernel that takes more than the call.
template <std::size_t first, std::size_t second>
[[nodiscard]] consteval std::array<KernelArg, first + second> join(const KernelArg (&call)[first],
                                                                   const KernelArg (&more)[second]) {
    std::array<KernelArg, first + second> all{};
    for (std::size_t i = 0; i < first; ++i) all[i] = call[i];
    for (std::size_t i = 0; i < second; ++i) all[first + i] = more[i];
    return all;
}

/// The same arguments in another order: those that `last` lists, all of them there, stand behind the others.
template <std::size_t count, std::size_t moved>
[[nodiscard]] consteval std::array<KernelArg, count> with_last(const std::array<KernelArg, count>& args,
                                                               const KernelArg (&last)[moved]) {
    std::array<KernelArg, count> all{};
    std::size_t next = 0;
    for (const KernelArg& arg : args) {
        bool stays = true;
        for (const KernelArg& other : last) stays &= arg.kind != other.kind || arg.index != other.index;
        if (stays) all[next++] = arg;
    }
    for (const KernelArg& arg : last) all[next++] = arg;
    return all;
}

}  // namespace hone
