// What becomes of a sum on its way out, for the families linear and quantized_linear alike; tensors.cuh has
// linear's call. A norm in front is folded into the products by few_tokens.cuh, or a launch of its own:
// normalize.cuh.
//   plain  out = activation(sum + bias) + residual
//   gated  out = activation(gate sum) * up sum
// All in float32, rounded once. out may be the residual itself: a result is written once, after its residual
// was read, by the thread that read it (or by the copy engine, which that thread has told).
#pragma once

#include "device/types.cuh"
#include "hone_constants.h"

namespace hone::linear {

using Element = DtypeOf<Shape::dtype>::type;

enum class Activation : int { none = 0, gelu_tanh = 1, gelu_erf = 2, silu = 3, relu = 4 };

inline constexpr int in = static_cast<int>(Shape::in);
inline constexpr int out = static_cast<int>(Shape::out);
/// x is normalized before it is multiplied.
inline constexpr bool has_norm = Shape::norm != 0;
/// Two weights [out, in]: the gate and up.
inline constexpr bool gated = Shape::gated != 0;
inline constexpr int products = gated ? 2 : 1;
inline constexpr bool has_bias = Shape::bias != 0;
inline constexpr bool has_residual = Shape::residual != 0;
inline constexpr Activation activation = static_cast<Activation>(Shape::activation);
/// Whether a sum (for a gated problem: what became of two) changes before it is rounded.
inline constexpr bool has_epilogue = !gated && (has_bias || has_residual || activation != Activation::none);

/// 2^x and 1 / x by the special function unit, about 2 units in the last place.
__device__ inline float fast_exp2(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
__device__ inline float fast_reciprocal(float x) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
/// x / (1 + exp(-x)); 0 far on the left, where exp overflows to infinity.
__device__ inline float silu(float x) {
    return x * fast_reciprocal(1.0f + fast_exp2(x * -1.4426950408889634f));
}
/// 0.5 x (1 + tanh(u)) = x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3).
__device__ inline float gelu_tanh(float x) {
    const float u = x * fmaf(0.035677408136300125f, x * x, 0.7978845608028654f);
    return x * fast_reciprocal(1.0f + fast_exp2(u * -2.8853900817779268f));
}
/// 0.5 x (1 + erf(x / sqrt(2))) through erfc(|z|) = P(t) exp(-z^2), t = 1 / (1 + 0.3275911 |z|): Abramowitz
/// and Stegun 7.1.26, off by 1.5e-7 at most. Negative x take erfc itself: nothing cancels.
__device__ inline float gelu_erf(float x) {
    const float z = fabsf(x) * 0.7071067811865476f;
    const float t = fast_reciprocal(fmaf(0.3275911f, z, 1.0f));
    float p = fmaf(1.061405429f, t, -1.453152027f);
    p = fmaf(p, t, 1.421413741f);
    p = fmaf(p, t, -0.284496736f);
    p = fmaf(p, t, 0.254829592f);
    const float tail = p * t * fast_exp2(z * z * -1.4426950408889634f);
    return 0.5f * x * (x < 0.0f ? tail : 2.0f - tail);
}
__device__ inline float activate(float x) {
    if constexpr (activation == Activation::gelu_tanh) return gelu_tanh(x);
    if constexpr (activation == Activation::gelu_erf) return gelu_erf(x);
    if constexpr (activation == Activation::silu) return silu(x);
    if constexpr (activation == Activation::relu) return fmaxf(x, 0.0f);
    return x;
}
__device__ inline float join_gated(float gate, float up) { return activate(gate) * up; }

}  // namespace hone::linear
