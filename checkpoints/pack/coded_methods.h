// The quantization methods whose checkpoints are read: of each its names in a quantization config, what its
// config says, and who reads its layers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoints/pack/layer_source.h"
#include "checkpoints/pack/weight_format.h"

namespace hone::checkpoints {

struct CodedMethod {
    std::vector<std::string_view> names;  ///< that `quant_method` has
    /// What the linear layers are, by the config alone. Throws CheckpointError.
    WeightFormat (*format)(const QuantizationConfig& config);
    /// The layers of such a checkpoint in the request's format.
    std::unique_ptr<LayerSource> (*layers)(const Checkpoint& checkpoint, const QuantizationConfig& config,
                                           const QuantizeRequest& request);
    bool is_packed = false;  ///< by `hone quantize`: not to be packed again
};

/// nullptr for a method that there is not.
[[nodiscard]] const CodedMethod* find_coded_method(const QuantizationConfig& config);
/// Throws CheckpointError with the names of all for a method that there is not.
[[nodiscard]] const CodedMethod& coded_method(const QuantizationConfig& config);
/// "gptq, awq, fp8", for messages: of other tools, or of all.
[[nodiscard]] std::string coded_method_names(bool with_packed);

}  // namespace hone::checkpoints
