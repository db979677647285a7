#include "models/layer_kinds.h"

#include <fmt/format.h>

#include <algorithm>

namespace hone::models {
namespace {

/// One value a layer.
using PerLayer = std::vector<bool>;

bool follows(Spread::Rule rule, std::int64_t layer, std::int64_t n) {
    switch (rule) {
        case Spread::Rule::all: return true;
        case Spread::Rule::not_last_of: return (layer + 1) % n != 0;
        case Spread::Rule::last_of: return (layer + 1) % n == 0;
        case Spread::Rule::not_first_of: return layer % n != 0;
        case Spread::Rule::from: return layer >= n;
    }
    return true;
}

class LayerReader {
  public:
    LayerReader(const Architecture& architecture, const Keys& keys, const Model& model)
        : entry_(architecture),
          keys_(keys),
          model_(model),
          layers_(static_cast<std::size_t>(model.num_hidden_layers)) {}

    std::vector<LayerKind> kinds() const {
        const std::int64_t window = window_size();
        const std::int64_t chunk = number_of(entry_.attention.chunk, keys_).value_or(0);
        const PerLayer rotary = rotary_layers();
        const PerLayer none(layers_, false);
        const PerLayer windowed = spread(entry_.attention.window.layers);
        PerLayer windows = window > 0 ? windowed : none;
        PerLayer chunks = chunk > 0 ? rotary : none;
        read_layer_types(window, chunk, windows, chunks);
        const PerLayer experts = expert_layers();
        std::vector<LayerKind> kinds(layers_);
        for (std::size_t i = 0; i < layers_; ++i) {
            kinds[i] = {.window = windows[i] ? window_within(model_, window) : 0,
                        .chunk = chunks[i] ? chunk : 0,
                        .rotary = entry_.rotation.only_in_windows ? windows[i] : rotary[i],
                        .window_angles = entry_.rotation.apart_in_windows && windows[i],
                        .experts = experts[i]};
        }
        return kinds;
    }

  private:
    std::int64_t window_size() const {
        const Window& window = entry_.attention.window;
        const std::int64_t size = number_of(window.size, keys_).value_or(0);
        return holds(window.used, keys_) ? size : 0;
    }

    PerLayer spread(const Spread& spread) const {
        const std::int64_t n =
            spread.keys.empty() ? spread.otherwise : keys_.count(spread.keys).value_or(spread.otherwise);
        if (n == 0 && spread.rule != Spread::Rule::from)
            keys_.fail(spread.keys, "is 0, allowed is 1 and more");
        PerLayer chosen(layers_);
        for (std::size_t i = 0; i < layers_; ++i)
            chosen[i] = follows(spread.rule, static_cast<std::int64_t>(i), n);
        return chosen;
    }

    PerLayer rotary_layers() const {
        const Rotation& rotation = entry_.rotation;
        const PerLayer chosen = spread(rotation.layers);
        const ModelDocument::List* list = rotation.list.empty() ? nullptr : keys_.list(rotation.list);
        if (list == nullptr || list->empty()) return chosen;
        if (list->size() < layers_) fail_length(rotation.list, list->size());
        PerLayer rotary(layers_);
        for (std::size_t i = 0; i < layers_; ++i) rotary[i] = number(rotation.list, (*list)[i]) != 0;
        return rotary;
    }

    /// Newer files name each layer's attention, which then holds.
    void read_layer_types(std::int64_t window, std::int64_t chunk, PerLayer& windows,
                          PerLayer& chunks) const {
        const Spellings names{"layer_types"};
        const ModelDocument::List* types = keys_.list(names);
        if (types == nullptr) return;
        if (types->size() != layers_) fail_length(names, types->size());
        for (std::size_t i = 0; i < layers_; ++i) {
            const auto* type = std::get_if<std::string>(&(*types)[i]);
            windows[i] = type != nullptr && *type == "sliding_attention" && window > 0;
            chunks[i] = type != nullptr && *type == "chunked_attention" && chunk > 0;
            const bool full = type != nullptr && *type == "full_attention";
            if (windows[i] || chunks[i] || full) continue;
            keys_.fail(names, fmt::format("has '{}' for layer {}, which Hone does not know of model_type {}",
                                          type == nullptr ? "a number" : *type, i, entry_.model_type));
        }
    }

    PerLayer expert_layers() const {
        const Experts& experts = entry_.experts;
        if (experts.number.keys.empty() || model_.experts == 0) return PerLayer(layers_, false);
        PerLayer chosen = spread(experts.layers);
        if (!experts.expert_list.empty() && keys_.has(experts.expert_list)) {
            chosen.assign(layers_, false);
            set_listed(experts.expert_list, true, chosen);
        }
        if (!experts.dense_list.empty()) set_listed(experts.dense_list, false, chosen);
        const std::int64_t first = experts.dense_first.empty() ? 0 : keys_.needed_count(experts.dense_first);
        std::fill_n(chosen.begin(), std::min<std::int64_t>(first, model_.num_hidden_layers), false);
        return chosen;
    }

    void set_listed(const Spellings& spellings, bool value, PerLayer& chosen) const {
        const ModelDocument::List* list = keys_.list(spellings);
        if (list == nullptr) return;
        for (const ModelDocument::Scalar& item : *list) {
            const std::int64_t layer = number(spellings, item);
            if (layer < 0 || layer >= model_.num_hidden_layers)
                keys_.fail(spellings, fmt::format("has layer {} of {}", layer, layers_));
            chosen[static_cast<std::size_t>(layer)] = value;
        }
    }

    std::int64_t number(const Spellings& spellings, const ModelDocument::Scalar& item) const {
        if (const auto* flag = std::get_if<bool>(&item)) return *flag ? 1 : 0;
        if (const auto* whole = std::get_if<std::int64_t>(&item)) return *whole;
        keys_.refuse(*keys_.find(spellings), "a list of whole numbers");
    }

    [[noreturn]] void fail_length(const Spellings& spellings, std::size_t length) const {
        keys_.fail(spellings, fmt::format("has {} entries for {} layers", length, layers_));
    }

    const Architecture& entry_;
    const Keys& keys_;
    const Model& model_;
    std::size_t layers_;
};

std::vector<LayerGroup> grouped(const std::vector<LayerKind>& kinds) {
    std::vector<LayerGroup> groups;
    for (const LayerKind& kind : kinds) {
        const auto found = std::ranges::find(groups, kind, &LayerGroup::kind);
        if (found == groups.end())
            groups.push_back({kind, 1});
        else
            ++found->count;
    }
    return groups;
}

}  // namespace

std::int64_t window_within(const Model& model, std::int64_t size) {
    return model.max_position_embeddings == 0 || size < model.max_position_embeddings ? size : 0;
}

std::vector<LayerGroup> read_layer_groups(const Architecture& architecture, const Keys& keys, Model& model) {
    const std::vector<LayerKind> kinds = LayerReader(architecture, keys, model).kinds();
    std::vector<LayerGroup> groups = grouped(kinds);
    for (const LayerGroup& group : groups)
        model.sliding_window = std::max(model.sliding_window, group.kind.window);
    const LayerKind& first = groups.front().kind;
    const bool plain = groups.size() == 1 && first.chunk == 0 && first.rotary && !first.window_angles;
    if (plain && first.experts == (model.experts > 1)) groups.clear();
    if (groups.empty()) return groups;
    for (const LayerKind& kind : kinds) {
        const auto found = std::ranges::find(groups, kind, &LayerGroup::kind);
        model.group_of_layer.push_back(static_cast<std::size_t>(found - groups.begin()));
    }
    return groups;
}

}  // namespace hone::models
