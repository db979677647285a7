// How well codes of 4 bits fit a group of weights. Apart from the search that calls it: where a compiler
// knows the bounds of the codes it makes branches of them instead of vector code, and the loop takes four
// times as long.
#pragma once

#include <cstdint>

namespace hone::runtime {

/// Codes less the zero point reach from `low` to `high`.
struct Codes {
    float scale;
    float low;
    float high;
};

/// Added and subtracted, rounds magnitudes below 2^22 to whole numbers, ties to even.
inline constexpr float rounder = 0x1.8p23F;

/// The code nearest to a quotient, less the zero point.
inline float nearest(float quotient, float low, float high) {
    const float above = quotient < low ? low : quotient;
    return (above > high ? high : above) + rounder - rounder;
}

/// Of sums; as many as GCC makes a loop of vector code of, not single steps.
inline constexpr int error_lanes = 32;

/// Squared error of `count` values, a multiple of error_lanes, in float: `count` is small.
[[nodiscard]] float squared_error(const float* values, std::int64_t count, const Codes& codes);

/// The scale that is best for the codes that `codes` gives; 0 where all of them are zero.
[[nodiscard]] double best_scale_for(const float* values, std::int64_t count, const Codes& codes);

}  // namespace hone::runtime
