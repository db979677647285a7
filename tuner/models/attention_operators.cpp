#include "tuner/models/attention_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

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
    std::string_view prompt;  ///< fields of attention_prefill
    std::string_view decode;  ///< fields of attention_decode
};
constexpr std::array<CacheLayout, 2> cache_layouts{
    {{"", "slots=no page_size=0", "lengths=none", "lengths=no page_size=0"},
     {", paged cache", "slots=no page_size=16", "lengths=paged page_size=16", "lengths=yes page_size=16"}}};

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
        if (model_.latent_attention)
            return {
                untuned({.role = "latent attention", .count = model_.num_hidden_layers}, "attention_latent")};
        std::vector<ModelOperator> list;
        add_positions(list);
        const std::vector<Part> parts = parts_of_layers();
        for (const Part& part : parts) add_attention(part, list);
        return list;
    }

    std::vector<CacheSize> cache_sizes() const {
        const std::int64_t longest = std::min(positions(longest_cache), longest_cache);
        std::set<std::int64_t> lengths{longest};
        for (const std::int64_t length : cache_lengths) lengths.insert(std::min(length, longest));
        std::vector<CacheSize> sizes;
        for (const std::int64_t batch : batches()) {
            for (const std::int64_t length : lengths) {
                if (has_room(batch, length)) sizes.push_back({batch, length});
            }
        }
        return sizes;
    }

  private:
    /// Layers whose attention is alike.
    struct Part {
        std::string role;  ///< what follows the operator's name: ", window 4096"
        std::int64_t window = 0;
        std::int64_t chunk = 0;
        std::int64_t count = 0;
    };

    /// A role says a window or chunks where not all layers have the same.
    std::vector<Part> parts_of_layers() const {
        std::vector<Part> parts;
        for (const LayerGroup& group : layer_groups(model_)) {
            const auto found = std::ranges::find_if(parts, [&](const Part& part) {
                return part.window == group.kind.window && part.chunk == group.kind.chunk;
            });
            if (found != parts.end())
                found->count += group.count;
            else
                parts.push_back({{}, group.kind.window, group.kind.chunk, group.count});
        }
        if (parts.size() == 1) return parts;
        for (Part& part : parts) {
            if (part.window > 0) part.role = fmt::format(", window {}", part.window);
            if (part.chunk > 0) part.role += fmt::format(", chunks of {}", part.chunk);
        }
        return parts;
    }

    /// What happens to queries and keys before attention, and the append to the cache.
    void add_positions(std::vector<ModelOperator>& list) const {
        if (model_.rotary_dim == 0) return;
        const std::int64_t rotated = layers_that(model_, [](const LayerKind& kind) { return kind.rotary; });
        const std::int64_t others = model_.num_hidden_layers - rotated;
        if (model_.encoder) {
            list.push_back(untuned({.role = "rotary embedding", .count = rotated}, "rotary_embedding"));
            return;
        }
        for (const CacheLayout& layout : cache_layouts) {
            if (rotated > 0)
                list.push_back(append("rotary embedding and cache append", rotated, true, layout));
            if (others > 0) list.push_back(append("cache append", others, false, layout));
        }
        if (others > 0 && model_.scaled_queries)
            list.push_back(untuned({.role = "scale of queries by position", .count = others}, "scale"));
    }

    void add_attention(const Part& part, std::vector<ModelOperator>& list) const {
        if (const std::string_view family = uncovered(part); !family.empty()) {
            Part named = part;
            named.role = std::string(model_.alibi ? "attention with ALiBi" : "attention") + part.role;
            list.push_back(untuned(named, std::string(family)));
            return;
        }
        list.push_back(prompt(part, cache_layouts.front()));
        if (model_.encoder) return;
        list.push_back(prompt(part, cache_layouts.back()));
        for (const CacheLayout& layout : cache_layouts) list.push_back(decode(part, layout));
    }

    /// The name of attention that no family computes; empty: attention_prefill and attention_decode do.
    std::string_view uncovered(const Part& part) const {
        if (model_.alibi) return "attention_alibi";
        if (part.chunk > 0) return "attention_chunked";
        if (model_.encoder && part.window > 0) return "attention_around";
        return {};
    }

    /// Without fields: what no family covers.
    ModelOperator untuned(const Part& part, std::string family) const {
        std::string shape = fmt::format("{}/{} heads of {}", shape_.heads, shape_.kv_heads, shape_.head_dim);
        if (part.window > 0) shape += fmt::format(", window {}", part.window);
        if (part.chunk > 0) shape += fmt::format(", chunks of {}", part.chunk);
        return {.role = part.role,
                .family = std::move(family),
                .fields = {},
                .count = part.count,
                .shape = std::move(shape)};
    }

    ModelOperator tuned(const Part& part, std::string family, std::string_view fields,
                        std::vector<std::string> sizes, const CacheLayout& layout) const {
        ModelOperator op = untuned(part, std::move(family));
        if (!layout.name.empty()) op.use = Use::alternative;
        if (shape_.head_dim > most_head_dim) return op;
        op.fields = fmt::format("dtype={} heads={} kv_heads={} head_dim={} {}", name(shape_.dtype),
                                shape_.heads, shape_.kv_heads, shape_.head_dim, fields);
        op.sizes = std::move(sizes);
        return op;
    }

    /// Its norm has one weight for all heads; other norms of queries and keys stand apart.
    ModelOperator append(std::string_view role, std::int64_t layers, bool rotary,
                         const CacheLayout& layout) const {
        const bool norm = model_.qk_norm && model_.norm == "rmsnorm" &&
                          model_.head_norm == HeadNorm::shared && (rotary || !model_.qk_norm_with_rotation);
        return tuned({.role = fmt::format("{}{}", role, layout.name), .count = layers}, "rope_kv_append",
                     fmt::format("style={} norm={} rotary_dim={} {}",
                                 model_.interleaved_rotary && rotary ? "interleaved" : "half", yes_no(norm),
                                 rotary ? model_.rotary_dim : 0, layout.append),
                     sizes_at("rope_kv_append", tokens_), layout);
    }

    /// One sequence, all of whose keys are new.
    ModelOperator prompt(const Part& part, const CacheLayout& layout) const {
        std::set<std::int64_t> lengths;
        for (const std::int64_t count : tokens_) {
            if (count > runtime::most_decode_queries) lengths.insert(std::min(count, positions(count)));
        }
        std::vector<std::string> sizes;
        for (const std::int64_t length : lengths)
            sizes.push_back(fmt::format("batch=1 q_len={} kv_len={}", length, length));
        Part named = part;
        named.role = fmt::format("attention over a {}{}{}", model_.encoder ? "text" : "prompt", part.role,
                                 layout.name);
        return tuned(named, "attention_prefill",
                     fmt::format("causal={} window={} softcap={} {}{}", yes_no(!model_.encoder), part.window,
                                 yes_no(model_.softcap != 0), layout.prompt, sinks()),
                     std::move(sizes), layout);
    }

    /// A single query sees all keys: only a window needs to know where it stands.
    ModelOperator decode(const Part& part, const CacheLayout& layout) const {
        Part named = part;
        named.role = fmt::format("attention over one token{}{}", part.role, layout.name);
        return tuned(named, "attention_decode",
                     fmt::format("causal={} window={} softcap={} q_tokens=1 {}{}", yes_no(part.window > 0),
                                 part.window, yes_no(model_.softcap != 0), layout.decode, sinks()),
                     decode_sizes(), layout);
    }

    std::string_view sinks() const { return model_.sinks ? " sinks=yes" : ""; }

    std::vector<std::string> decode_sizes() const {
        std::vector<std::string> sizes;
        for (const auto& [batch, kv_len] : cache_sizes())
            sizes.push_back(fmt::format("batch={} kv_len={} q_len=1", batch, kv_len));
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

std::vector<CacheSize> cache_sizes(const Model& model, const AttentionShape& shape,
                                   const std::vector<std::int64_t>& tokens) {
    return AttentionOperators(model, shape, tokens).cache_sizes();
}

}  // namespace hone::tuner
