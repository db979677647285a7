// quantize() of quantize.h on a GPU: a weight in device memory becomes codes and scales in device memory, the
// same bits. A function, not an operator with a run(): it waits for the stream, reads a few bytes back to see
// whether every weight has a code, and throws. Thread-safe, with a workspace for each call.
#pragma once

#include <cstdint>

#include "hone/quantize_weights.h"
#include "hone/runtime.h"

namespace hone {

/// Quantizes `out` rows (0: does nothing) and waits until that is done. Throws Error: bad_argument naming the
/// argument, under stream capture, and, in the words of quantize(), for weights that are infinite or NaN and
/// for scales beyond the range of scale_dtype, after which what was written means nothing; the others as
/// Runtime::prepare().
void quantize_on_device(Runtime& runtime, const QuantizeWeights& weights, const QuantizeWeightsArgs& args,
                        std::int64_t out, CUstream_st* stream);

/// Bytes of device memory, aligned to 256, that quantizing `out` rows needs as its workspace. Throws as
/// Runtime::prepare().
[[nodiscard]] std::int64_t quantize_on_device_workspace(Runtime& runtime, const QuantizeWeights& weights,
                                                        std::int64_t out);

}  // namespace hone
