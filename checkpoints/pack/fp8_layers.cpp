// Layers of checkpoints in FP8: codes and scales as they are.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "checkpoints/error.h"
#include "checkpoints/pack/layer_source.h"
#include "checkpoints/pack/linear_layers.h"
#include "checkpoints/pack/model_config.h"
#include "checkpoints/read/fp8.h"
#include "checkpoints/read/layer_tensors.h"

namespace hone::checkpoints {
namespace {

constexpr std::int64_t block = 128;

class Fp8Layers : public LayerSource {
  public:
    Fp8Layers(const Checkpoint& checkpoint, const QuantizationConfig& config, const QuantizeRequest& request)
        : checkpoint_(checkpoint), dtype_(request.dtype.value_or(model_dtype(model_config(checkpoint)))) {
        require_fp8(config);
        if (request.format != QuantFormat::fp8)
            config.refuse(
                "quant_method",
                fmt::format("gptq, awq, or weights of 16 or 32 bits with --format {}", name(request.format)));
        for (const auto& [name, tensor] : checkpoint.tensors()) {
            const std::optional<std::string> layer = layer_named(name, ".weight");
            if (layer && tensor->type == StoredType::f8_e4m3) layers_.push_back(outline_of(*layer, *tensor));
        }
        if (layers_.empty())
            throw CheckpointError(
                fmt::format("{}: no layers with a tensor NAME.weight of F8_E4M3, though {} says {}",
                            checkpoint.path().string(), config.place(), config.method()));
    }

    std::string kind() const override { return "fp8"; }
    Dtype dtype() const override { return dtype_; }
    const std::vector<LayerOutline>& layers() const override { return layers_; }

    PackedLayer pack(const LayerOutline& layer) const override {
        Fp8Weight weight = read_fp8(checkpoint_, layer.name);
        const auto negative = std::ranges::find_if(weight.scales, [](float scale) { return scale < 0; });
        if (negative != weight.scales.end())
            throw CheckpointError(fmt::format("layer {}: scale {} is {}; allowed with fp8: above 0",
                                              shown(layer.name), negative - weight.scales.begin(),
                                              *negative));
        PackedLayer packed{
            .weight = {.shape = layer.shape}, .input_order = {}, .notes = std::move(weight.notes)};
        packed.weight.codes = std::move(weight.codes);
        const auto scales = std::as_bytes(std::span(weight.scales));
        packed.weight.scales.resize(scales.size());
        std::memcpy(packed.weight.scales.data(), scales.data(), scales.size());
        return packed;
    }

  private:
    LayerOutline outline_of(const std::string& layer, const StoredTensor& weight) const {
        require_matrix(weight);
        LayerOutline outline{.name = layer,
                             .tensors = {},
                             .shape = {.format = QuantFormat::fp8,
                                       .out = static_cast<std::int64_t>(weight.shape[0]),
                                       .in = static_cast<std::int64_t>(weight.shape[1]),
                                       .scale_dtype = dtype_}};
        for (const char* part : {".weight", ".weight_scale", ".weight_scale_inv", ".input_scale"}) {
            if (checkpoint_.find(layer + part) != nullptr) outline.tensors.push_back(layer + part);
        }
        const Fp8Scales scales = fp8_scales(checkpoint_, layer, outline.shape.out, outline.shape.in);
        if (scales == Fp8Scales::block) outline.shape.group = block;
        outline.shape.one_scale = scales == Fp8Scales::tensor;
        return outline;
    }

    const Checkpoint& checkpoint_;
    Dtype dtype_;
    std::vector<LayerOutline> layers_;
};

}  // namespace

std::unique_ptr<LayerSource> fp8_layers(const Checkpoint& checkpoint, const QuantizationConfig& config,
                                        const QuantizeRequest& request) {
    return std::make_unique<Fp8Layers>(checkpoint, config, request);
}

}  // namespace hone::checkpoints
