#include "checkpoints/pack/coded_methods.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "checkpoints/pack/linear_layers.h"
#include "checkpoints/pack/request.h"
#include "checkpoints/read/awq.h"
#include "checkpoints/read/fp8.h"
#include "checkpoints/read/gptq.h"
#include "hone/quantize.h"

namespace hone::checkpoints {
namespace {

WeightFormat gptq_format(const QuantizationConfig& config) {
    const GptqConfig gptq = gptq_config(config);
    const bool is_w4 = gptq.bits == 4;
    if (!is_w4 && gptq.group != 0) config.refuse("group_size", "-1 (whole rows) with bits 8");
    return {.format = is_w4 ? QuantFormat::w4a16 : QuantFormat::w8a16,
            .group = gptq.group,
            .zeros = is_w4 && !gptq.sym.value_or(false),
            .lm_head = config.boolean("lm_head").value_or(false)};
}

WeightFormat awq_format(const QuantizationConfig& config) {
    const AwqConfig awq = awq_config(config);
    return {.format = QuantFormat::w4a16, .group = awq.group, .zeros = awq.zero_point};
}

WeightFormat fp8_format(const QuantizationConfig& config) {
    require_fp8(config);
    const bool blocks = config.find("weight_block_size") != nullptr;
    return {.format = QuantFormat::fp8, .group = blocks ? 128 : 0};
}

/// What `hone quantize` has written.
WeightFormat packed_format(const QuantizationConfig& config) {
    if (config.integer({"layout"}) != packed_layout_version)
        config.refuse("layout", std::to_string(packed_layout_version));
    const std::string format = config.text({"format"}).value_or("");
    const auto found = std::ranges::find(quant_format_names, format);
    if (found == quant_format_names.end())
        config.refuse("format", fmt::format("{}", fmt::join(quant_format_names, ", ")));
    WeightFormat packed{.format = static_cast<QuantFormat>(found - quant_format_names.begin()),
                        .group = config.integer({"group"}).value_or(0),
                        .zeros = config.boolean("zeros").value_or(false)};
    const nlohmann::json* layers = config.find("layers");
    if (layers == nullptr || !layers->is_object())
        config.refuse("layers", "an object with [out, in] by name");
    for (const auto& [layer, _] : layers->items()) packed.lm_head |= is_language_head(layer);
    return packed;
}

std::unique_ptr<LayerSource> layers_as_they_are(const Checkpoint& checkpoint,
                                                const QuantizationConfig& config, const QuantizeRequest&) {
    return packed_layers(checkpoint, config);
}

const std::vector<CodedMethod>& methods() {
    static const std::vector<CodedMethod> all{
        {.names = {"gptq"}, .format = gptq_format, .layers = gptq_layers},
        {.names = {"awq"}, .format = awq_format, .layers = awq_layers},
        {.names = {"fp8", "compressed-tensors", "modelopt"}, .format = fp8_format, .layers = fp8_layers},
        {.names = {"hone"}, .format = packed_format, .layers = layers_as_they_are, .is_packed = true},
    };
    return all;
}

}  // namespace

const CodedMethod* find_coded_method(const QuantizationConfig& config) {
    const auto is_named = [&](const CodedMethod& method) {
        return std::ranges::find(method.names, config.method()) != method.names.end();
    };
    const auto found = std::ranges::find_if(methods(), is_named);
    return found == methods().end() ? nullptr : &*found;
}

const CodedMethod& coded_method(const QuantizationConfig& config) {
    if (const CodedMethod* method = find_coded_method(config); method != nullptr) return *method;
    config.refuse("quant_method", coded_method_names(true));
}

std::string coded_method_names(bool with_packed) {
    std::vector<std::string_view> names;
    for (const CodedMethod& method : methods()) {
        if (with_packed || !method.is_packed)
            names.insert(names.end(), method.names.begin(), method.names.end());
    }
    return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace hone::checkpoints
