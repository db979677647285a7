// The linear layers of a model: projections of attention, feed-forward networks, experts, and the head.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/operators/describe_problem.h"
#include "tuner/errors.h"
#include "tuner/models/model_part.h"

namespace hone::tuner {
namespace {

using runtime::yes_no;

struct LinearShape {
    std::int64_t in = 0;
    std::int64_t out = 0;
    bool bias = false;
    std::string_view activation = "none";
    bool gated = false;
    bool residual = false;
};

/// Fields that only layers with codes have.
std::string format_fields(const checkpoints::WeightFormat& weights) {
    if (!weights.format) return {};
    return fmt::format(" format={} group={} zeros={}", name(*weights.format), weights.group,
                       yes_no(weights.zeros));
}

/// Up to 256 rows a kernel serves the next power of two as well as its own size; from 2,048 on tiles of
/// another height save little.
constexpr std::int64_t least_finer = 256;
constexpr std::int64_t most_finer = 2048;

class LinearOperators {
  public:
    explicit LinearOperators(const ModelPart& part) : part_(part), model_(part.model) {}

    std::vector<ModelOperator> list() {
        if (model_.latent_attention)
            add_latent_projections();
        else
            add_projections();
        const std::int64_t with_experts =
            layers_that(model_, [](const LayerKind& kind) { return kind.experts; });
        const std::int64_t dense = model_.num_hidden_layers - with_experts;
        if (dense > 0) add_feed_forward("feed-forward", part_.intermediate, dense);
        if (with_experts > 0) add_experts(with_experts);
        if (model_.head_transform) add_head_transform();
        if (model_.has_head) list_.push_back(language_head());
        return std::move(list_);
    }

  private:
    void add(std::string_view role, std::int64_t count, const LinearShape& shape) {
        list_.push_back(linear(role, count, shape, part_.weights));
    }

    ModelOperator linear(std::string_view role, std::int64_t count, const LinearShape& shape,
                         const checkpoints::WeightFormat& weights) const {
        const std::string_view family = weights.format ? "quantized_linear" : "linear";
        std::string fields = fmt::format("dtype={}{} activation={} gated={} bias={} in={} out={}",
                                         name(part_.dtype), format_fields(weights), shape.activation,
                                         yes_no(shape.gated), yes_no(shape.bias), shape.in, shape.out);
        if (shape.residual) fields += " residual=yes";
        return {.role = std::string(role),
                .family = std::string(family),
                .fields = std::move(fields),
                .sizes = sizes_at(family, rows()),
                .count = count,
                .shape = fmt::format("{} -> {}", shape.in, shape.out)};
    }

    /// Where nobody asked for others, sizes between powers of two as well: where a winner of one is known it
    /// has a bucket of its own, else calls of it run the next power's tiles, 1.1 to 1.3 times as long.
    std::vector<std::int64_t> rows() const {
        std::vector<std::int64_t> rows = part_.tokens;
        if (!part_.usual_tokens) return rows;
        for (std::int64_t size = least_finer; size < most_finer; ++size)
            if (is_finer_edge(size)) rows.push_back(size);
        return rows;
    }

    void add_projections() {
        const std::int64_t layers = model_.num_hidden_layers;
        add("query, key, value projection", layers,
            {.in = model_.hidden_size,
             .out = (part_.heads + 2 * part_.kv_heads) * model_.head_dim,
             .bias = model_.qkv_bias});
        if (model_.clipped_qkv) {
            list_.push_back(without_kernel(
                "cut of query, key, value", "clip", layers,
                fmt::format("{} heads of {}", part_.heads + 2 * part_.kv_heads, model_.head_dim)));
        }
        add("output projection", layers,
            {.in = part_.heads * model_.head_dim, .out = model_.hidden_size, .bias = model_.output_bias});
    }

    /// Products down to a rank, which every GPU has whole, and up to its heads.
    void add_latent_projections() {
        const std::int64_t layers = model_.num_hidden_layers;
        if (!model_.latent) {
            list_.push_back(without_kernel("products of latent attention", "linear", layers,
                                           fmt::format("hidden {}", model_.hidden_size)));
            return;
        }
        const LatentSizes& latent = *model_.latent;
        const std::int64_t queries = part_.heads * (latent.nope_head_dim + latent.rope_head_dim);
        if (latent.q_rank > 0) {
            add("query projection to rank", layers, {.in = model_.hidden_size, .out = latent.q_rank});
            add("query projection from rank", layers, {.in = latent.q_rank, .out = queries});
        } else {
            add("query projection", layers, {.in = model_.hidden_size, .out = queries});
        }
        add("key, value projection to rank", layers,
            {.in = model_.hidden_size, .out = latent.kv_rank + latent.rope_head_dim});
        add("key, value projection from rank", layers,
            {.in = latent.kv_rank, .out = part_.heads * (latent.nope_head_dim + latent.v_head_dim)});
        add("output projection", layers,
            {.in = part_.heads * latent.v_head_dim, .out = model_.hidden_size, .bias = model_.output_bias});
    }

    /// Two products, which are tuned apart (docs/decisions/0011). In a parallel block the second one adds
    /// attention's result.
    void add_feed_forward(std::string_view role, std::int64_t width, std::int64_t layers) {
        add(fmt::format("{}, first half", role), layers,
            {.in = model_.hidden_size,
             .out = width,
             .bias = model_.ffn_bias,
             .activation = model_.activation,
             .gated = model_.gated_ffn});
        add(fmt::format("{}, second half", role), layers,
            {.in = width, .out = model_.hidden_size, .bias = model_.ffn_bias, .residual = model_.parallel});
        if (!model_.gated_ffn || !model_.ffn_bias) return;
        list_.back().fields.clear();  // no operator has a gate and biases
        (list_.end() - 2)->fields.clear();
    }

    /// The router and a shared expert's gate have weights of the model's dtype.
    void add_experts(std::int64_t layers) {
        const LinearShape router{.in = model_.hidden_size, .out = model_.experts, .bias = model_.router_bias};
        list_.push_back(linear("router", layers, router, {}));
        add_routing(layers);
        const std::int64_t whole = model_.expert_width > 0 ? model_.expert_width : model_.intermediate_size;
        const std::int64_t width = divide("the experts' width", whole, part_.parts);
        const std::string_view bias = model_.expert_bias ? " bias=yes" : "";
        if (model_.own_expert_network || model_.experts_per_token == 0) {
            list_.push_back(
                without_kernel("experts", "fused_moe", layers,
                               fmt::format("{} -> {}, {}", model_.hidden_size, width, experts_of_a_token())));
        } else {
            add_product_of_experts(
                "gate and up of experts", layers, model_.hidden_size, width,
                fmt::format("activation={} gated={}{} gather=yes",
                            model_.expert_activation.empty() ? model_.activation : model_.expert_activation,
                            yes_no(model_.gated_ffn), bias));
            add_product_of_experts("down of experts", layers, width, model_.hidden_size,
                                   fmt::format("combine=yes{}", bias));
        }
        if (model_.shared_width == 0) return;
        add_feed_forward("shared expert",
                         divide("the shared expert's width", model_.shared_width, part_.parts), layers);
        if (!model_.shared_gate) return;
        const LinearShape gate{.in = model_.hidden_size, .out = 1};
        list_.push_back(linear("gate of shared expert", layers, gate, {}));
    }

    [[nodiscard]] std::string experts_of_a_token() const {
        std::string words = fmt::format("{} experts", model_.experts);
        if (model_.experts_per_token > 0) words += fmt::format(", {} a token", model_.experts_per_token);
        return words;
    }

    /// Every GPU routes all tokens.
    void add_routing(std::int64_t layers) {
        if (!model_.softmax_routing || model_.experts_per_token == 0) {
            list_.push_back(without_kernel("routing", "other_routing", layers, experts_of_a_token()));
            return;
        }
        add_of_experts("routing", "expert_routing", layers,
                       fmt::format("renormalize={}", yes_no(model_.renormalized_routing)),
                       experts_of_a_token());
    }

    /// Weights of the model's dtype, or codes as other linear layers have.
    void add_product_of_experts(std::string role, std::int64_t layers, std::int64_t in, std::int64_t out,
                                std::string_view options) {
        const checkpoints::WeightFormat& weights = part_.weights;
        const std::string format = weights.format
                                       ? fmt::format("format={} group={} zeros={} ", name(*weights.format),
                                                     weights.group, yes_no(weights.zeros))
                                       : std::string();
        add_of_experts(std::move(role), weights.format ? "quantized_expert_linear" : "expert_linear", layers,
                       fmt::format("{}{} in={} out={}", format, options, in, out),
                       fmt::format("{} -> {}, {}", in, out, experts_of_a_token()));
    }

    void add_of_experts(std::string role, std::string_view family, std::int64_t layers,
                        std::string_view fields, std::string shape) {
        list_.push_back({.role = std::move(role),
                         .family = std::string(family),
                         .fields = fmt::format("dtype={} {} experts={} top_k={}", name(part_.dtype), fields,
                                               model_.experts, model_.experts_per_token),
                         .sizes = sizes_at(family, part_.tokens),
                         .count = layers,
                         .shape = std::move(shape)});
    }

    void add_head_transform() {
        const LinearShape dense{.in = model_.hidden_size,
                                .out = model_.hidden_size,
                                .bias = model_.transform_bias,
                                .activation = model_.activation};
        list_.push_back(linear("layer before the head", 1, dense, {}));
        list_.push_back(norm_operator(part_, "norm before the head", 1, false, model_.hidden_size));
    }

    /// It sees a row a sequence, an encoder's a row a token, and has numbers for weights unless something
    /// else is said.
    ModelOperator language_head() const {
        ModelOperator head = linear("language head", 1,
                                    {.in = model_.hidden_size, .out = part_.vocab, .bias = model_.head_bias},
                                    part_.weights.lm_head ? part_.weights : checkpoints::WeightFormat{});
        if (model_.encoder) return head;
        std::vector<std::int64_t> rows = part_.tokens;
        for (std::int64_t& count : rows) count = std::min(count, most_sequences);
        head.sizes = sizes_at(head.family, rows);
        return head;
    }

    const ModelPart& part_;
    const Model& model_;
    std::vector<ModelOperator> list_;
};

}  // namespace

std::int64_t divide(std::string_view what, std::int64_t value, int parts) {
    if (value % parts == 0) return value / parts;
    throw ConfigError(fmt::format("--tp {}: does not divide {} = {}", parts, what, value));
}

ModelOperator without_kernel(std::string role, std::string family, std::int64_t count, std::string shape) {
    return {.role = std::move(role),
            .family = std::move(family),
            .fields = {},
            .count = count,
            .shape = std::move(shape)};
}

std::vector<ModelOperator> linear_operators(const ModelPart& part) { return LinearOperators(part).list(); }

}  // namespace hone::tuner
