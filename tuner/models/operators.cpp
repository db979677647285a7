#include "tuner/models/operators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "checkpoints/error.h"
#include "checkpoints/pack/request.h"
#include "kernel_templates/catalog.h"
#include "runtime/operators/describe_problem.h"
#include "tuner/errors.h"
#include "tuner/models/attention_operators.h"
#include "tuner/models/model_part.h"
#include "tuner/models/step_operators.h"

namespace hone::tuner {
namespace {

using runtime::yes_no;

constexpr std::int64_t default_max_tokens = 8192;
constexpr double most_cap = 65536;                            ///< of logits, of the family sample
constexpr std::int64_t most_sampled = std::int64_t{1} << 20;  ///< logits a row of the family sample

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

ModelPart part_of(const Model& model, const WorkloadOptions& options) {
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
            .parts = parts,
            .weights = weights_of(model, options)};
}

/// How many rows the table has chooses no kernel, nor does which part of them a GPU holds.
ModelOperator token_embedding(const ModelPart& part) {
    return {.role = "token embedding",
            .family = "embedding",
            .fields = fmt::format("dtype={} index=int32 scale={} positions={} hidden={}", name(part.dtype),
                                  yes_no(part.model.embedding_scale), yes_no(part.model.learned_positions),
                                  part.model.hidden_size),
            .sizes = sizes_at("embedding", look_ups_of(part)),
            .count = 1,
            .shape = fmt::format("hidden {}", part.model.hidden_size)};
}

/// Only its look-up is of the family embedding, which adds no third table.
ModelOperator token_types(const ModelPart& part) {
    return without_kernel("token types", "embedding_sum", 1,
                          fmt::format("hidden {}", part.model.hidden_size));
}

/// The family takes whole numbers.
bool has_sampled_cap(const Model& model) {
    return model.logit_cap <= most_cap && model.logit_cap == std::floor(model.logit_cap);
}

/// One row a sequence; each GPU sees the whole vocabulary.
ModelOperator sampling(std::string_view role, const ModelPart& part, bool filters) {
    ModelOperator op{.role = std::string(role),
                     .family = "sample",
                     .fields = {},
                     .sizes = sizes_at("sample", drawn_rows_of(part)),
                     .count = 1,
                     .shape = fmt::format("vocabulary {}", part.model.vocab_size),
                     .use = filters ? Use::alternative : Use::all};
    if (part.model.vocab_size > most_sampled || !has_sampled_cap(part.model)) return op;
    op.fields = fmt::format("dtype={} filters={} log_probability=no{} vocabulary={}", name(part.dtype),
                            yes_no(filters),
                            part.model.logit_cap == 0 ? "" : fmt::format(" softcap={}", part.model.logit_cap),
                            part.model.vocab_size);
    return op;
}

/// Of the run-time fields the least counts.
std::optional<std::string> static_words(const ModelOperator& op) {
    const Family* family = find_family(op.family);
    if (family == nullptr || op.fields.empty()) return std::nullopt;
    std::string words = op.fields;
    for (const std::uint8_t index : dynamic_fields(*family)) {
        const Field& field = family->fields[index];
        words += fmt::format(" {}={}", field.name, field.min);
    }
    const std::optional<Problem> problem = parse_problem(*family, words);
    return problem ? std::optional(to_string(static_part(*problem))) : std::nullopt;
}

/// But those whose static problem the list has.
void append_new(std::vector<ModelOperator>& list, std::vector<ModelOperator> more) {
    std::set<std::optional<std::string>> known;
    for (const ModelOperator& op : list) known.insert(static_words(op));
    for (ModelOperator& op : more) {
        if (known.insert(static_words(op)).second) list.push_back(std::move(op));
    }
}

}  // namespace

std::vector<std::int64_t> look_ups_of(const ModelPart& part) {
    return part.usual_tokens ? std::vector<std::int64_t>{1, 16, 128, 1024, 8192} : part.tokens;
}

std::vector<std::int64_t> drawn_rows_of(const ModelPart& part) {
    std::vector<std::int64_t> rows = part.tokens;
    if (part.usual_tokens) rows = {1, 4, 16, 64, 256};
    for (std::int64_t& count : rows) count = std::min(count, most_sequences);
    return rows;
}

std::vector<ModelOperator> operators(const Model& model, const WorkloadOptions& options) {
    const ModelPart part = part_of(model, options);
    std::vector<ModelOperator> list = norm_operators(part);
    list.push_back(token_embedding(part));
    if (model.token_types) list.push_back(token_types(part));
    const AttentionShape attention{
        .dtype = part.dtype, .heads = part.heads, .kv_heads = part.kv_heads, .head_dim = model.head_dim};
    for (ModelOperator& op : attention_operators(model, attention, options.tokens))
        list.push_back(std::move(op));
    for (ModelOperator& op : linear_operators(part)) list.push_back(std::move(op));
    if (model.encoder) return list;
    list.push_back(sampling("sampling", part, false));
    list.push_back(sampling("sampling, filters", part, true));
    append_new(list, step_operators(part, cache_sizes(model, attention, options.tokens)));
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
