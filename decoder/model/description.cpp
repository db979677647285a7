#include "decoder/model/description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "decoder/error.h"

namespace hone::decoder {
namespace {

/// What of a model the decoder has no operators for, in words.
std::vector<std::string> lacking(const models::Model& model) {
    std::vector<std::string> lacks;
    const auto lack = [&](bool has, const char* what) {
        if (has) lacks.emplace_back(what);
    };
    lack(model.encoder, "attention without a mask, as encoders have it");
    lack(model.norms != models::NormPlaces::before, "norms elsewhere than in front");
    lack(model.parallel, "parallel blocks");
    lack(model.layers.size() > 1, "layers of more than one kind");
    lack(model.experts > 1, "a mixture of experts");
    lack(model.latent_attention, "latent attention");
    lack(model.alibi, "ALiBi");
    lack(model.sinks, "attention sinks");
    lack(model.clipped_qkv, "clipped queries and keys");
    lack(model.scaled_queries, "queries scaled by position");
    lack(model.qk_norm && (model.norm != "rmsnorm" || model.head_norm != models::HeadNorm::shared),
         "a norm of queries and keys over all heads");
    lack(model.embedding_norm || model.embedding_scale, "a norm or scale of embeddings");
    lack(model.softcap, "a cap of scores");
    lack(model.logit_cap, "a cap of logits");
    lack(model.gated_ffn && model.ffn_bias, "biases of a gated feed-forward network");
    lack(!model.final_norm || !model.first_norm, "a model without its first or last norm");
    lack(!model.has_head, "a model without a language head");
    lack(model.rotary_dim == 0 && !model.learned_positions, "attention without positions");
    return lacks;
}

}  // namespace

Activation Description::activation() const {
    if (model.activation == "silu") return Activation::silu;
    if (model.activation == "gelu_tanh") return Activation::gelu_tanh;
    if (model.activation == "gelu_erf") return Activation::gelu_erf;
    if (model.activation == "relu") return Activation::relu;
    throw DecoderError(fmt::format("activation {}: not known to the decoder", model.activation));
}

std::int64_t Description::cache_bytes_a_token() const {
    return 2 * kv_width() * element_bytes() * model.num_hidden_layers;
}

Description describe(const models::Model& model, const models::RotationNumbers& rotation) {
    const TensorNames* names = tensor_names(model.architecture);
    if (names == nullptr) {
        throw DecoderError(fmt::format("{}: model_type {} is not run yet; those that are: {}", model.name,
                                       model.architecture.empty() ? "(none)" : model.architecture,
                                       runnable_model_types()));
    }
    const std::vector<std::string> lacks = lacking(model);
    if (!lacks.empty())
        throw DecoderError(fmt::format("{}: not run yet: {}", model.name, fmt::join(lacks, "; ")));
    return {.model = model, .rotation = rotation, .names = names};
}

Description describe_folder(const std::filesystem::path& folder) {
    const std::filesystem::path file = folder / "config.json";
    const auto document = models::ModelDocument::read(file);
    return describe(models::read_model(document, file, folder.filename().string()),
                    models::rotation_numbers(document));
}

}  // namespace hone::decoder
