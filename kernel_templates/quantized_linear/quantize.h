// Codes of 16-bit x in a launch in front of a product of codes (quantize.cuh on the device). The variant
// plans as if x came as codes, wraps that plan, adds the cost, and its .cu includes quantize.cuh.
#pragma once

#include "kernel_templates/quantized_linear/quantized_linear.h"

namespace hone::quantized_linear {

/// `product` behind a launch that writes codes of x [tokens, in] and their scales [tokens, groups] into the
/// workspace, behind what `product` keeps there; whatever in `product` names x, x_scales and their strides
/// names those instead. Where x comes as codes `product` itself.
[[nodiscard]] Plan quantize_first(const QuantizedProblem&, const Plan& product);

/// Modelled microseconds of that launch; 0 where x comes as codes.
[[nodiscard]] double quantize_us(const QuantizedProblem&, const DeviceTraits&);

/// `product` behind the launch that makes of x what is multiplied, where the problem needs one: codes, or a
/// norm's results (linear/normalize.h).
[[nodiscard]] Plan prepare_first(const QuantizedProblem&, const Plan& product);
[[nodiscard]] double prepare_us(const QuantizedProblem&, const DeviceTraits&);

}  // namespace hone::quantized_linear
