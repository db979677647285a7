#include "decoder/model/description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "decoder/error.h"
#include "runtime/quantize/small_floats.h"

namespace hone::decoder {
namespace {

constexpr double most_cap = 65536;  ///< Sample::softcap

bool differ_in_what_is_run(const models::Model& model) {
    return std::ranges::all_of(model.layers, [&](const models::LayerGroup& group) {
        return group.kind == models::LayerKind{.window = group.kind.window, .experts = group.kind.experts};
    });
}

/// What of its experts, in words; nothing: the operators have it all.
std::vector<std::string> lacking_of_experts(const models::Model& model, const TensorNames& names) {
    if (names.router.empty()) return {"a mixture of experts"};
    std::vector<std::string> lacks;
    if (!model.softmax_routing || model.experts_per_token == 0)
        lacks.emplace_back("experts that are not chosen by a softmax over all of them");
    if (model.router_bias) lacks.emplace_back("a router with a bias");
    if (model.shared_width > 0) lacks.emplace_back("an expert that sees all tokens");
    if (model.expert_bias) lacks.emplace_back("experts with biases");
    if (model.own_expert_network || !model.gated_ffn)
        lacks.emplace_back("experts that are no gated networks");
    return lacks;
}

/// What of a model the decoder has no operators for, in words.
std::vector<std::string> lacking(const models::Model& model, const TensorNames& names) {
    std::vector<std::string> lacks;
    const auto lack = [&](bool has, const char* what) {
        if (has) lacks.emplace_back(what);
    };
    lack(model.encoder, "attention without a mask, as encoders have it");
    const bool is_behind =
        model.norms == models::NormPlaces::around || model.norms == models::NormPlaces::behind;
    const bool knows_norms =
        model.norms == models::NormPlaces::before || (is_behind && !names.behind_attention.empty());
    lack(!knows_norms, "norms elsewhere than in front");
    lack(model.parallel, "parallel blocks");
    lack(!differ_in_what_is_run(model), "layers that differ in more than windows and experts");
    if (model.experts > 1) std::ranges::move(lacking_of_experts(model, names), std::back_inserter(lacks));
    lack(model.latent_attention, "latent attention");
    lack(model.alibi, "ALiBi");
    lack(model.sinks, "attention sinks");
    lack(model.clipped_qkv, "clipped queries and keys");
    lack(model.scaled_queries, "queries scaled by position");
    lack(model.qk_norm && model.norm != "rmsnorm", "a norm of queries and keys that subtracts a mean");
    lack(model.qk_norm && model.head_norm == models::HeadNorm::own,
         "a norm of queries and keys with weights of its own in each head");
    const bool knows_scale = names.root_scale || model.embedding_factor > 0;
    lack(model.embedding_norm || model.embedding_scale != knows_scale, "a norm or scale of embeddings");
    lack(model.logit_cap > most_cap || model.logit_cap != std::floor(model.logit_cap),
         "a cap of logits that is no whole number up to 65536");
    lack(model.gated_ffn && model.ffn_bias, "biases of a gated feed-forward network");
    lack(model.dtype == Dtype::fp16 && model.residual_factor > 0 && model.residual_factor < 1,
         "a residual_multiplier below 1 in fp16, whose range its stream, held divided by that, may leave: "
         "bf16 and fp32 hold it");
    lack(!model.final_norm || !model.first_norm, "a model without its first or last norm");
    lack(!model.has_head, "a model without a language head");
    lack(model.rotary_dim == 0 && !model.learned_positions, "attention without positions");
    return lacks;
}

double residual_factor(const models::Model& model) {
    return model.residual_factor > 0 ? model.residual_factor : 1;
}

/// Kernels take them as floats, of which one beyond their range would be 0, which means another thing, or
/// infinite.
void check_factors(const Description& description) {
    const models::Model& model = description.model;
    const auto check = [&](double number, const char* what) {
        constexpr auto least = static_cast<double>(std::numeric_limits<float>::min());
        constexpr auto most = static_cast<double>(std::numeric_limits<float>::max());
        if (number >= least && number <= most) return;
        throw DecoderError(
            fmt::format("{}: {} is {}; allowed is {:.2g} to {:.2g}", model.name, what, number, least, most));
    };
    const double residual = residual_factor(model);
    check(residual, "residual_multiplier");
    if (model.embedding_factor > 0) {
        check(model.embedding_factor, "embedding_multiplier");
        check(model.embedding_factor / residual, "embedding_multiplier / residual_multiplier");
    }
    if (model.residual_factor > 0)
        check(model.norm_epsilon / residual / residual, "rms_norm_eps / residual_multiplier^2");
    if (model.score_factor > 0) check(model.score_factor, "attention_multiplier");
    check(description.logit_divisor(), "logits_scaling");
}

}  // namespace

Activation Description::activation() const {
    if (model.activation == "silu") return Activation::silu;
    if (model.activation == "gelu_tanh") return Activation::gelu_tanh;
    if (model.activation == "gelu_erf") return Activation::gelu_erf;
    if (model.activation == "relu") return Activation::relu;
    throw DecoderError(fmt::format("activation {}: not known to the decoder", model.activation));
}

float Description::embedding_scale() const {
    if (!model.embedding_scale) return 1;
    if (model.embedding_factor > 0)
        return static_cast<float>(model.embedding_factor / residual_factor(model));
    // As transformers does, which multiplies by a number of the model's dtype.
    const float root = std::sqrt(static_cast<float>(model.hidden_size));
    if (model.dtype == Dtype::bf16) return runtime::decode_bf16(runtime::encode_bf16(root));
    if (model.dtype == Dtype::fp16)
        return runtime::decode_half(static_cast<std::uint16_t>(runtime::Half::encode(root)));
    return root;
}

float Description::stream_epsilon() const {
    return static_cast<float>(model.norm_epsilon / std::pow(residual_factor(model), 2));
}

float Description::score_scale() const {
    if (model.score_factor > 0) return static_cast<float>(model.score_factor);
    return model.query_scalar > 0 ? static_cast<float>(1 / std::sqrt(model.query_scalar)) : 0;
}

bool Description::has_experts(std::int64_t layer) const {
    return models::kind_of_layer(model, layer).experts;
}

double Description::share_of_experts(std::int64_t tokens) const {
    if (!has_experts()) return 1;
    const double of_one = static_cast<double>(model.experts_per_token) / static_cast<double>(model.experts);
    return 1 - std::pow(1 - of_one, static_cast<double>(tokens));
}

std::vector<std::int64_t> Description::windows() const {
    std::vector<std::int64_t> windows;
    for (const models::LayerGroup& group : models::layer_groups(model)) {
        if (std::ranges::find(windows, group.kind.window) == windows.end())
            windows.push_back(group.kind.window);
    }
    return windows;
}

std::size_t Description::window_of(std::int64_t layer) const {
    const std::vector<std::int64_t> all = windows();
    const std::int64_t window = models::kind_of_layer(model, layer).window;
    return static_cast<std::size_t>(std::ranges::find(all, window) - all.begin());
}

std::int64_t Description::cache_bytes_a_token(KvDtype kv_dtype) const {
    return 2 * kv_width() * cache_element_bytes(kv_dtype) * model.num_hidden_layers;
}

Description describe(const models::Model& model, const models::RotationNumbers& rotation) {
    const TensorNames* names = tensor_names(model.architecture);
    if (names == nullptr) {
        throw DecoderError(fmt::format("{}: model_type {} is not run yet; those that are: {}", model.name,
                                       model.architecture.empty() ? "(none)" : model.architecture,
                                       runnable_model_types()));
    }
    const std::vector<std::string> lacks = lacking(model, *names);
    if (!lacks.empty())
        throw DecoderError(fmt::format("{}: not run yet: {}", model.name, fmt::join(lacks, "; ")));
    const Description description{.model = model, .rotation = rotation, .names = names};
    check_factors(description);
    return description;
}

Description describe_folder(const std::filesystem::path& folder) {
    const std::filesystem::path file = folder / "config.json";
    const auto document = models::ModelDocument::read(file);
    return describe(models::read_model(document, file, folder.filename().string()),
                    models::rotation_numbers(document));
}

}  // namespace hone::decoder
