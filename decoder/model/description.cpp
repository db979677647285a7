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

/// What of a model steps have no operators for, or its tensors no names, in words.
std::vector<std::string> lacking(const models::Model& model, const TensorNames& names) {
    std::vector<std::string> lacks = models::lacking_in_steps(model);
    const auto lack = [&](bool has, const char* what) {
        if (has) lacks.emplace_back(what);
    };
    const bool is_behind =
        model.norms == models::NormPlaces::around || model.norms == models::NormPlaces::behind;
    lack(is_behind && names.behind_attention.empty(), "norms elsewhere than in front");
    const bool has_router = model.experts <= 1 || !names.router.empty();
    lack(!has_router, "a mixture of experts");
    if (has_router) std::ranges::move(models::lacking_of_experts(model), std::back_inserter(lacks));
    const bool knows_scale = names.root_scale || model.embedding_factor > 0;
    lack(!model.embedding_norm && model.embedding_scale != knows_scale, "a norm or scale of embeddings");
    lack(!models::activation_of(model), "an activation that no operator knows");
    lack(model.dtype == Dtype::fp16 && model.residual_factor > 0 && model.residual_factor < 1,
         "a residual_multiplier below 1 in fp16, whose range its stream, held divided by that, may leave: "
         "bf16 and fp32 hold it");
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

/// Nothing: the layer does not rotate.
std::optional<models::RotationNumbers> angles_of_kind(const models::Rotations& rotations,
                                                      const models::LayerKind& kind) {
    if (!kind.rotary) return std::nullopt;
    return kind.window_angles ? rotations.windowed : rotations.full;
}

}  // namespace

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

std::size_t Description::window_of(std::int64_t layer) const {
    const std::vector<std::int64_t> all = windows();
    const std::int64_t window = models::kind_of_layer(model, layer).window;
    return static_cast<std::size_t>(std::ranges::find(all, window) - all.begin());
}

std::vector<std::optional<models::RotationNumbers>> Description::angles() const {
    std::vector<std::optional<models::RotationNumbers>> all;
    for (const models::LayerGroup& group : models::layer_groups(model)) {
        const auto angles = angles_of_kind(rotations, group.kind);
        if (std::ranges::find(all, angles) == all.end()) all.push_back(angles);
    }
    return all;
}

std::size_t Description::angles_of(std::int64_t layer) const {
    const auto all = angles();
    const auto found = std::ranges::find(all, angles_of_kind(rotations, models::kind_of_layer(model, layer)));
    return static_cast<std::size_t>(found - all.begin());
}

std::int64_t Description::cache_bytes_a_token(KvDtype kv_dtype) const {
    return 2 * kv_width() * cache_element_bytes(kv_dtype) * model.num_hidden_layers;
}

Description describe(const models::Model& model, const models::Rotations& rotations) {
    const TensorNames* names = tensor_names(model.architecture);
    if (names == nullptr) {
        throw DecoderError(fmt::format("{}: model_type {} is not run yet; those that are: {}", model.name,
                                       model.architecture.empty() ? "(none)" : model.architecture,
                                       runnable_model_types()));
    }
    const std::vector<std::string> lacks = lacking(model, *names);
    if (!lacks.empty())
        throw DecoderError(fmt::format("{}: not run yet: {}", model.name, fmt::join(lacks, "; ")));
    const Description description{.model = model, .rotations = rotations, .names = names};
    check_factors(description);
    return description;
}

Description describe_folder(const std::filesystem::path& folder) {
    const std::filesystem::path file = folder / "config.json";
    const auto document = models::ModelDocument::read(file);
    const models::Model model = models::read_model(document, file, folder.filename().string());
    return describe(model, models::read_rotations(document, model));
}

}  // namespace hone::decoder
