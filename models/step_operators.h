// The operators of a step over a cache in pages, as the decoder runs it, described as the runtime takes them:
// the decoder prepares these, and the tuner makes problems of the same, so that what is tuned and compiled
// for a model is what its steps ask for. Pure functions of a model that lacks nothing (lacking_in_steps()).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "checkpoints/pack/weight_format.h"
#include "hone/hone.h"
#include "models/model.h"

namespace hone::models {

/// What a step has room for.
struct StepRoom {
    std::int64_t tokens = 0;     ///< of all its sequences
    std::int64_t sequences = 0;  ///< of one token each, and rows that tokens are drawn from
    std::int64_t context = 0;    ///< tokens of a sequence
    std::int64_t page_size = 16;
    KvDtype kv_dtype = KvDtype::same;
};

/// What of a model steps have no operators for, in words, but for its experts.
[[nodiscard]] std::vector<std::string> lacking_in_steps(const Model& model);
/// The same of a model's experts.
[[nodiscard]] std::vector<std::string> lacking_of_experts(const Model& model);

/// Elements of a token's queries, of its keys or values, and of all three.
[[nodiscard]] std::int64_t q_width(const Model& model);
[[nodiscard]] std::int64_t kv_width(const Model& model);
[[nodiscard]] std::int64_t qkv_width(const Model& model);
/// Elements between the halves of an expert.
[[nodiscard]] std::int64_t expert_width(const Model& model);
/// nullopt: no operator knows it.
[[nodiscard]] std::optional<Activation> activation_of(const Model& model);
/// Of experts, which may have one of their own. Throws as the operators below where nothing knows the
/// model's.
[[nodiscard]] Activation activation_of_experts(const Model& model);
/// In front of attention and network; else these take the residual stream as it is.
[[nodiscard]] bool has_norms_in_front(const Model& model);
/// Queries, and keys, of all heads are normalized together, ahead of the rotation.
[[nodiscard]] bool has_wide_head_norms(const Model& model);
/// Keys that a query sees, each number once; 0: all.
[[nodiscard]] std::vector<std::int64_t> windows_of(const Model& model);

[[nodiscard]] Embedding token_look_up(const Model& model, std::int64_t tokens);
/// A look-up in what has been computed, rows of `width` elements.
[[nodiscard]] Embedding row_look_up(const Model& model, std::int64_t width, std::int64_t rows);
/// The same in tokens that have been drawn: a row is a token, whose bits are copied.
[[nodiscard]] Embedding drawn_look_up(std::int64_t rows);
/// A norm of the residual stream, or of a sum with it.
[[nodiscard]] std::variant<RmsNorm, LayerNorm> stream_norm(const Model& model, std::int64_t rows,
                                                           bool residual,
                                                           NormOutput output = NormOutput::same);
/// A norm of the queries, or the keys, of all heads of a token as one row.
[[nodiscard]] RmsNorm wide_head_norm(const Model& model, std::int64_t width, std::int64_t rows);
/// What norms in front of products write where all of these have weights of this format: codes with a scale a
/// row, where they multiply such.
[[nodiscard]] NormOutput norm_output(const Model& model, const checkpoints::WeightFormat& format);

/// Rotation of queries and keys, and what is new to the cache: at the ends of sequences, or by slots.
[[nodiscard]] RopeKvAppend cache_append(const Model& model, const StepRoom& room, std::int64_t tokens,
                                        bool slots);
/// Attention of one query a sequence.
[[nodiscard]] hone::Attention single_attention(const Model& model, const StepRoom& room, std::int64_t window);
/// Attention of any numbers of queries, those of one sequence after the other.
[[nodiscard]] hone::Attention packed_attention(const Model& model, const StepRoom& room, std::int64_t window);
/// Attention of one query a sequence that rotates and appends, too; nothing where that takes two launches:
/// for caches of codes and norms of all heads together.
[[nodiscard]] std::optional<AttentionAppend> appending_attention(const Model& model, const StepRoom& room,
                                                                 std::int64_t window);

/// Where the norm in front of products and the sum behind them are computed.
enum class NormsAndSums : std::uint8_t { apart, within };

/// Of queries, keys and values; with the norm in front of it, or without.
[[nodiscard]] Linear qkv_projection(const Model& model, std::int64_t tokens,
                                    NormsAndSums norm = NormsAndSums::apart);
/// Behind attention; with the sum behind it, or without.
[[nodiscard]] Linear attention_output(const Model& model, std::int64_t tokens,
                                      NormsAndSums sum = NormsAndSums::apart);
/// With both, or without. Throws std::invalid_argument for an activation that no operator knows.
[[nodiscard]] FusedFfn feed_forward(const Model& model, std::int64_t tokens,
                                    NormsAndSums both = NormsAndSums::apart);
[[nodiscard]] Linear language_head(const Model& model, std::int64_t rows);
/// Sequences, at most, whose steps of one token each may have norms and sums within products of weights of
/// this format; 0: none. More gained nothing.
[[nodiscard]] std::int64_t most_whole_sequences(const Model& model, const checkpoints::WeightFormat& format);

[[nodiscard]] Linear router(const Model& model, std::int64_t tokens);
[[nodiscard]] ExpertRouting expert_routing(const Model& model, std::int64_t tokens);
/// Gate and up of a token's experts, whose rows are gathered; down, whose rows are added up. As
/// feed_forward().
[[nodiscard]] ExpertLinear experts_up(const Model& model, std::int64_t tokens);
[[nodiscard]] ExpertLinear experts_down(const Model& model, std::int64_t tokens);

/// The same with weights of codes; `quantized_x`: x comes as codes with a scale a row.
[[nodiscard]] QuantizedLinear with_codes(const Linear& linear, const checkpoints::WeightFormat& format,
                                         bool quantized_x = false);
[[nodiscard]] QuantizedFfn with_codes(const FusedFfn& network, const checkpoints::WeightFormat& format,
                                      bool quantized_x = false);
[[nodiscard]] QuantizedExpertLinear with_codes(const ExpertLinear& linear,
                                               const checkpoints::WeightFormat& format);

[[nodiscard]] Sample drawing(const Model& model, std::int64_t rows, bool filters);

}  // namespace hone::models
