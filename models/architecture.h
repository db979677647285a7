// How a model_type is read: which keys say what, what holds where they are left out, and how a layer is
// built. One entry a model_type in architectures/, and nothing else to edit for a new one. Names and
// defaults are those of the configuration classes in Hugging Face's transformers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "models/keys.h"
#include "models/model.h"

namespace hone::models {

/// What a file that leaves a size out means.
enum class Otherwise : std::uint8_t {
    needed,      ///< nothing: an error
    none,        ///< there is none
    heads,       ///< as many as attention heads
    head_share,  ///< hidden size / heads
    four_widths  ///< four times the hidden size
};

struct SizeKey {
    Spellings keys;
    std::variant<Otherwise, std::int64_t> otherwise = Otherwise::needed;
};

/// A factor or a cap; 0 is none, as null is.
struct NumberKey {
    Spellings keys{};
    double otherwise = 0;
};

/// Without keys it always holds, or never.
struct FlagKey {
    Spellings keys;
    bool otherwise = false;
};
inline const FlagKey always{{}, true};
inline const FlagKey never{};
inline const FlagKey attention_bias{{"attention_bias"}};
inline const FlagKey not_tied{{"tie_word_embeddings"}, false};

/// Which layers are meant; i counts from 0, n is the key's value.
struct Spread {
    enum class Rule : std::uint8_t {
        all,
        not_last_of,   ///< (i + 1) % n != 0
        last_of,       ///< (i + 1) % n == 0
        not_first_of,  ///< i % n != 0
        from           ///< i >= n
    };
    Rule rule = Rule::all;
    Spellings keys;
    std::int64_t otherwise = 1;
};

struct Sizes {
    SizeKey hidden{{"hidden_size"}};
    SizeKey intermediate{{"intermediate_size"}};
    SizeKey heads{{"num_attention_heads"}};
    SizeKey kv_heads{{"num_key_value_heads"}, Otherwise::heads};
    SizeKey head_dim{{"head_dim"}, Otherwise::head_share};
    SizeKey layers{{"num_hidden_layers"}};
    SizeKey vocabulary{{"vocab_size"}};
    SizeKey positions{{"max_position_embeddings"}, Otherwise::none};
};

struct Norms {
    std::string_view family = "rmsnorm";
    Spellings epsilon{"rms_norm_eps"};
    double otherwise = 1e-6;  ///< where no key says it
    FlagKey bias = never;
    bool unit_offset = false;  ///< scale by 1 + weight
    NormPlaces places = NormPlaces::before;
    bool of_embedding = false;
    bool before_first_layer = true;
    bool final_norm = true;
};

struct Window {
    SizeKey size{{}, Otherwise::none};
    FlagKey used = always;
    Spread layers;
};

struct Rotation {
    enum class Kind : std::uint8_t { rotary, learned, alibi, alibi_or_rotary };
    Kind kind = Kind::rotary;
    bool interleaved = false;
    Spellings share{"partial_rotary_factor", "rope_parameters.partial_rotary_factor"};
    double otherwise = 1.0;        ///< the share of a head where no key says it
    Spellings size;                ///< of the rotated part in elements, GPT-J's way
    bool only_in_windows = false;  ///< Command R7B: layers that see everything do not rotate
    Spread layers;                 ///< those that rotate, unless `list` has 0 or 1 a layer
    Spellings list;
    double base = 10'000;  ///< of frequencies, where no key says it
    /// Layers with a window turn otherwise: without a scaling, and by a base of their own where there is one.
    bool apart_in_windows = false;
    NumberKey window_base = {};
};

struct Attention {
    FlagKey qkv_bias = never;
    FlagKey output_bias = never;
    FlagKey qk_norm = never;
    HeadNorm head_norm = HeadNorm::shared;
    bool qk_norm_with_rotation = false;  ///< layers without rotation have no norm of queries and keys
    Window window;
    SizeKey chunk{{}, Otherwise::none};  ///< in all layers that rotate
    NumberKey softcap = {};
    NumberKey query_scalar = {};  ///< scores are multiplied by its root's inverse, not that of a head's size
    bool sinks = false;
    bool latent = false;
    Spellings clip;                  ///< null: none
    FlagKey scaled_queries = never;  ///< in layers without rotation
};

struct FeedForward {
    Spellings activation{"hidden_act"};
    std::string_view otherwise = "silu";
    bool gated = true;
    FlagKey bias = never;
};

/// How a token's experts and their weights follow from the router's logits.
enum class Routing : std::uint8_t {
    other,             ///< as no kernel of Hone does it: sigmoids, groups
    softmax,           ///< the largest of a softmax over all experts
    softmax_of_chosen  ///< the same, divided by their sum: a softmax over the chosen ones
};

/// Without `number` there are none.
struct Experts {
    /// Activation::swiglu_oai's.
    static constexpr double known_limit = 7;

    SizeKey number{{}, Otherwise::none};
    SizeKey per_token{{"num_experts_per_tok"}, Otherwise::none};
    Spellings width;                ///< of one; none: intermediate_size
    Spellings dense_width;          ///< of layers without experts; none: intermediate_size
    Spellings shared_number;        ///< each as wide as one of the others
    Spellings shared_width;         ///< of all shared ones
    bool shared_as_others = false;  ///< one, always
    bool shared_gate = false;
    bool router_bias = false;
    Routing routing = Routing::other;
    FlagKey renormalize = never;  ///< with Routing::softmax: weights are divided by their sum
    std::string_view activation;  ///< of experts alone; none: the model's
    NumberKey limit;              ///< at which that activation cuts its gate; it is `known_limit`
    bool bias = false;            ///< gate, up and down have one
    bool own_network = false;  ///< an expert computes something else than a gated feed-forward network does
    Spread layers;
    Spellings dense_first;  ///< so many layers without experts come first
    Spellings dense_list;   ///< numbers of layers without experts
    Spellings expert_list;  ///< numbers of layers with experts, in place of `layers`
};

struct Head {
    enum class Kind : std::uint8_t { language, masked };
    Kind kind = Kind::language;
    FlagKey tied = {{"tie_word_embeddings"}, true};
    FlagKey bias = never;
    NumberKey cap = {};
    FlagKey transform_bias = never;  ///< masked: of the dense layer before the head
};

/// A value that has to be so: others build a model that the entry does not describe.
struct OnlyValue {
    std::string_view key;
    std::variant<bool, std::int64_t, std::string_view> value;
};

/// Numbers that what a layer computes is multiplied by, or divided by; no operator's shape depends on them.
struct Factors {
    NumberKey embedding = {};  ///< of tokens' rows, with embedding_scale
    NumberKey scores = {};    ///< of attention's scores, in place of the inverse of the root of a head's size
    NumberKey residual = {};  ///< of what attention and the network add to the residual stream
    NumberKey logit_divisor = {};
};

inline const Factors granite_factors{.embedding = {{"embedding_multiplier"}, 1},
                                     .scores = {{"attention_multiplier"}, 1},
                                     .residual = {{"residual_multiplier"}, 1},
                                     .logit_divisor = {{"logits_scaling"}, 1}};

struct Architecture {
    std::string_view model_type;
    std::string_view says;                 ///< for people: "Gemma 2"
    std::string_view language_model = {};  ///< a multimodal model's: the entry that reads its text_config
    Sizes sizes = {};
    Norms norms = {};
    FlagKey parallel = never;
    bool two_norms = false;  ///< of a parallel block
    bool encoder = false;
    bool embedding_scale = false;
    Factors factors = {};
    bool token_types = false;
    Rotation rotation = {};
    Attention attention = {};
    FeedForward feed_forward = {};
    Experts experts = {};
    Head head = {};
    std::vector<OnlyValue> only = {};
    Spellings numbers = {};  ///< keys of what changes no operator: factors, how experts are chosen
    /// What no rule above can say; runs last.
    void (*more)(const Keys& keys, Model& model) = nullptr;
};

/// All entries, those of architectures/*.cpp one after the other.
[[nodiscard]] const std::vector<Architecture>& architectures();
/// nullptr: no entry has this model_type.
[[nodiscard]] const Architecture* find_architecture(std::string_view model_type);

// The table in parts; one file each in architectures/.
[[nodiscard]] std::span<const Architecture> llama_architectures();  ///< RMSNorm in front, dense
[[nodiscard]] std::span<const Architecture> norm_architectures();   ///< norms elsewhere: Gemma, OLMo 2, GLM-4
[[nodiscard]] std::span<const Architecture> layer_norm_architectures();  ///< GPT-2 and what followed it
[[nodiscard]] std::span<const Architecture> expert_architectures();      ///< mixtures of experts
[[nodiscard]] std::span<const Architecture> encoder_architectures();
[[nodiscard]] std::span<const Architecture> multimodal_architectures();  ///< what has text_config

/// Throws ModelError for a model_type that has no entry, naming it, the nearest names and what to do.
[[nodiscard]] const Architecture& architecture_of(const Keys& keys);

[[nodiscard]] bool holds(const FlagKey& flag, const Keys& keys);
/// What the file or the entry gives as a number, null being 0; nothing where the entry has a rule instead.
[[nodiscard]] std::optional<std::int64_t> number_of(const SizeKey& size, const Keys& keys);

/// A model as `architecture` reads it, without dtype and weights.
[[nodiscard]] Model read_architecture(const Architecture& architecture, const Keys& keys);

}  // namespace hone::models
