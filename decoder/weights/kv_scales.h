// What the codes of a cache of keys and values are multiplied by, as checkpoints have it that were calibrated
// for one: compressed-tensors', ModelOpt's and vLLM's.
#pragma once

#include <vector>

#include "decoder/model/description.h"
#include "decoder/weights/weight_source.h"

namespace hone::decoder {

/// [layers, kv_heads]
struct KvScales {
    std::vector<float> k;
    std::vector<float> v;
};

/// Of each layer one number for all heads, or one a head; 1 where a layer has neither of its two. Throws
/// CheckpointError or DecoderError naming the tensor: one of the two alone, another shape, a number that is
/// no scale.
[[nodiscard]] KvScales read_kv_scales(const WeightSource& source, const Description& model);

}  // namespace hone::decoder
