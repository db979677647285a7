// A head's sink: a learned logit that counts in the sum of a row's exponentials, beside the scores, and has
// no value. It meets a row when the row has seen all keys, for all variants; lse counts it, too, and a row
// that sees no key has zeros for a result and the sink for lse.
#pragma once

#include "attention_prefill/problem.cuh"
#include "device/math.cuh"

namespace hone::attention_prefill {

/// A row's sum of 2^(score - top), scores in powers of two, is joined by the sink: both are relative to the
/// new `top` afterwards, and what was added up beside the sum is when it is multiplied by the result.
__device__ inline float include_sink(const Call& call, int head, float& top, float& sum) {
    const float sink = call.sinks[head] * 1.4426950408889634f;
    const float both = fmaxf(top, sink);
    if (both == minus_infinity()) return 0.0f;
    const float factor = fast_exp2(top - both);
    sum = fmaf(sum, factor, fast_exp2(sink - both));
    top = both;
    return factor;
}

}  // namespace hone::attention_prefill
