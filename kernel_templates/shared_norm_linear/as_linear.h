// What variants have of linear's whose kernel they are: its rules and its predictions, for the product alone.
#pragma once

#include "kernel_templates/shared_norm_linear/shared_norm_linear.h"
#include "kernel_templates/space.h"

namespace hone::shared_norm_linear {

/// Whether the product alone could have the config. `variant`: linear's.
template <const Variant& variant>
[[nodiscard]] bool allowed_as_linear(const Problem& problem, const Config& config,
                                     const DeviceTraits& traits) {
    return allowed(linear_problem(problem), {&variant, config}, traits);
}
/// Microseconds of the product alone.
template <const Variant& variant>
[[nodiscard]] double as_linear(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    return predicted_us(linear_problem(problem), {&variant, config}, traits);
}

}  // namespace hone::shared_norm_linear
