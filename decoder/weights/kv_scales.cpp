#include "decoder/weights/kv_scales.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "decoder/error.h"

namespace hone::decoder {
namespace {

/// Behind "model.layers.0.self_attn.", in the order in which they are looked for.
using Spellings = std::array<std::string_view, 5>;
constexpr Spellings k_spellings{"k_scale", "k_proj.k_scale", "attn.k_scale", "k_proj.output_scale",
                                "kv_scale"};
constexpr Spellings v_spellings{"v_scale", "v_proj.v_scale", "attn.v_scale", "v_proj.output_scale",
                                "kv_scale"};

struct Found {
    std::string name{};  ///< empty: there is none
    std::vector<float> scales{};
};

/// "model.layers.0.self_attn."
std::string attention_of(const TensorNames& names, std::int64_t layer) {
    const std::string_view first = names.qkv.front();
    return fmt::format("{}{}.{}", names.layer, layer, first.substr(0, first.rfind('.') + 1));
}

Found find(const WeightSource& source, const TensorNames& names, std::int64_t layer,
           const Spellings& spellings) {
    const std::string attention = attention_of(names, layer);
    for (const std::string_view spelling : spellings) {
        for (const std::string_view prefix : {std::string_view(), names.optional_prefix}) {
            const std::string name = fmt::format("{}{}{}", prefix, attention, spelling);
            std::vector<float> scales = source.numbers(name);
            if (!scales.empty()) return {name, std::move(scales)};
        }
    }
    return {};
}

/// One a head.
void add(std::vector<float>& all, const Found& found, std::int64_t heads) {
    const auto count = std::ssize(found.scales);
    if (count != 1 && count != heads) {
        throw DecoderError(fmt::format("{} has {} numbers; allowed: 1, or one for each of {} heads",
                                       found.name, count, heads));
    }
    for (std::int64_t head = 0; head < heads; ++head) {
        const float scale = found.scales[static_cast<std::size_t>(count == 1 ? 0 : head)];
        if (!std::isfinite(scale) || scale <= 0) {
            throw DecoderError(
                fmt::format("{} is {} for head {}; allowed: numbers above 0", found.name, scale, head));
        }
        all.push_back(scale);
    }
}

}  // namespace

KvScales read_kv_scales(const WeightSource& source, const Description& model) {
    KvScales made;
    const std::int64_t heads = model.model.num_key_value_heads;
    for (std::int64_t layer = 0; layer < model.model.num_hidden_layers; ++layer) {
        Found k = find(source, *model.names, layer, k_spellings);
        Found v = find(source, *model.names, layer, v_spellings);
        if (k.name.empty() != v.name.empty()) {
            throw DecoderError(fmt::format("layer {} has {} and no scale of {}; needed are both or none",
                                           layer, k.name.empty() ? v.name : k.name,
                                           k.name.empty() ? "keys" : "values"));
        }
        if (k.name.empty()) k = v = {"1", {1.0F}};
        add(made.k, k, heads);
        add(made.v, v, heads);
    }
    return made;
}

}  // namespace hone::decoder
