#include "checkpoints/pack/layer_source.h"

#include <fmt/format.h>

#include "checkpoints/error.h"

namespace hone::checkpoints {
namespace {

/// Options that choose how to quantize mean nothing where that has been done.
void refuse_choices(const QuantizeRequest& request, const QuantizationConfig& config) {
    const char* given = request.group           ? "--group"
                        : request.zeros         ? "--zeros"
                        : !request.search       ? "--no-search"
                        : request.lm_head       ? "--lm-head"
                        : !request.skip.empty() ? "--skip"
                                                : nullptr;
    if (given == nullptr) return;
    throw CheckpointError(fmt::format(
        "{} goes with weights of 16 or 32 bits; {} says that these are quantized ({}), and they are "
        "packed as they are",
        given, config.place(), shown(config.method())));
}

std::unique_ptr<LayerSource> source_of(const Checkpoint& checkpoint, const QuantizeRequest& request) {
    const std::optional<QuantizationConfig> config = QuantizationConfig::read(checkpoint.folder());
    if (!config) return number_layers(checkpoint, request);
    refuse_choices(request, *config);
    const std::string& method = config->method();
    if (method == "gptq" || method == "awq") return grouped_layers(checkpoint, *config, request);
    if (method == "fp8" || method == "compressed-tensors") return fp8_layers(checkpoint, *config, request);
    if (method == "hone") config->refuse("quant_method", "a checkpoint that Hone has not packed yet");
    config->refuse("quant_method", "gptq, awq, fp8, compressed-tensors, or weights of 16 or 32 bits");
}

void check_shape(const LayerOutline& layer, const LayerOutline& first) {
    try {
        check(layer.shape);
    } catch (const Error& error) {
        throw CheckpointError(fmt::format("layer {}: {}", shown(layer.name), error.what()));
    }
    if (layer.shape.group == first.shape.group) return;
    throw CheckpointError(
        fmt::format("layer {} has groups of {} columns, and {} of {} (0: whole rows); allowed: "
                    "the same for all layers",
                    shown(layer.name), layer.shape.group, shown(first.name), first.shape.group));
}

}  // namespace

std::unique_ptr<LayerSource> layer_source(const Checkpoint& checkpoint, const QuantizeRequest& request) {
    std::unique_ptr<LayerSource> source = source_of(checkpoint, request);
    for (const LayerOutline& layer : source->layers()) check_shape(layer, source->layers().front());
    return source;
}

}  // namespace hone::checkpoints
