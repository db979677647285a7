// The scale and zero point of a group of w4a16, as kernel_templates/quantize_weights/scale_rule.cuh says.
#pragma once

#include <cstdint>

#include "kernel_templates/dtype.h"
#include "kernel_templates/quantize_weights/scale_rule.cuh"

namespace hone::runtime {

struct GroupScale {
    std::uint16_t bits = 0;  ///< `scale` as it is stored
    float scale = 0;
    int zero = 8;
    bool too_large = false;  ///< the scale that clips nothing is beyond its dtype; the rest means nothing
};

struct GroupRule {
    bool zeros = false;  ///< else the zero point is 8 and the scale may be negative
    bool search = true;  ///< else the scale that clips nothing
    Dtype scale_dtype = Dtype::bf16;
};

inline constexpr std::int64_t room_beyond = quantize_weights::lanes;

/// The scale of `count` finite values, at least one. `room` holds `count` + room_beyond values.
[[nodiscard]] GroupScale choose_scale(const float* values, std::int64_t count, const GroupRule& rule,
                                      float* room);

/// codes[i] = the one nearest to values[i] / scale + zero of 0 to 15, ties to even; 0 for scale means `zero`
/// for all.
void encode_w4(const float* values, std::int64_t count, const GroupScale& scale, std::uint8_t* codes);

}  // namespace hone::runtime
