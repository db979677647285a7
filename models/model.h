// What a model file says that decides problems: sizes, and how a layer of the model is built. A file that
// names its model_type is read by that architecture's entry in architectures/; one without is read by its
// keys. docs/models.md has both.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernel_templates/dtype.h"
#include "models/model_document.h"

namespace hone::models {

/// Where the norms of a layer stand. x is the residual stream, f attention or the feed-forward network.
enum class NormPlaces : std::uint8_t {
    before,     ///< x + f(norm(x)): Llama, GPT-2
    around,     ///< x + norm(f(norm(x))): Gemma 2 and 3, GLM-4
    behind,     ///< x + norm(f(x)): OLMo 2
    after_sum,  ///< norm(x + f(x)): BERT
};

/// Which elements a norm of queries and keys is over, and whose weights it has.
enum class HeadNorm : std::uint8_t {
    shared,    ///< each head, with one weight for all
    own,       ///< each head, with a weight of its own
    all_heads  ///< all heads of a token together
};

/// What of a layer may differ from the next one's.
struct LayerKind {
    std::int64_t window = 0;  ///< keys that a query sees, its own the last; of an encoder around it; 0: all
    std::int64_t chunk = 0;   ///< tokens of a chunk, beyond which attention does not look; 0: no chunks
    bool rotary = true;
    bool window_angles = false;  ///< rotates as layers with a window do, of models where these turn otherwise
    bool experts = false;        ///< a mixture of experts in place of one feed-forward network

    friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

/// Layers that are alike, wherever they stand.
struct LayerGroup {
    LayerKind kind;
    std::int64_t count = 0;
};

/// Multi-head latent attention: queries and keys go through products of lower rank.
struct LatentSizes {
    std::int64_t q_rank = 0;  ///< 0: one product for queries
    std::int64_t kv_rank = 0;
    std::int64_t nope_head_dim = 0;  ///< elements of a head that are not rotated
    std::int64_t rope_head_dim = 0;
    std::int64_t v_head_dim = 0;
};

/// The keys of a model that decide shapes, with Hugging Face's names.
struct Model {
    std::string name;
    std::string architecture;  ///< model_type; empty: the file does not say
    std::string activation;    ///< "silu", "gelu_tanh", ...
    std::string norm;          ///< "rmsnorm" or "layernorm"
    Dtype dtype = Dtype::bf16;
    std::int64_t hidden_size = 0;
    std::int64_t intermediate_size = 0;
    std::int64_t num_attention_heads = 0;
    std::int64_t num_key_value_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t num_hidden_layers = 0;
    std::int64_t vocab_size = 0;
    std::int64_t max_position_embeddings = 0;
    std::int64_t sliding_window = 0;  ///< 0: none
    std::int64_t rotary_dim = 0;      ///< elements of a head that are rotated; 0: learned positions
    double norm_epsilon = 1e-5;
    bool gated_ffn = true;
    bool norm_bias = false;
    bool norm_unit_offset = false;  ///< norms scale by 1 + weight, those of queries and keys, too
    bool qkv_bias = false;          ///< the query, key and value projections have one
    bool output_bias = false;       ///< the projection behind attention has one
    bool ffn_bias = false;          ///< all linear layers of the feed-forward network have one
    bool qk_norm = false;
    HeadNorm head_norm = HeadNorm::shared;  ///< with qk_norm
    bool qk_norm_with_rotation = false;     ///< with qk_norm: only in layers that rotate
    double softcap = 0;                     ///< of attention's scores; 0: none
    double query_scalar = 0;        ///< scores are scaled by its root's inverse; 0: by that of head_dim
    double score_factor = 0;        ///< in place of both; 0: none
    double embedding_factor = 0;    ///< with embedding_scale: that number; 0: the architecture's own
    double residual_factor = 0;     ///< of what is added to the residual stream; 0: 1
    double logit_divisor = 0;       ///< 0: 1
    std::int64_t experts = 0;       ///< mixture of experts; 0 or 1: one dense feed-forward
    bool latent_attention = false;  ///< compressed keys and values (MLA)

    std::vector<LayerGroup> layers;           ///< empty: all alike, as the fields above say
    std::vector<std::size_t> group_of_layer;  ///< which of `layers` each layer is of; empty where that is
    NormPlaces norms = NormPlaces::before;
    bool parallel = false;   ///< attention and the feed-forward network take the same x
    bool two_norms = false;  ///< parallel: each behind a norm of its own
    bool encoder = false;    ///< all tokens see each other; nothing is cached
    bool final_norm = true;
    bool embedding_norm = false;
    bool first_norm = true;              ///< false: the first layer takes the embedding's norm
    bool embedding_scale = false;        ///< tokens' rows are multiplied by a number
    bool learned_positions = false;      ///< a table of positions is added to tokens
    bool token_types = false;            ///< so is one of segments
    bool alibi = false;                  ///< positions are a bias of attention's scores
    bool interleaved_rotary = false;     ///< neighbours rotate, not halves of a head
    bool sinks = false;                  ///< each head has a score beside its keys'
    bool clipped_qkv = false;            ///< queries, keys and values are cut to a range
    bool scaled_queries = false;         ///< layers without rotation scale queries by position
    bool tied_head = false;              ///< the language head's weight is the embedding's
    bool head_bias = false;              ///< the language head has one
    bool head_transform = false;         ///< masked language models: a dense layer and a norm before the head
    bool transform_bias = false;         ///< with head_transform: that dense layer has one
    bool has_head = true;                ///< false: an encoder whose output is its last layer
    double logit_cap = 0;                ///< 0: none
    bool router_bias = false;            ///< with experts
    std::int64_t experts_per_token = 0;  ///< 0: not known
    std::int64_t expert_width = 0;       ///< 0: intermediate_size
    std::int64_t shared_width = 0;       ///< width of the expert that sees all tokens; 0: none
    bool shared_gate = false;            ///< whose result a gate of one row scales
    bool softmax_routing = false;        ///< a token's experts are the largest of a softmax over all of them
    bool renormalized_routing = false;   ///< with softmax_routing: their weights are divided by their sum
    std::string expert_activation;       ///< empty: that of other networks
    bool expert_bias = false;            ///< products of experts have biases
    bool own_expert_network = false;     ///< experts are no gated networks, or scale what they are given
    std::optional<LatentSizes> latent;   ///< with latent_attention: its products
    std::vector<std::string> warnings;   ///< keys that are not read, and other doubts, a sentence each
    /// What the file says of stored weights; checkpoints::weight_format() judges it.
    std::optional<checkpoints::QuantizationConfig> quantization;
};

/// Throws ModelError naming file, line and key for a model_type that is not in the table, a missing key
/// (with every accepted spelling), a value of the wrong kind, out of 1 .. 2^24, or sizes that contradict each
/// other.
[[nodiscard]] Model model_from(const ModelDocument& document, const std::string& name);

/// Kinds of the model's layers with their counts, which add up to num_hidden_layers.
[[nodiscard]] std::vector<LayerGroup> layer_groups(const Model& model);
/// What kind each of them is of, in their order.
[[nodiscard]] LayerKind kind_of_layer(const Model& model, std::int64_t layer);
/// How many of them are of a kind.
[[nodiscard]] std::int64_t layers_that(const Model& model,
                                       const std::function<bool(const LayerKind&)>& are_meant);

/// A config.json or a file of known models. Beside a config.json the files count as well that older GPTQ and
/// AWQ checkpoints have there. Throws InputError (file, line, key) for an unreadable model and for sizes that
/// make no sense.
[[nodiscard]] Model read_model_file(const std::filesystem::path& file, const std::string& name);
/// The same of a file that has been read.
[[nodiscard]] Model read_model(const ModelDocument& document, const std::filesystem::path& file,
                               const std::string& name);
/// The config.json of a Hugging Face folder. Throws as read_model_file.
[[nodiscard]] Model read_model_folder(const std::filesystem::path& folder);

/// Largest size that any key may have.
inline constexpr std::int64_t max_model_size = std::int64_t{1} << 24;
inline constexpr std::int64_t max_layers = 65536;

}  // namespace hone::models
