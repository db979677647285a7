// What happens to a score, whoever computes it; maxima and weights are in powers of two.
#pragma once

#include "attention_decode/schedule.cuh"
#include "device/math.cuh"

namespace hone::attention_decode {

/// A maximum that may be subtracted: rows that saw nothing yet have none.
__device__ inline float finite_max(float max) { return max == -infinity ? 0.0f : max; }

/// softcap * tanh(score / softcap) * log2 e; tanh(x) = 1 - 2 / (1 + e^2x), exact where e^2x overflows.
__device__ inline float capped(float score, float softcap) {
    const float power = fast_exp2(score * (2.0f * log2_e / softcap));
    return softcap * log2_e * (1.0f - 2.0f * fast_reciprocal(1.0f + power));
}

/// By what scores are multiplied before anything else. A scale of 0 would make NaN of what is masked.
__device__ inline float scale_of(const Tensors& tensors, int list) {
    return tensors.scale * fmaxf(tensors.k_factor(kv_head_of(list)), 0x1p-100f);
}

}  // namespace hone::attention_decode
