// Layers of checkpoints in FP8. Of a layer [out, in]:
//   weight            F8_E4M3 [out, in]
//   weight_scale      one number, [out] or [out, 1]; or
//   weight_scale_inv  [ceil(out / 128), ceil(in / 128)], one number for 128 x 128 elements
// An element is its code's value times the scale; weight_scale_inv, whatever its name, is multiplied as well.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoints/read/checkpoint.h"
#include "checkpoints/read/quantization_config.h"

namespace hone::checkpoints {

enum class Fp8Scales : std::uint8_t { tensor, row, block };

struct Fp8Weight {
    std::int64_t out = 0;
    std::int64_t in = 0;
    std::vector<std::uint8_t> codes;  ///< [out, in], none of them NaN
    Fp8Scales kind = Fp8Scales::tensor;
    std::vector<float> scales;       ///< finite and not 0: one, [out], or [ceil(out / 128), ceil(in / 128)]
    std::vector<std::string> notes;  ///< what of the layer was left aside, in words
};

/// Throws CheckpointError unless the checkpoint says that its weights are E4M3 codes, with blocks of 128 x
/// 128 if any: quant_method "fp8", "compressed-tensors" in the format "float-quantized", or "modelopt" with
/// the quant_algo "FP8".
void require_fp8(const QuantizationConfig& config);

/// How a layer's scales stand, by their tensors' names and shapes; nothing is read. Throws CheckpointError as
/// read_fp8() does.
[[nodiscard]] Fp8Scales fp8_scales(const Checkpoint& checkpoint, const std::string& layer, std::int64_t out,
                                   std::int64_t in);

/// The tensors `layer`.weight and so on ("model.layers.0.mlp.up_proj"). input_scale, a scale for x that was
/// fixed in advance, is left aside with a note: x is scaled by what it holds. Throws CheckpointError for
/// tensors that are not as above and for NaN among the codes.
[[nodiscard]] Fp8Weight read_fp8(const Checkpoint& checkpoint, const std::string& layer);

}  // namespace hone::checkpoints
