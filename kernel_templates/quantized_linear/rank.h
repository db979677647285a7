// What the spaces and cost models of several variants share: what the launch in front of a product costs.
#pragma once

#include "kernel_templates/linear/normalize_rank.h"
#include "kernel_templates/quantized_linear/quantized_linear.h"

namespace hone::quantized_linear {

/// The product as if weights had 16 bits, as linear's rules take it.
struct Dense : linear::LinearProblem {
    explicit Dense(const Problem& problem) : LinearProblem(QuantizedProblem(problem).dense()) {}
};

/// Modelled microseconds of the launch that makes codes of x (quantize.h); 0 where x comes as codes.
[[nodiscard]] double quantize_us(const QuantizedProblem&, const DeviceTraits&);
/// Those of the launch that makes of x what is multiplied, whether codes or a norm's results.
[[nodiscard]] double prepare_us(const QuantizedProblem&, const DeviceTraits&);

/// Calls of few tokens of packed weights in which stream, the fallback of all others, is behind: by walk, one
/// and two tokens of gated layers with weights of 4 bits, and by ring, two of other large layers and more of
/// any. (H200: of four layers with 4 tokens stream lost 33 % in the mean, ring loses 4; of gated ones with
/// one 17 and 1.)
[[nodiscard]] bool is_for_walk(const QuantizedProblem&, const DeviceTraits&);
[[nodiscard]] bool is_for_ring(const QuantizedProblem&, const DeviceTraits&);

}  // namespace hone::quantized_linear
