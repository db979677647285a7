#include "tuner/models/operators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "checkpoints/error.h"
#include "checkpoints/pack/request.h"
#include "kernel_templates/catalog.h"
#include "runtime/operators/describe_problem.h"
#include "tuner/errors.h"
#include "tuner/models/attention_operators.h"

namespace hone::tuner {
namespace {

using runtime::yes_no;

constexpr std::int64_t default_max_tokens = 8192;
constexpr std::int64_t most_sampled = std::int64_t{1} << 20;  ///< logits a row of the family sample

/// What one of the tensor-parallel GPUs computes of the model.
struct Part {
    const Model& model;
    Dtype dtype;
    std::int64_t heads;
    std::int64_t kv_heads;
    std::int64_t intermediate;
    std::int64_t vocab;
    std::vector<std::int64_t> tokens;
    bool usual_tokens;  ///< nobody asked for others
    checkpoints::WeightFormat weights;
};

std::int64_t divide(std::string_view what, std::int64_t value, int parts) {
    if (value % parts == 0) return value / parts;
    throw ConfigError(fmt::format("--tp {}: does not divide {} = {}", parts, what, value));
}

checkpoints::WeightFormat weights_of(const Model& model, const WorkloadOptions& options) {
    if (options.weights) return *options.weights;
    if (!model.quantization) return {};
    try {
        return checkpoints::weight_format(*model.quantization);
    } catch (const checkpoints::CheckpointError& error) {
        throw ConfigError(
            fmt::format("{}; --format {} or dense (weights of 16 or 32 bits) says what to take the "
                        "layers for instead",
                        error.what(), fmt::join(quant_format_names, ", ")));
    }
}

Part part_of(const Model& model, const WorkloadOptions& options) {
    const int parts = options.tensor_parallel;
    if (parts < 1) throw ConfigError(fmt::format("--tp {}: has to be 1 or more", parts));
    return {.model = model,
            .dtype = options.dtype.value_or(model.dtype),
            .heads = divide("num_attention_heads", model.num_attention_heads, parts),
            .kv_heads = divide("num_key_value_heads", model.num_key_value_heads, parts),
            .intermediate = divide("intermediate_size", model.intermediate_size, parts),
            .vocab = (model.vocab_size + parts - 1) / parts,  // engines pad the vocabulary
            .tokens = token_counts(options),
            .usual_tokens = options.tokens.empty(),
            .weights = weights_of(model, options)};
}

/// Every token has this many rows.
std::vector<std::int64_t> times(std::vector<std::int64_t> tokens, std::int64_t rows) {
    for (std::int64_t& count : tokens) count *= rows;
    return tokens;
}

std::string norm_fields(const Part& part, std::int64_t width, bool residual) {
    std::string fields =
        fmt::format("dtype={} residual={} hidden={}", name(part.dtype), yes_no(residual), width);
    if (part.model.norm == "layernorm") fields += fmt::format(" bias={}", yes_no(part.model.norm_bias));
    return fields;
}

void add_norms(const Part& part, std::vector<ModelOperator>& list) {
    const Model& model = part.model;
    const auto norm = [&](std::string role, std::int64_t width, bool residual, std::int64_t count,
                          std::int64_t rows) {
        list.push_back({.role = std::move(role),
                        .family = model.norm,
                        .fields = norm_fields(part, width, residual),
                        .sizes = sizes_at(model.norm, times(part.tokens, rows)),
                        .count = count,
                        .shape = fmt::format("hidden {}", width)});
    };
    const std::int64_t layers = model.num_hidden_layers;
    norm("first norm", model.hidden_size, false, 1, 1);
    norm("norm after residual", model.hidden_size, true, 2 * layers - 1, 1);
    norm("final norm", model.hidden_size, true, 1, 1);
    if (!model.qk_norm) return;
    norm("query norm", model.head_dim, false, layers, part.heads);
    norm("key norm", model.head_dim, false, layers, part.kv_heads);
}

/// Roles of a feed-forward network's two products, which are tuned apart (docs/decisions/0011).
constexpr std::string_view first_half = "feed-forward, first half";
constexpr std::string_view second_half = "feed-forward, second half";

struct LinearShape {
    std::int64_t in = 0;
    std::int64_t out = 0;
    bool bias = false;
    std::string_view activation = "none";
    bool gated = false;
};

/// Fields that only layers with codes have.
std::string format_fields(const checkpoints::WeightFormat& weights) {
    if (!weights.format) return {};
    return fmt::format(" format={} group={} zeros={}", name(*weights.format), weights.group,
                       yes_no(weights.zeros));
}

ModelOperator linear_operator(std::string_view role, const Part& part, const LinearShape& shape,
                              const checkpoints::WeightFormat& weights) {
    const std::string_view family = weights.format ? "quantized_linear" : "linear";
    return {.role = std::string(role),
            .family = std::string(family),
            .fields = fmt::format("dtype={}{} activation={} gated={} bias={} in={} out={}", name(part.dtype),
                                  format_fields(weights), shape.activation, yes_no(shape.gated),
                                  yes_no(shape.bias), shape.in, shape.out),
            .sizes = sizes_at(family, part.tokens),
            .count = part.model.num_hidden_layers,
            .shape = fmt::format("{} -> {}", shape.in, shape.out)};
}

void add_feed_forward(const Part& part, std::vector<ModelOperator>& list) {
    const Model& model = part.model;
    if (model.experts > 1) {
        list.push_back({.role = "feed-forward",
                        .family = "fused_moe",
                        .fields = {},
                        .count = model.num_hidden_layers,
                        .shape = fmt::format("{} -> {}", model.hidden_size, part.intermediate)});
        return;
    }
    const auto half = [&](std::string_view role, const LinearShape& shape) {
        list.push_back(linear_operator(role, part, shape, part.weights));
        if (model.gated_ffn && model.ffn_bias) list.back().fields.clear();  // no operator has both
    };
    half(first_half, {.in = model.hidden_size,
                      .out = part.intermediate,
                      .bias = model.ffn_bias,
                      .activation = model.activation,
                      .gated = model.gated_ffn});
    half(second_half, {.in = part.intermediate, .out = model.hidden_size, .bias = model.ffn_bias});
}

/// It sees a row a sequence, not a row a token, and has numbers for weights unless something else is
/// said.
ModelOperator language_head(const Part& part) {
    ModelOperator head =
        linear_operator("language head", part, {.in = part.model.hidden_size, .out = part.vocab},
                        part.weights.lm_head ? part.weights : checkpoints::WeightFormat{});
    std::vector<std::int64_t> rows = part.tokens;
    for (std::int64_t& count : rows) count = std::min(count, most_sequences);
    head.sizes = sizes_at(head.family, rows);
    head.count = 1;
    return head;
}

void add_linears(const Part& part, std::vector<ModelOperator>& list) {
    const Model& model = part.model;
    list.push_back(linear_operator("query, key, value projection", part,
                                   {.in = model.hidden_size,
                                    .out = (part.heads + 2 * part.kv_heads) * model.head_dim,
                                    .bias = model.qkv_bias},
                                   part.weights));
    list.push_back(linear_operator(
        "output projection", part,
        {.in = part.heads * model.head_dim, .out = model.hidden_size, .bias = model.output_bias},
        part.weights));
    add_feed_forward(part, list);
    list.push_back(language_head(part));
}

/// Token counts at which look-ups are tuned, and rows of logits: a few, since dispatch takes the nearest and
/// winners change slowly with them.
constexpr std::array<std::int64_t, 5> usual_lookups{1, 16, 128, 1024, 8192};
constexpr std::array<std::int64_t, 5> usual_draws{1, 4, 16, 64, 256};

/// How many rows the table has chooses no kernel, nor does which part of them a GPU holds.
ModelOperator token_embedding(const Part& part) {
    const std::vector<std::int64_t> usual(usual_lookups.begin(), usual_lookups.end());
    const bool positions = part.model.rotary_dim == 0;
    return {.role = "token embedding",
            .family = "embedding",
            .fields = fmt::format("dtype={} index=int32 scale=no positions={} hidden={}", name(part.dtype),
                                  yes_no(positions), part.model.hidden_size),
            .sizes = sizes_at("embedding", part.usual_tokens ? usual : part.tokens),
            .count = 1,
            .shape = fmt::format("hidden {}", part.model.hidden_size)};
}

/// One row a sequence; each GPU sees the whole vocabulary.
ModelOperator sampling(std::string_view role, const Part& part, bool filters) {
    std::vector<std::int64_t> rows(usual_draws.begin(), usual_draws.end());
    if (!part.usual_tokens) rows = part.tokens;
    for (std::int64_t& count : rows) count = std::min(count, most_sequences);
    ModelOperator op{.role = std::string(role),
                     .family = "sample",
                     .fields = {},
                     .sizes = sizes_at("sample", rows),
                     .count = 1,
                     .shape = fmt::format("vocabulary {}", part.model.vocab_size)};
    if (part.model.vocab_size <= most_sampled) {
        op.fields = fmt::format("dtype={} filters={} log_probability=no vocabulary={}", name(part.dtype),
                                yes_no(filters), part.model.vocab_size);
    }
    return op;
}

}  // namespace

std::vector<ModelOperator> operators(const Model& model, const WorkloadOptions& options) {
    const Part part = part_of(model, options);
    std::vector<ModelOperator> list;
    add_norms(part, list);
    list.push_back(token_embedding(part));
    const AttentionShape attention{
        .dtype = part.dtype, .heads = part.heads, .kv_heads = part.kv_heads, .head_dim = model.head_dim};
    for (ModelOperator& op : attention_operators(model, attention, options.tokens))
        list.push_back(std::move(op));
    add_linears(part, list);
    list.push_back(sampling("sampling", part, false));
    list.push_back(sampling("sampling, filters", part, true));
    return list;
}

std::vector<std::int64_t> token_counts(const WorkloadOptions& options) {
    if (options.tokens.empty()) return bucket_edges(default_max_tokens);
    const std::set<std::int64_t> unique(options.tokens.begin(), options.tokens.end());
    for (const std::int64_t tokens : unique) {
        if (tokens < 1 || tokens > max_model_size) {
            throw ConfigError(fmt::format("--tokens {}: allowed is 1 to {}", tokens, max_model_size));
        }
    }
    return {unique.begin(), unique.end()};
}

std::vector<std::string> sizes_at(const Field& field, const std::vector<std::int64_t>& values) {
    std::set<std::int64_t> unique;
    for (const std::int64_t value : values) unique.insert(std::clamp(value, field.min, field.max));
    std::vector<std::string> sizes;
    for (const std::int64_t value : unique) sizes.push_back(fmt::format("{}={}", field.name, value));
    return sizes;
}

std::vector<std::string> sizes_at(std::string_view family, const std::vector<std::int64_t>& values) {
    const Family* found = find_family(family);
    if (found == nullptr) return {};
    return sizes_at(found->fields[dynamic_fields(*found)[0]], values);
}

}  // namespace hone::tuner
