// From an architecture's entry and a file's keys to a model.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "models/architecture.h"
#include "models/file_words.h"
#include "models/layer_kinds.h"

namespace hone::models {
namespace {

double number_at(const NumberKey& number, const Keys& keys) {
    if (number.keys.empty() || keys.is_null(number.keys)) return 0;
    return keys.positive(number.keys).value_or(number.otherwise);
}

class Reader {
  public:
    Reader(const Architecture& architecture, const Keys& keys) : entry_(architecture), keys_(keys) {}

    Model model() {
        model_.architecture = entry_.model_type;
        read_sizes();
        read_norms();
        read_factors();
        read_attention();
        read_rotation();
        read_feed_forward();
        read_experts();
        read_head();
        model_.layers = read_layer_groups(entry_, keys_, model_);
        check_values();
        if (entry_.more != nullptr) entry_.more(keys_, model_);
        return std::move(model_);
    }

  private:
    std::int64_t size(const SizeKey& size) const {
        if (const auto number = number_of(size, keys_)) return *number;
        switch (std::get<Otherwise>(size.otherwise)) {
            case Otherwise::heads: return model_.num_attention_heads;
            case Otherwise::head_share: return head_share();
            case Otherwise::four_widths: return 4 * model_.hidden_size;
            case Otherwise::none: return 0;
            case Otherwise::needed: break;
        }
        keys_.missing(size.keys);
    }

    /// Sizes that a layer cannot do without.
    std::int64_t present(const SizeKey& key) const {
        const std::int64_t value = size(key);
        if (value == 0) keys_.missing(key.keys);
        return value;
    }

    std::int64_t head_share() const {
        if (model_.hidden_size % model_.num_attention_heads == 0)
            return model_.hidden_size / model_.num_attention_heads;
        keys_.fail(entry_.sizes.heads.keys,
                   fmt::format("is {}, which does not divide hidden_size {} (and there is no head_dim)",
                               model_.num_attention_heads, model_.hidden_size));
    }

    void read_sizes() {
        const Sizes& sizes = entry_.sizes;
        model_.hidden_size = present(sizes.hidden);
        model_.num_hidden_layers = present(sizes.layers);
        check_layers(keys_, model_, sizes.layers.keys);
        model_.vocab_size = present(sizes.vocabulary);
        model_.num_attention_heads = present(sizes.heads);
        model_.num_key_value_heads = present(sizes.kv_heads);
        check_kv_heads(keys_, model_, sizes.kv_heads.keys);
        if (!entry_.attention.latent) model_.head_dim = present(sizes.head_dim);
        model_.intermediate_size = present(sizes.intermediate);
        model_.max_position_embeddings = size(sizes.positions);
    }

    void read_norms() {
        model_.norm = entry_.norms.family;
        model_.norm_epsilon = keys_.fraction(entry_.norms.epsilon).value_or(entry_.norms.otherwise);
        model_.norm_bias = holds(entry_.norms.bias, keys_);
        model_.norm_unit_offset = entry_.norms.unit_offset;
        model_.norms = entry_.norms.places;
        model_.embedding_norm = entry_.norms.of_embedding;
        model_.first_norm = entry_.norms.before_first_layer;
        model_.final_norm = entry_.norms.final_norm;
        model_.parallel = holds(entry_.parallel, keys_);
        model_.two_norms = model_.parallel && entry_.two_norms;
        model_.embedding_scale = entry_.embedding_scale;
        model_.token_types = entry_.token_types;
        model_.encoder = entry_.encoder;
    }

    void read_factors() {
        model_.embedding_factor = number_at(entry_.factors.embedding, keys_);
        model_.score_factor = number_at(entry_.factors.scores, keys_);
        model_.residual_factor = number_at(entry_.factors.residual, keys_);
        model_.logit_divisor = number_at(entry_.factors.logit_divisor, keys_);
    }

    void read_attention() {
        const Attention& attention = entry_.attention;
        model_.qkv_bias = holds(attention.qkv_bias, keys_);
        model_.output_bias = holds(attention.output_bias, keys_);
        model_.qk_norm = holds(attention.qk_norm, keys_);
        model_.head_norm = attention.head_norm;
        model_.qk_norm_with_rotation = attention.qk_norm_with_rotation;
        model_.softcap = number_at(attention.softcap, keys_);
        model_.query_scalar = number_at(attention.query_scalar, keys_);
        model_.sinks = attention.sinks;
        model_.clipped_qkv = !attention.clip.empty() && keys_.has(attention.clip);
        model_.scaled_queries = holds_or_number(attention.scaled_queries);
        if (attention.latent) read_latent();
    }

    /// Llama 4's files have 4 for true.
    bool holds_or_number(const FlagKey& flag) const {
        const Keys::Entry* found = flag.keys.empty() ? nullptr : keys_.find(flag.keys);
        const auto* number = found == nullptr ? nullptr : std::get_if<std::int64_t>(&found->value);
        return number != nullptr ? *number != 0 : holds(flag, keys_);
    }

    void read_latent() {
        LatentSizes latent;
        latent.q_rank = keys_.size({"q_lora_rank"}).value_or(0);
        latent.kv_rank = keys_.needed_size({"kv_lora_rank"});
        latent.nope_head_dim = keys_.needed_size({"qk_nope_head_dim"});
        latent.rope_head_dim = keys_.needed_size({"qk_rope_head_dim"});
        latent.v_head_dim = keys_.needed_size({"v_head_dim"});
        keys_.skip({"head_dim", "qk_head_dim"});
        model_.latent_attention = true;
        model_.latent = latent;
        model_.head_dim = latent.nope_head_dim + latent.rope_head_dim;
    }

    void read_rotation() {
        const Rotation& rotation = entry_.rotation;
        using Kind = Rotation::Kind;
        model_.learned_positions = rotation.kind == Kind::learned;
        model_.alibi = rotation.kind == Kind::alibi ||
                       (rotation.kind == Kind::alibi_or_rotary && keys_.flag({"alibi"}).value_or(false));
        model_.interleaved_rotary = rotation.interleaved;
        if (model_.learned_positions || model_.alibi) return;
        const std::int64_t whole = model_.latent ? model_.latent->rope_head_dim : model_.head_dim;
        const double pairs =
            keys_.fraction(rotation.share).value_or(rotation.otherwise) * static_cast<double>(whole) / 2;
        model_.rotary_dim = 2 * static_cast<std::int64_t>(pairs);
        if (rotation.size.empty()) return;
        model_.rotary_dim = keys_.size(rotation.size).value_or(whole);
        if (model_.rotary_dim > whole || model_.rotary_dim % 2 != 0) {
            keys_.fail(rotation.size, fmt::format("is {}, allowed are even numbers up to head_dim = {}",
                                                  model_.rotary_dim, whole));
        }
    }

    void read_feed_forward() {
        const FeedForward& network = entry_.feed_forward;
        model_.activation = network.activation.empty()
                                ? network.otherwise
                                : keys_.one_of(network.activation, activations, network.otherwise);
        model_.gated_ffn = network.gated;
        model_.ffn_bias = holds(network.bias, keys_);
    }

    void read_experts() {
        const Experts& experts = entry_.experts;
        model_.experts = experts.number.keys.empty() ? 0 : size(experts.number);
        if (model_.experts == 0) return;
        model_.experts_per_token = size(experts.per_token);
        if (model_.experts_per_token > model_.experts) {
            keys_.fail(experts.per_token.keys,
                       fmt::format("is {}, allowed is 1 to {}, as many as there are experts",
                                   model_.experts_per_token, model_.experts));
        }
        model_.router_bias = experts.router_bias;
        model_.softmax_routing = experts.routing != Routing::other;
        model_.renormalized_routing =
            experts.routing == Routing::softmax_of_chosen || holds(experts.renormalize, keys_);
        model_.expert_activation = experts.activation;
        model_.expert_bias = experts.bias;
        model_.own_expert_network =
            experts.own_network ||
            (!experts.limit.keys.empty() && number_at(experts.limit, keys_) != Experts::known_limit);
        model_.expert_width =
            experts.width.empty() ? model_.intermediate_size : keys_.needed_size(experts.width);
        if (!experts.dense_width.empty()) model_.intermediate_size = keys_.needed_size(experts.dense_width);
        model_.shared_width = shared_width(experts);
        model_.shared_gate = experts.shared_gate && model_.shared_width > 0;
    }

    std::int64_t shared_width(const Experts& experts) const {
        if (experts.shared_as_others) return model_.expert_width;
        if (!experts.shared_width.empty()) return keys_.needed_count(experts.shared_width);
        if (experts.shared_number.empty()) return 0;
        return keys_.needed_count(experts.shared_number) * model_.expert_width;
    }

    void read_head() {
        model_.tied_head = holds(entry_.head.tied, keys_);
        model_.head_bias = holds(entry_.head.bias, keys_);
        model_.logit_cap = number_at(entry_.head.cap, keys_);
        if (entry_.head.kind != Head::Kind::masked) return;
        model_.head_transform = model_.has_head = names_masked_model();
        model_.transform_bias = holds(entry_.head.transform_bias, keys_);
    }

    /// `architectures` says which head a checkpoint of an encoder has.
    bool names_masked_model() const {
        const ModelDocument::List* names = keys_.list({"architectures"});
        return names != nullptr && std::ranges::any_of(*names, [](const ModelDocument::Scalar& item) {
                   const auto* name = std::get_if<std::string>(&item);
                   return name != nullptr && name->ends_with("ForMaskedLM");
               });
    }

    void check_values() const {
        for (const OnlyValue& only : entry_.only) {
            const Keys::Entry* found = keys_.find({only.key});
            if (found != nullptr && !equals(found->value, only.value))
                keys_.fail_at(*found,
                              fmt::format("has to be {} for model_type {}: Hone does not know the layers "
                                          "that another value makes",
                                          words_of(only), entry_.model_type));
        }
    }

    static bool equals(const ModelDocument::Value& value, const decltype(OnlyValue::value)& wanted) {
        return std::visit(
            [&]<class Wanted>(const Wanted& one) {
                using Kept =
                    std::conditional_t<std::is_same_v<Wanted, std::string_view>, std::string, Wanted>;
                const auto* given = std::get_if<Kept>(&value);
                return given != nullptr && *given == one;
            },
            wanted);
    }

    static std::string words_of(const OnlyValue& only) {
        return std::visit([](const auto& one) { return fmt::format("{}", one); }, only.value);
    }

    const Architecture& entry_;
    const Keys& keys_;
    Model model_;
};

}  // namespace

bool holds(const FlagKey& flag, const Keys& keys) {
    return flag.keys.empty() ? flag.otherwise : keys.flag(flag.keys).value_or(flag.otherwise);
}

std::optional<std::int64_t> number_of(const SizeKey& size, const Keys& keys) {
    if (const auto value = size.keys.empty() ? std::nullopt : keys.size(size.keys)) return value;
    const auto* number = std::get_if<std::int64_t>(&size.otherwise);
    if (number == nullptr) return std::nullopt;
    return !size.keys.empty() && keys.is_null(size.keys) ? 0 : *number;
}

Model read_architecture(const Architecture& architecture, const Keys& keys) {
    keys.skip(architecture.numbers);
    return Reader(architecture, keys).model();
}

}  // namespace hone::models
