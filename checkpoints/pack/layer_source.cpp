#include "checkpoints/pack/layer_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoints/error.h"
#include "checkpoints/pack/coded_methods.h"
#include "checkpoints/pack/linear_layers.h"

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
    const CodedMethod* method = find_coded_method(*config);
    if (method == nullptr || method->is_packed)
        config->refuse("quant_method", "a checkpoint that Hone has not packed yet: " +
                                           coded_method_names(false) + ", or weights of 16 or 32 bits");
    return method->layers(checkpoint, *config, request);
}

void check_shapes(const LayerSource& source) {
    const LayerOutline& first = source.layers().front();
    for (const LayerOutline& layer : source.layers()) {
        check_shape(layer);
        if (layer.shape.group == first.shape.group) continue;
        throw CheckpointError(
            fmt::format("layer {} has groups of {} columns, and {} of {} (0: whole rows); allowed: "
                        "the same for all layers",
                        shown(layer.name), layer.shape.group, shown(first.name), first.shape.group));
    }
}

[[noreturn]] void refuse_wanted(const std::string& option, const QuantizationConfig& config,
                                const std::string& what) {
    throw CheckpointError(
        fmt::format("{}: {} says that the weights have codes already, {}; allowed: what they are, or no "
                    "--format",
                    option, config.place(), what));
}

void require_wanted(const QuantizeRequest& wanted, const LayerSource& source,
                    const QuantizationConfig& config) {
    const PackedShape& shape = source.layers().front().shape;
    if (wanted.format != shape.format)
        refuse_wanted(fmt::format("--format {}", name(wanted.format)), config,
                      fmt::format("of the format {}", name(shape.format)));
    if (wanted.group && *wanted.group != shape.group)
        refuse_wanted(fmt::format("--group {}", *wanted.group), config,
                      fmt::format("in groups of {} columns (0: whole rows)", shape.group));
    if (wanted.zeros && !shape.zeros) refuse_wanted("--zeros", config, "without zero points");
    if (wanted.lm_head && std::ranges::none_of(source.layers(), [](const LayerOutline& layer) {
            return is_language_head(layer.name);
        }))
        refuse_wanted("--lm-head", config, "but for the language head");
}

}  // namespace

std::unique_ptr<LayerSource> layer_source(const Checkpoint& checkpoint, const QuantizeRequest& request) {
    std::unique_ptr<LayerSource> source = source_of(checkpoint, request);
    check_shapes(*source);
    return source;
}

std::unique_ptr<LayerSource> coded_layers(const Checkpoint& checkpoint, const QuantizationConfig& config,
                                          const std::optional<QuantizeRequest>& wanted) {
    const CodedMethod& method = coded_method(config);
    const WeightFormat format = method.format(config);
    std::unique_ptr<LayerSource> source =
        method.layers(checkpoint, config, {.format = wanted ? wanted->format : *format.format});
    check_shapes(*source);
    if (wanted) require_wanted(*wanted, *source, config);
    return source;
}

PackedLayer pack_layer(const LayerSource& source, const LayerOutline& layer) {
    try {
        return source.pack(layer);
    } catch (const Error& error) {
        throw CheckpointError(
            fmt::format("layer {}: {} ({})", shown(layer.name), error.what(), error.hint()));
    }
}

void check_shape(const LayerOutline& layer) {
    try {
        check(layer.shape);
    } catch (const Error& error) {
        throw CheckpointError(fmt::format("layer {}: {}", shown(layer.name), error.what()));
    }
}

}  // namespace hone::checkpoints
