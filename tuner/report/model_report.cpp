#include "tuner/report/model_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernel_templates/dtype.h"
#include "models/architecture.h"
#include "runtime/system/short_text.h"
#include "tuner/models/workload.h"
#include "tuner/report/report_text.h"

namespace hone::tuner {
namespace {

std::string_view says(const Model& model) {
    const models::Architecture* found = models::find_architecture(model.architecture);
    return found == nullptr ? "no model_type" : found->says;
}

std::string_view words_of(NormPlaces places) {
    switch (places) {
        case NormPlaces::before: return "in front";
        case NormPlaces::around: return "in front and behind";
        case NormPlaces::behind: return "behind";
        case NormPlaces::after_sum: return "after the sum";
    }
    return "in front";
}

std::string attention_of(const Model& model, const LayerKind& kind) {
    if (model.latent_attention) return "latent";
    if (kind.window > 0) return fmt::format("window {}{}", kind.window, model.encoder ? " around" : "");
    if (kind.chunk > 0) return fmt::format("chunks of {}", kind.chunk);
    return "all tokens";
}

std::string positions_of(const Model& model, const LayerKind& kind) {
    if (model.learned_positions) return "learned";
    if (model.alibi) return "ALiBi";
    if (!kind.rotary || model.rotary_dim == 0) return "none";
    return fmt::format("rotary {}{}", model.rotary_dim, model.interleaved_rotary ? ", interleaved" : "");
}

std::string network_of(const Model& model, const LayerKind& kind) {
    if (!kind.experts) return fmt::format("{}", model.intermediate_size);
    const std::int64_t width = model.expert_width > 0 ? model.expert_width : model.intermediate_size;
    std::string text = fmt::format("{} x {}", model.experts, width);
    if (model.experts_per_token > 0) text += fmt::format(", {} a token", model.experts_per_token);
    if (model.shared_width > 0) text += fmt::format(" + {}", model.shared_width);
    return text;
}

/// What holds for all layers, in the order in which it is said.
std::vector<std::string> facts(const Model& model) {
    std::vector<std::string> list{fmt::format("hidden {}", model.hidden_size),
                                  fmt::format("{} heads", model.num_attention_heads),
                                  fmt::format("{} kv heads of {}", model.num_key_value_heads, model.head_dim),
                                  fmt::format("vocabulary {}", model.vocab_size)};
    const auto add = [&](bool holds, std::string words) {
        if (holds) list.push_back(std::move(words));
    };
    add(model.max_position_embeddings > 0, fmt::format("{} positions", model.max_position_embeddings));
    list.push_back(fmt::format("{} {}", model.norm, words_of(model.norms)));
    add(model.parallel, model.two_norms ? "parallel block with two norms" : "parallel block");
    add(model.qk_norm, "norm of queries and keys");
    list.push_back(fmt::format("{}{}", model.gated_ffn ? "gated " : "", model.activation));
    add(model.qkv_bias, "bias of q, k, v");
    add(model.output_bias, "bias of output");
    add(model.ffn_bias, "bias of feed-forward");
    add(model.softcap != 0, "cap of scores");
    add(model.logit_cap != 0, "cap of logits");
    add(model.sinks, "sinks");
    add(model.has_head, model.tied_head ? "head tied to the embedding" : "head of its own");
    return list;
}

/// Items with separators behind all but the last, in lines of the page.
std::string lines_of(std::vector<std::string> items, std::string_view separator, const Page& page) {
    constexpr std::string_view indent = "  ";
    for (std::size_t i = 0; i + 1 < items.size(); ++i) items[i] += separator;
    return wrapped(items, page, indent, indent);
}

std::string layers_table(const Model& model, const Page& page) {
    Table table({{"layers", Align::right}, {"attention"}, {"positions"}, {"feed-forward"}});
    for (const LayerGroup& group : layer_groups(model)) {
        table.add({std::to_string(group.count), attention_of(model, group.kind),
                   positions_of(model, group.kind), network_of(model, group.kind)});
    }
    return table.render(page, "  ");
}

/// A role in fewer letters where a window stands behind it, so that the table has room for both.
std::string short_role(const std::string& role) {
    constexpr std::string_view longer = "attention over ";
    return role.starts_with(longer) ? "attention, " + role.substr(longer.size()) : role;
}

std::string operators_table(const std::vector<ModelOperator>& operators, const Page& page) {
    Table table({{"operator"}, {"sizes"}, {"count", Align::right}, {"kernel"}});
    for (const ModelOperator& op : operators) {
        if (op.use != Use::all) continue;
        table.add(
            {short_role(op.role), op.shape, std::to_string(op.count), has_kernel(op) ? op.family : "none"});
    }
    return table.render(page, "  ");
}

std::string missing_line(const std::vector<ModelOperator>& operators, const Page& page) {
    std::vector<std::string> names;
    for (const ModelOperator& op : operators) {
        if (!has_kernel(op)) names.push_back(op.role);
    }
    if (names.empty()) return "Hone has a kernel for every operator.\n";
    return fmt::format("No kernel for:\n{}", lines_of(std::move(names), ";", page));
}

Json layers_json(const Model& model) {
    Json layers = Json::array();
    for (const LayerGroup& group : layer_groups(model)) {
        layers.push_back({{"count", group.count},
                          {"attention", attention_of(model, group.kind)},
                          {"window", group.kind.window},
                          {"chunk", group.kind.chunk},
                          {"positions", positions_of(model, group.kind)},
                          {"experts", group.kind.experts},
                          {"feed_forward", network_of(model, group.kind)}});
    }
    return layers;
}

}  // namespace

Json model_json(const Model& model, const std::vector<ModelOperator>& operators) {
    Json json{{"name", model.name},
              {"model_type", model.architecture.empty() ? Json(nullptr) : Json(model.architecture)},
              {"architecture", says(model)},
              {"kind", model.encoder ? "encoder" : "decoder"},
              {"dtype", name(model.dtype)},
              {"facts", facts(model)},
              {"layers", layers_json(model)},
              {"operators", Json::array()},
              {"warnings", model.warnings}};
    for (const ModelOperator& op : operators) {
        Json row = as_json(op);
        row["fields"] = op.fields.empty() ? Json(nullptr) : Json(op.fields);
        row["kernel"] = has_kernel(op);
        json["operators"].push_back(std::move(row));
    }
    return json;
}

std::string model_text(const Model& model, const std::vector<ModelOperator>& operators, const Page& page) {
    const std::string type =
        model.architecture.empty() ? "" : fmt::format(" (model_type {})", model.architecture);
    const std::string title =
        fmt::format("{}{}, {}, {}: {}", says(model), type, model.encoder ? "encoder" : "decoder",
                    name(model.dtype), runtime::escape_controls(model.name));
    return fmt::format("{}\n{}\n{}\n{}\n{}", fitted(title, page.columns), lines_of(facts(model), ",", page),
                       layers_table(model, page), operators_table(operators, page),
                       missing_line(operators, page));
}

}  // namespace hone::tuner
