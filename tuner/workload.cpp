#include "tuner/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "kernel_templates/catalog.h"
#include "kernel_templates/text.h"
#include "tuner/errors.h"
#include "tuner/model.h"

namespace hone::tuner {
namespace {

constexpr std::int64_t default_max_tokens = 8192;

/// Heads and the feed-forward width that one of the tensor-parallel GPUs holds.
struct Share {
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t intermediate = 0;
    std::int64_t vocab = 0;
};

std::int64_t divide(std::string_view what, std::int64_t value, int parts) {
    if (value % parts == 0) return value / parts;
    throw ConfigError(fmt::format("--tp {}: does not divide {} = {}", parts, what, value));
}

Share share_of(const Model& model, int parts) {
    if (parts < 1) throw ConfigError(fmt::format("--tp {}: has to be 1 or more", parts));
    return {.heads = divide("num_attention_heads", model.num_attention_heads, parts),
            .kv_heads = divide("num_key_value_heads", model.num_key_value_heads, parts),
            .intermediate = divide("intermediate_size", model.intermediate_size, parts),
            .vocab = (model.vocab_size + parts - 1) / parts};  // engines pad the vocabulary
}

std::string norm_fields(const Model& model, Dtype dtype, std::int64_t width, bool residual) {
    std::string fields =
        fmt::format("dtype={} residual={} hidden={}", name(dtype), residual ? "yes" : "no", width);
    if (model.norm == "layernorm") fields += fmt::format(" bias={}", model.norm_bias ? "yes" : "no");
    return fields;
}

void add_norms(const Model& model, Dtype dtype, const Share& share, std::vector<ModelOperator>& list) {
    const auto norm = [&](std::string role, std::int64_t width, bool residual, std::int64_t count,
                          std::int64_t rows) {
        list.push_back({.role = std::move(role),
                        .family = model.norm,
                        .fields = norm_fields(model, dtype, width, residual),
                        .count = count,
                        .rows_per_token = rows,
                        .shape = fmt::format("hidden {}", width)});
    };
    const std::int64_t layers = model.num_hidden_layers;
    norm("first norm", model.hidden_size, false, 1, 1);
    norm("norm after residual", model.hidden_size, true, 2 * layers - 1, 1);
    norm("final norm", model.hidden_size, true, 1, 1);
    if (!model.qk_norm) return;
    norm("query norm", model.head_dim, false, layers, share.heads);
    norm("key norm", model.head_dim, false, layers, share.kv_heads);
}

/// What this build cannot tune carries no fields: only its shape, for the list shown to people.
void add_attention(const Model& model, const Share& share, std::vector<ModelOperator>& list) {
    const auto add = [&](std::string role, std::string family, std::string shape) {
        list.push_back({.role = std::move(role),
                        .family = std::move(family),
                        .fields = {},
                        .count = model.num_hidden_layers,
                        .shape = std::move(shape)});
    };
    const std::string heads =
        fmt::format("{} heads, {} kv heads of {}{}", share.heads, share.kv_heads, model.head_dim,
                    model.sliding_window > 0 ? fmt::format(", window {}", model.sliding_window) : "");
    if (model.latent_attention) {
        add("latent attention", "attention_latent", heads);
        return;
    }
    add("rotary embedding and cache append", "rope_kv_append", heads);
    add("attention over a prompt", "attention_prefill", heads);
    add("attention over one token", "attention_decode", heads);
}

/// Roles of a feed-forward network's two products, which are tuned apart (docs/decisions/0011).
constexpr std::string_view first_half = "feed-forward, first half";
constexpr std::string_view second_half = "feed-forward, second half";

/// Rows that the language head sees: one a sequence, of as many sequences as decode together.
constexpr std::int64_t most_sequences = 512;

struct LinearShape {
    std::int64_t in = 0;
    std::int64_t out = 0;
    bool bias = false;
    std::string_view activation = "none";
    bool gated = false;
};

ModelOperator linear_operator(std::string_view role, Dtype dtype, const LinearShape& shape,
                              std::int64_t count) {
    const auto yes_no = [](bool value) { return value ? "yes" : "no"; };
    return {
        .role = std::string(role),
        .family = "linear",
        .fields = fmt::format("dtype={} activation={} gated={} bias={} in={} out={}", name(dtype),
                              shape.activation, yes_no(shape.gated), yes_no(shape.bias), shape.in, shape.out),
        .count = count,
        .shape = fmt::format("{} -> {}", shape.in, shape.out)};
}

void add_feed_forward(const Model& model, Dtype dtype, const Share& share, std::vector<ModelOperator>& list) {
    const std::int64_t layers = model.num_hidden_layers;
    if (model.experts > 1) {
        list.push_back({.role = "feed-forward",
                        .family = "fused_moe",
                        .fields = {},
                        .count = layers,
                        .shape = fmt::format("{} -> {}", model.hidden_size, share.intermediate)});
        return;
    }
    const auto half = [&](std::string_view role, const LinearShape& shape) {
        list.push_back(linear_operator(role, dtype, shape, layers));
        if (model.gated_ffn && model.ffn_bias) list.back().fields.clear();  // no operator has both
    };
    half(first_half, {.in = model.hidden_size,
                      .out = share.intermediate,
                      .bias = model.ffn_bias,
                      .activation = model.activation,
                      .gated = model.gated_ffn});
    half(second_half, {.in = share.intermediate, .out = model.hidden_size, .bias = model.ffn_bias});
}

void add_linears(const Model& model, Dtype dtype, const Share& share, std::vector<ModelOperator>& list) {
    const std::int64_t layers = model.num_hidden_layers;
    list.push_back(linear_operator("query, key, value projection", dtype,
                                   {.in = model.hidden_size,
                                    .out = (share.heads + 2 * share.kv_heads) * model.head_dim,
                                    .bias = model.qkv_bias},
                                   layers));
    list.push_back(linear_operator(
        "output projection", dtype,
        {.in = share.heads * model.head_dim, .out = model.hidden_size, .bias = model.output_bias}, layers));
    add_feed_forward(model, dtype, share, list);
    list.push_back(linear_operator("language head", dtype, {.in = model.hidden_size, .out = share.vocab}, 1));
    list.back().most_rows = most_sequences;
}

std::vector<std::int64_t> checked_tokens(const WorkloadOptions& options) {
    if (options.tokens.empty()) return bucket_edges(default_max_tokens);
    const std::set<std::int64_t> unique(options.tokens.begin(), options.tokens.end());
    for (const std::int64_t tokens : unique) {
        if (tokens < 1 || tokens > max_model_size) {
            throw ConfigError(fmt::format("--tokens {}: allowed is 1 to {}", tokens, max_model_size));
        }
    }
    return {unique.begin(), unique.end()};
}

/// The operator's static problem at each token count, ascending. Counts beyond what the family or the
/// operator can see are tuned at its end.
std::vector<Problem> at_tokens(const Family& family, const ModelOperator& op,
                               const std::vector<std::int64_t>& tokens) {
    const int dynamic = dynamic_field(family);
    if (dynamic < 0) throw ConfigError(fmt::format("family {} has no dynamic dimension", family.name));
    const Field& field = family.fields[static_cast<std::size_t>(dynamic)];
    const std::int64_t most = op.most_rows > 0 ? std::min(op.most_rows, field.max) : field.max;
    std::set<std::int64_t> rows;
    for (const std::int64_t count : tokens)
        rows.insert(std::clamp(count * op.rows_per_token, field.min, most));
    std::vector<Problem> problems;
    for (const std::int64_t value : rows) {
        std::string error;
        const auto problem =
            parse_problem(family, fmt::format("{} {}={}", op.fields, field.name, value), &error);
        if (!problem) throw ConfigError(error);
        problems.push_back(*problem);
    }
    return problems;
}

void append_new(std::vector<Problem>& problems, std::vector<Problem> more) {
    for (const Problem& problem : more) {
        if (std::find(problems.begin(), problems.end(), problem) == problems.end())
            problems.push_back(problem);
    }
}

/// Problems of one static part stand together, dynamic value ascending: images are shared and a neighbour's
/// winner is known.
void group_by_static_part(std::vector<Problem>& problems) {
    std::vector<Problem> parts;
    for (const Problem& problem : problems) append_new(parts, {static_part(problem)});
    const auto position = [&](const Problem& problem) {
        return std::find(parts.begin(), parts.end(), static_part(problem)) - parts.begin();
    };
    std::stable_sort(problems.begin(), problems.end(), [&](const Problem& left, const Problem& right) {
        const auto at_left = position(left);
        const auto at_right = position(right);
        if (at_left != at_right) return at_left < at_right;
        const auto dynamic = static_cast<std::size_t>(dynamic_field(*left.family));
        return left[dynamic] < right[dynamic];
    });
}

std::vector<std::string_view> family_names() {
    std::vector<std::string_view> names;
    for (const Family* family : families()) names.push_back(family->name);
    return names;
}

}  // namespace

std::vector<ModelOperator> operators(const Model& model, const WorkloadOptions& options) {
    const Share share = share_of(model, options.tensor_parallel);
    std::vector<ModelOperator> list;
    const Dtype dtype = options.dtype.value_or(model.dtype);
    add_norms(model, dtype, share, list);
    add_attention(model, share, list);
    add_linears(model, dtype, share, list);
    return list;
}

Workload model_workload(const Model& model, const WorkloadOptions& options) {
    Workload workload{.name = model.name, .problems = {}, .tuned = {}, .without_family = {}};
    const std::vector<std::int64_t> tokens = checked_tokens(options);
    for (const ModelOperator& op : operators(model, options)) {
        const Family* family = find_family(op.family);
        if (family == nullptr || op.fields.empty()) {
            workload.without_family.push_back(op);
            continue;
        }
        std::vector<Problem> problems = at_tokens(*family, op, tokens);
        workload.tuned.push_back({.role = op.role, .problem = problems.front(), .count = op.count});
        append_new(workload.problems, std::move(problems));
    }
    group_by_static_part(workload.problems);
    return workload;
}

Workload operator_workload(const std::string& family_name, const std::string& fields,
                           const WorkloadOptions& options) {
    const Family* family = find_family(family_name);
    if (family == nullptr) {
        const std::vector<std::string_view> names = family_names();
        throw ConfigError(fmt::format("no operator '{}'{}: this build has {}", family_name,
                                      did_you_mean(family_name, names), fmt::join(names, ", ")));
    }
    std::string text = fields;
    if (options.dtype) text += fmt::format(" dtype={}", name(*options.dtype));
    Workload workload{.name = family_name, .problems = {}, .tuned = {}, .without_family = {}};
    const int dynamic = dynamic_field(*family);
    if (dynamic >= 0 &&
        text.find(fmt::format("{}=", family->fields[static_cast<std::size_t>(dynamic)].name)) !=
            std::string::npos) {
        std::string error;
        const auto problem = parse_problem(*family, text, &error);
        if (!problem) throw ConfigError(error);
        workload.problems.push_back(*problem);
        return workload;
    }
    workload.problems =
        at_tokens(*family, {.role = family_name, .family = family_name, .fields = text, .shape = {}},
                  checked_tokens(options));
    return workload;
}

}  // namespace hone::tuner
