#include "tuner/models/attention_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "runtime/operators/attention_problem.h"
#include "runtime/operators/describe_problem.h"

namespace hone::tuner {
namespace {

using runtime::yes_no;

/// How a cache is kept. Fixed sizes of one tensor, which is what a framework's attention without an engine
/// calls; and what engines do: sequences of any length in pages, of vLLM's usual size.
struct CacheLayout {
    std::string_view name;
    std::string_view append;  ///< fields of rope_kv_append
    std::string_view decode;  ///< fields of attention_decode
};
constexpr std::array<CacheLayout, 2> cache_layouts{
    {{"", "slots=no page_size=0", "lengths=no page_size=0"},
     {", paged cache", "slots=no page_size=16", "lengths=yes page_size=16"}}};

/// Sizes at which attention over a cache is tuned: a factor of four apart, because dispatch takes the nearest
/// of both, which is then within a factor of two. A cache is also tuned at the model's longest.
constexpr std::array<std::int64_t, 5> usual_batches{1, 4, 16, 64, 256};
constexpr std::array<std::int64_t, 4> cache_lengths{256, 1024, 4096, 16384};
constexpr std::int64_t longest_cache = 32768;
/// Keys and values of all layers that one GPU has room for, about: no engine decodes more tokens together.
constexpr double most_cache_bytes = 0x1p36;

class AttentionOperators {
  public:
    AttentionOperators(const Model& model, const AttentionShape& shape,
                       const std::vector<std::int64_t>& tokens)
        : model_(model),
          shape_(shape),
          tokens_(token_counts({.tokens = tokens, .dtype = {}})),
          usual_tokens_(tokens.empty()) {}

    std::vector<ModelOperator> list() const {
        if (model_.latent_attention) return {untuned("latent attention", "attention_latent")};
        std::vector<ModelOperator> list;
        for (const CacheLayout& layout : cache_layouts) {
            if (model_.rotary_dim > 0) list.push_back(append(layout));
        }
        list.push_back(prompt());
        for (const CacheLayout& layout : cache_layouts) list.push_back(decode(layout));
        return list;
    }

  private:
    /// Without fields: what no family covers.
    ModelOperator untuned(std::string role, std::string family) const {
        const std::string window =
            model_.sliding_window > 0 ? fmt::format(", window {}", model_.sliding_window) : "";
        return {.role = std::move(role),
                .family = std::move(family),
                .fields = {},
                .count = model_.num_hidden_layers,
                .shape = fmt::format("{} heads, {} kv heads of {}{}", shape_.heads, shape_.kv_heads,
                                     shape_.head_dim, window)};
    }

    ModelOperator tuned(std::string role, std::string family, std::string_view fields,
                        std::vector<std::string> sizes) const {
        ModelOperator op = untuned(std::move(role), std::move(family));
        if (shape_.head_dim > most_head_dim) return op;
        op.fields = fmt::format("dtype={} heads={} kv_heads={} head_dim={} {}", name(shape_.dtype),
                                shape_.heads, shape_.kv_heads, shape_.head_dim, fields);
        op.sizes = std::move(sizes);
        return op;
    }

    ModelOperator append(const CacheLayout& layout) const {
        return tuned(fmt::format("rotary embedding and cache append{}", layout.name), "rope_kv_append",
                     fmt::format("style=half norm={} rotary_dim={} {}", yes_no(model_.qk_norm),
                                 model_.rotary_dim, layout.append),
                     sizes_at("rope_kv_append", tokens_));
    }

    /// One sequence, all of whose keys are new.
    ModelOperator prompt() const {
        std::set<std::int64_t> lengths;
        for (const std::int64_t count : tokens_) {
            if (count > runtime::most_decode_queries) lengths.insert(std::min(count, positions(count)));
        }
        std::vector<std::string> sizes;
        for (const std::int64_t length : lengths)
            sizes.push_back(fmt::format("batch=1 q_len={} kv_len={}", length, length));
        return tuned("attention over a prompt", "attention_prefill",
                     fmt::format("causal=yes window={} softcap={} lengths=none", model_.sliding_window,
                                 yes_no(model_.softcap)),
                     std::move(sizes));
    }

    /// A single query sees all keys: only a window needs to know where it stands.
    ModelOperator decode(const CacheLayout& layout) const {
        return tuned(
            fmt::format("attention over one token{}", layout.name), "attention_decode",
            fmt::format("causal={} window={} softcap={} q_tokens=1 {}", yes_no(model_.sliding_window > 0),
                        model_.sliding_window, yes_no(model_.softcap), layout.decode),
            decode_sizes());
    }

    std::vector<std::string> decode_sizes() const {
        const std::int64_t longest = std::min(positions(longest_cache), longest_cache);
        std::set<std::int64_t> lengths{longest};
        for (const std::int64_t length : cache_lengths) lengths.insert(std::min(length, longest));
        std::vector<std::string> sizes;
        for (const std::int64_t batch : batches()) {
            for (const std::int64_t length : lengths) {
                if (!has_room(batch, length)) continue;
                sizes.push_back(fmt::format("batch={} kv_len={} q_len=1", batch, length));
            }
        }
        return sizes;
    }

    std::vector<std::int64_t> batches() const {
        if (usual_tokens_) return {usual_batches.begin(), usual_batches.end()};
        std::vector<std::int64_t> batches = tokens_;
        std::erase_if(batches, [](std::int64_t batch) { return batch > most_sequences; });
        return batches;
    }

    bool has_room(std::int64_t sequences, std::int64_t length) const {
        const auto elements = static_cast<double>(2 * shape_.kv_heads * shape_.head_dim);
        const double token_bytes =
            elements * size_bytes(shape_.dtype) * static_cast<double>(model_.num_hidden_layers);
        return static_cast<double>(sequences * length) * token_bytes <= most_cache_bytes;
    }

    /// What the model knows at most; `unknown` where its file does not say.
    std::int64_t positions(std::int64_t unknown) const {
        return model_.max_position_embeddings > 0 ? model_.max_position_embeddings : unknown;
    }

    static constexpr std::int64_t most_head_dim = 256;

    const Model& model_;
    const AttentionShape& shape_;
    std::vector<std::int64_t> tokens_;
    bool usual_tokens_;  ///< nobody asked for others
};

}  // namespace

std::vector<ModelOperator> attention_operators(const Model& model, const AttentionShape& shape,
                                               const std::vector<std::int64_t>& tokens) {
    return AttentionOperators(model, shape, tokens).list();
}

}  // namespace hone::tuner
