// The norms of a model, each with the addition to the residual stream that stands right in front of it.
#include <fmt/format.h>

#include "runtime/operators/describe_problem.h"
#include "tuner/models/model_part.h"

namespace hone::tuner {
namespace {

using runtime::yes_no;

/// Every token has this many rows.
std::vector<std::int64_t> times(std::vector<std::int64_t> tokens, std::int64_t rows) {
    for (std::int64_t& count : tokens) count *= rows;
    return tokens;
}

class NormOperators {
  public:
    explicit NormOperators(const ModelPart& part) : part_(part), model_(part.model) {}

    std::vector<ModelOperator> list() {
        if (model_.embedding_norm) add("embedding norm", 1, false);
        add_of_layers();
        if (model_.final_norm) add("final norm", 1, true);
        if (model_.qk_norm) add_of_heads();
        if (model_.latent) add_of_ranks();
        return std::move(list_);
    }

  private:
    void add_of_layers() {
        const std::int64_t layers = model_.num_hidden_layers;
        switch (model_.norms) {
            case NormPlaces::before: add_before(model_.parallel ? layers : 2 * layers); break;
            case NormPlaces::around:
                add_before(2 * layers);
                add_behind(layers);
                break;
            case NormPlaces::behind:
                add_behind(layers);
                list_.push_back(without_kernel("addition to residual", "add", 2 * layers - 1,
                                               fmt::format("hidden {}", model_.hidden_size)));
                break;
            case NormPlaces::after_sum: add("norm after residual", 2 * layers, true); break;
        }
    }

    /// The first one has no sum in front of it.
    void add_before(std::int64_t count) {
        if (model_.first_norm) add("first norm", 1, false);
        if (count > 1) add("norm after residual", count - 1, true);
        if (model_.two_norms) add("norm before feed-forward", count, false);
    }

    void add_behind(std::int64_t layers) {
        add("norm behind attention", layers, false);
        add("norm behind feed-forward", layers, false);
    }

    void add_of_heads() {
        const std::int64_t layers = layers_that(
            model_, [&](const LayerKind& kind) { return kind.rotary || !model_.qk_norm_with_rotation; });
        if (layers == 0) return;
        add_of_heads("query norm", part_.heads, layers);
        add_of_heads("key norm", part_.kv_heads, layers);
    }

    void add_of_heads(std::string role, std::int64_t heads, std::int64_t layers) {
        if (model_.head_norm == HeadNorm::own) {
            list_.push_back(
                without_kernel(std::move(role), "headnorm", layers,
                               fmt::format("{} heads of {}, each with a weight", heads, model_.head_dim)));
        } else if (model_.head_norm == HeadNorm::all_heads) {
            add(std::move(role), layers, false, heads * model_.head_dim);
        } else {
            add(std::move(role), layers, false, model_.head_dim, heads);
        }
    }

    void add_of_ranks() {
        const LatentSizes& latent = *model_.latent;
        if (latent.q_rank > 0) add("norm of query rank", model_.num_hidden_layers, false, latent.q_rank);
        add("norm of key, value rank", model_.num_hidden_layers, false, latent.kv_rank);
    }

    void add(std::string role, std::int64_t count, bool residual) {
        add(std::move(role), count, residual, model_.hidden_size);
    }

    void add(std::string role, std::int64_t count, bool residual, std::int64_t width, std::int64_t rows = 1) {
        list_.push_back(norm_operator(part_, std::move(role), count, residual, width, rows));
    }

    const ModelPart& part_;
    const Model& model_;
    std::vector<ModelOperator> list_;
};

}  // namespace

ModelOperator norm_operator(const ModelPart& part, std::string role, std::int64_t count, bool residual,
                            std::int64_t width, std::int64_t rows) {
    const std::string& family = part.model.norm;
    std::string fields =
        fmt::format("dtype={} residual={} hidden={}", name(part.dtype), yes_no(residual), width);
    if (part.model.norm_unit_offset) fields += " unit_offset=yes";
    if (family == "layernorm") fields += fmt::format(" bias={}", yes_no(part.model.norm_bias));
    return {.role = std::move(role),
            .family = family,
            .fields = std::move(fields),
            .sizes = sizes_at(family, times(part.tokens, rows)),
            .count = count,
            .shape = fmt::format("hidden {}", width)};
}

std::vector<ModelOperator> norm_operators(const ModelPart& part) { return NormOperators(part).list(); }

}  // namespace hone::tuner
