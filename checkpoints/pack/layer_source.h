// The linear layers of a checkpoint, whatever it holds, as weights packed in Hone's layout. One kind of
// checkpoint a class; layer_source() knows which one takes what. Reading keeps no state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/pack/request.h"
#include "checkpoints/read/checkpoint.h"
#include "checkpoints/read/quantization_config.h"
#include "hone/quantize.h"

namespace hone::checkpoints {

/// A layer before it is read: its tensors, and what it will be.
struct LayerOutline {
    std::string name;                  ///< "model.layers.0.mlp.up_proj"
    std::vector<std::string> tensors;  ///< that it is made of; the weight or its codes are the first
    PackedShape shape;
    bool input_order = false;  ///< its columns stand in another order than the elements of x
};

struct PackedLayer {
    /// Its loss is against what the checkpoint says, codes times scales where it holds codes.
    QuantizedWeight weight;
    /// Where the outline says so, of each column the element of x that it is multiplied with: a permutation
    /// of [0, in). Else empty.
    std::vector<std::int32_t> input_order;
    std::vector<std::string> notes;  ///< what of the layer was left aside, in words
};

class LayerSource {
  public:
    LayerSource() = default;
    LayerSource(const LayerSource&) = delete;
    LayerSource& operator=(const LayerSource&) = delete;
    virtual ~LayerSource() = default;

    /// What the weights are: "bf16", "gptq", "awq", "fp8", "hone".
    [[nodiscard]] virtual std::string kind() const = 0;
    /// fp16 or bf16: of w4a16's scales, and what x is meant to be.
    [[nodiscard]] virtual Dtype dtype() const = 0;
    /// All layers, at least one, with shapes that check() accepts; they have group, zeros and
    /// input_order in common.
    [[nodiscard]] virtual const std::vector<LayerOutline>& layers() const = 0;
    /// One of layers(). Throws CheckpointError or Error for what the format cannot hold.
    [[nodiscard]] virtual PackedLayer pack(const LayerOutline& layer) const = 0;
};

/// Reads names and shapes alone. `checkpoint` has to live as long as what is returned. Throws CheckpointError
/// where the checkpoint's kind does not go with the request.
[[nodiscard]] std::unique_ptr<LayerSource> layer_source(const Checkpoint& checkpoint,
                                                        const QuantizeRequest& request);

/// The layers of which a checkpoint has codes, as `config` says: those of other tools in the format that
/// weight_format() names, and those that `hone quantize` has packed. What `wanted` says has to hold of them:
/// its format (of GPTQ's 8 bits w8a8, too), its group and zeros where they are given, its lm_head; the rest
/// has no meaning. Lifetime and errors as of layer_source().
[[nodiscard]] std::unique_ptr<LayerSource> coded_layers(const Checkpoint& checkpoint,
                                                        const QuantizationConfig& config,
                                                        const std::optional<QuantizeRequest>& wanted);

/// source.pack(layer), whose Error becomes a CheckpointError that names the layer.
[[nodiscard]] PackedLayer pack_layer(const LayerSource& source, const LayerOutline& layer);

/// Throws CheckpointError, naming the layer, unless check() takes its shape.
void check_shape(const LayerOutline& layer);

/// The kinds that the functions above choose from. `config` is the checkpoint's quantization config.
[[nodiscard]] std::unique_ptr<LayerSource> number_layers(const Checkpoint& checkpoint,
                                                         const QuantizeRequest& request);
[[nodiscard]] std::unique_ptr<LayerSource> gptq_layers(const Checkpoint& checkpoint,
                                                       const QuantizationConfig& config,
                                                       const QuantizeRequest& request);
[[nodiscard]] std::unique_ptr<LayerSource> awq_layers(const Checkpoint& checkpoint,
                                                      const QuantizationConfig& config,
                                                      const QuantizeRequest& request);
[[nodiscard]] std::unique_ptr<LayerSource> fp8_layers(const Checkpoint& checkpoint,
                                                      const QuantizationConfig& config,
                                                      const QuantizeRequest& request);
/// What `hone quantize` has written.
[[nodiscard]] std::unique_ptr<LayerSource> packed_layers(const Checkpoint& checkpoint,
                                                         const QuantizationConfig& config);

}  // namespace hone::checkpoints
