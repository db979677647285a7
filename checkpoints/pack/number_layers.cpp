// Weights of 32 or 16 bits: quantized.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "checkpoints/error.h"
#include "checkpoints/pack/layer_source.h"
#include "checkpoints/pack/linear_layers.h"
#include "checkpoints/pack/model_config.h"
#include "kernel_templates/text.h"
#include "runtime/system/strict_json.h"

namespace hone::checkpoints {
namespace {

Dtype dtype_of(StoredType type) {
    if (type == StoredType::f16) return Dtype::fp16;
    return type == StoredType::bf16 ? Dtype::bf16 : Dtype::fp32;
}

/// The models whose linear layers are stored the other way round, [in, out], as only their code says.
void refuse_transposed(const nlohmann::json& config) {
    const auto type = config.find("model_type");
    if (type == config.end()) return;
    for (const char* transposed : {"gpt2", "openai-gpt", "imagegpt", "decision_transformer"}) {
        if (!runtime::is_text(*type, transposed)) continue;
        throw CheckpointError(
            fmt::format("config.json: model_type is {}, whose linear layers are stored as [in, out]; "
                        "allowed: models that "
                        "store them as [out, in]",
                        transposed));
    }
}

/// Codes without the config that says what they mean would be copied as if they were numbers.
void refuse_codes(const Checkpoint& checkpoint) {
    for (const auto& [name, tensor] : checkpoint.tensors()) {
        const bool codes = tensor->type == StoredType::f8_e4m3 || name.ends_with(".qweight");
        if (!codes) continue;
        throw CheckpointError(fmt::format(
            "{}: is quantized already, but {} has no config that says how; allowed: config.json with "
            "quantization_config beside it",
            tensor->place, checkpoint.folder().string()));
    }
}

class NumberLayers : public LayerSource {
  public:
    NumberLayers(const Checkpoint& checkpoint, const QuantizeRequest& request)
        : checkpoint_(checkpoint), request_(request) {
        refuse_codes(checkpoint);
        const nlohmann::json config = model_config(checkpoint);
        refuse_transposed(config);
        const std::vector<std::string> names = chosen_names();
        const Dtype first = dtype_of(checkpoint.at(names.front() + ".weight").type);
        kind_ = name(first);
        dtype_ = request.dtype.value_or(first == Dtype::fp32 ? model_dtype(config) : first);
        for (const std::string& layer : names) layers_.push_back(outline_of(layer));
    }

    std::string kind() const override { return kind_; }
    Dtype dtype() const override { return dtype_; }
    const std::vector<LayerOutline>& layers() const override { return layers_; }

    PackedLayer pack(const LayerOutline& layer) const override {
        const StoredTensor& weight = checkpoint_.at(layer.tensors.front());
        return {.weight =
                    quantize(weight.bytes(), dtype_of(weight.type), layer.shape, {.search = request_.search}),
                .input_order = {},
                .notes = {}};
    }

  private:
    std::vector<std::string> chosen_names() const {
        std::vector<std::string> linear;
        for (const auto& [name, tensor] : checkpoint_.tensors()) {
            const std::optional<std::string> layer = layer_named(name, ".weight");
            if (layer && is_linear(*layer, *tensor)) linear.push_back(*layer);
        }
        check_skipped(linear);
        std::erase_if(linear, [&](const std::string& layer) {
            return (!request_.lm_head && is_language_head(layer)) ||
                   std::ranges::any_of(request_.skip,
                                       [&](const std::string& part) { return is_part(part, layer); });
        });
        if (!linear.empty()) return linear;
        throw CheckpointError(
            fmt::format("{}: no linear layers to quantize: matrices NAME.weight of F32, F16 or "
                        "BF16 that are neither skipped, embeddings, nor (without --lm-head) the "
                        "language head",
                        checkpoint_.path().string()));
    }

    /// A name that means no layer is a slip of the pen.
    void check_skipped(const std::vector<std::string>& linear) const {
        std::set<std::string_view> words;
        for (const std::string_view layer : linear) {
            words.insert(layer);
            for (std::size_t at = 0; at < layer.size();) {
                const std::size_t end = std::min(layer.find('.', at), layer.size());
                words.insert(layer.substr(at, end - at));
                at = end + 1;
            }
        }
        const std::vector<std::string_view> known(words.begin(), words.end());
        for (const std::string& part : request_.skip) {
            const auto is_it = [&](const std::string& layer) { return is_part(part, layer); };
            if (std::ranges::any_of(linear, is_it)) continue;
            throw CheckpointError(
                fmt::format("--skip: no linear layer has '{}' in its name{}; allowed are whole "
                            "words of dotted names",
                            part, did_you_mean(part, known)));
        }
    }

    LayerOutline outline_of(const std::string& layer) const {
        const std::string weight = layer + ".weight";
        const StoredTensor& tensor = checkpoint_.at(weight);
        return {.name = layer,
                .tensors = {weight},
                .shape = {.format = request_.format,
                          .out = static_cast<std::int64_t>(tensor.shape[0]),
                          .in = static_cast<std::int64_t>(tensor.shape[1]),
                          .group = request_.group.value_or(usual_group(request_.format)),
                          .zeros = request_.zeros,
                          .scale_dtype = dtype_}};
    }

    const Checkpoint& checkpoint_;
    QuantizeRequest request_;
    std::string kind_;
    Dtype dtype_ = Dtype::bf16;
    std::vector<LayerOutline> layers_;
};

}  // namespace

std::unique_ptr<LayerSource> number_layers(const Checkpoint& checkpoint, const QuantizeRequest& request) {
    return std::make_unique<NumberLayers>(checkpoint, request);
}

}  // namespace hone::checkpoints
