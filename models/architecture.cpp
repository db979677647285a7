#include "models/architecture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "kernel_templates/text.h"

namespace hone::models {
namespace {

/// What users may try, and why it has no entry.
constexpr std::array<NamedValue, 42> foreign{{
    {"vit", "an encoder of images: patches take the place of tokens"},
    {"deit", "an encoder of images: patches take the place of tokens"},
    {"dinov2", "an encoder of images: patches take the place of tokens"},
    {"siglip", "an encoder of images beside one of text"},
    {"clip", "an encoder of images beside one of text"},
    {"swin", "an encoder of images with shifted windows"},
    {"whisper", "an encoder of sound and a decoder with cross-attention"},
    {"wav2vec2", "an encoder of sound: convolutions in front"},
    {"hubert", "an encoder of sound: convolutions in front"},
    {"t5", "an encoder and a decoder with cross-attention and relative positions"},
    {"mt5", "an encoder and a decoder with cross-attention and relative positions"},
    {"umt5", "an encoder and a decoder with cross-attention and relative positions"},
    {"bart", "an encoder and a decoder with cross-attention"},
    {"mbart", "an encoder and a decoder with cross-attention"},
    {"marian", "an encoder and a decoder with cross-attention"},
    {"pegasus", "an encoder and a decoder with cross-attention"},
    {"m2m_100", "an encoder and a decoder with cross-attention"},
    {"mamba", "state spaces in place of attention"},
    {"mamba2", "state spaces in place of attention"},
    {"falcon_mamba", "state spaces in place of attention"},
    {"falcon_h1", "state spaces beside attention"},
    {"jamba", "layers of state spaces between those of attention"},
    {"bamba", "layers of state spaces between those of attention"},
    {"zamba", "layers of state spaces between those of attention"},
    {"zamba2", "layers of state spaces between those of attention"},
    {"nemotron_h", "layers of state spaces between those of attention"},
    {"granitemoehybrid", "layers of state spaces between those of attention"},
    {"rwkv", "recurrence in place of attention"},
    {"recurrent_gemma", "recurrence between layers of attention"},
    {"qwen3_next", "linear attention between layers of attention"},
    {"minimax", "linear attention between layers of attention"},
    {"kimi_linear", "linear attention between layers of attention"},
    {"deberta", "attention with separate scores of positions"},
    {"deberta-v2", "attention with separate scores of positions"},
    {"xlnet", "two streams of attention and relative positions"},
    {"albert", "layers that share weights, behind a narrow embedding"},
    {"gemma3n", "embeddings in each layer, and streams beside each other"},
    {"mllama", "layers of cross-attention to images"},
    {"openelm", "layers of different widths"},
    {"phimoe", "experts behind LayerNorm, chosen by sparse mixing"},
    {"gpt_neo", "local and global layers named in nested lists"},
    {"dbrx", "sizes in nested objects"},
}};

std::string reason(std::string_view type) {
    const auto* found = std::ranges::find(foreign, type, &NamedValue::spelling);
    return found == foreign.end() ? "" : fmt::format(" ({})", found->meaning);
}

[[noreturn]] void refuse(const Keys& keys, const Keys::Entry& entry, const std::string& type) {
    std::vector<std::string_view> names;
    for (const Architecture& architecture : architectures()) names.push_back(architecture.model_type);
    const std::string nearest = did_you_mean(type, names);
    std::ranges::sort(names);
    keys.fail_at(entry,
                 fmt::format("is '{}'{}, whose layers Hone does not know{}: known are {}; hone tune --op "
                             "tunes single operators",
                             printable(type), reason(type), nearest, fmt::join(names, ", ")));
}

const Architecture& named(const Keys& keys, const Keys::Entry& entry) {
    const auto* type = std::get_if<std::string>(&entry.value);
    if (type == nullptr) keys.refuse(entry, "a text");
    const Architecture* found = find_architecture(*type);
    if (found == nullptr) refuse(keys, entry, *type);
    return *found;
}

const Architecture& language_model_of(const Architecture& outer) {
    if (outer.language_model.empty()) return outer;
    return *find_architecture(outer.language_model);
}

}  // namespace

const std::vector<Architecture>& architectures() {
    static const std::vector<Architecture> all = [] {
        std::vector<Architecture> list;
        for (const auto& part : {llama_architectures, norm_architectures, layer_norm_architectures,
                                 expert_architectures, encoder_architectures, multimodal_architectures})
            std::ranges::copy(part(), std::back_inserter(list));
        return list;
    }();
    return all;
}

const Architecture* find_architecture(std::string_view model_type) {
    const auto found = std::ranges::find(architectures(), model_type, &Architecture::model_type);
    return found == architectures().end() ? nullptr : &*found;
}

const Architecture& architecture_of(const Keys& keys) {
    const Keys::Entry* nearest = keys.find({"model_type"});
    const Keys::Entry* top = keys.document().find_at_top("model_type");
    if (top == nullptr || top == nearest) return language_model_of(named(keys, *nearest));
    static_cast<void>(named(keys, *top));
    return language_model_of(named(keys, *nearest));
}

}  // namespace hone::models
