// The operators of a model, prepared: one of each kind, and attention for each window, since layers are alike
// otherwise.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "decoder/forward/part.h"
#include "decoder/forward/products.h"
#include "decoder/forward/shared_norms.h"
#include "decoder/model/description.h"
#include "decoder/weights/model_weights.h"
#include "hone/hone.h"

namespace hone::decoder {

/// What people call the kinds of a cache of keys and values, by KvDtype.
inline constexpr std::array<std::string_view, 2> kv_cache_names{"same", "fp8"};

/// What a forward pass has room for.
struct Capacity {
    std::int64_t step_tokens = 2048;   ///< tokens of a step, of all its sequences
    std::int64_t sequences = 16;       ///< that take part in a step
    std::int64_t context = 4096;       ///< tokens of a sequence
    std::int64_t pages = 0;            ///< of the cache
    std::int64_t page_size = 16;       ///< tokens of a page
    KvDtype kv_dtype = KvDtype::same;  ///< of keys and values
    /// Sequences, at most, whose steps may be told to share norms or not (Forward::share_norms()), whatever
    /// is chosen.
    std::int64_t told_sequences = 0;

    [[nodiscard]] std::int64_t pages_a_sequence() const { return (context + page_size - 1) / page_size; }
    [[nodiscard]] models::StepRoom room() const {
        return {.tokens = step_tokens,
                .sequences = sequences,
                .context = context,
                .page_size = page_size,
                .kv_dtype = kv_dtype};
    }
};

/// Layers of experts: which a token goes to, and both halves of their networks.
struct ExpertOperators {
    Product router;
    ExpertRoutingKernel routing;
    ExpertProduct up;    ///< gated; gathers rows of tokens
    ExpertProduct down;  ///< adds up a token's experts

    [[nodiscard]] std::int64_t workspace_bytes(std::int64_t tokens) const;
};

/// A layer's products but for those of experts.
struct LayerProducts {
    Product qkv;
    Product output;
    Network network;

    [[nodiscard]] std::int64_t workspace_bytes(std::int64_t tokens) const;
};

struct Operators {
    /// Prepares them all: loads, or compiles, what calls up to `capacity` can reach. Throws Error.
    Operators(Runtime& runtime, const Description& model, const ModelWeights& weights,
              const Capacity& capacity);

    /// Prepares again, with what the runtime holds by now, those that steps of one token a sequence take for
    /// this part. Throws Error.
    void prepare_again(Part part, Runtime& runtime, const Description& model, const ModelWeights& weights,
                       const Capacity& capacity);
    /// Bytes that the workspace of steps up to `capacity` has: whichever operator needs most.
    [[nodiscard]] std::int64_t workspace_bytes(const Description& model, const Capacity& capacity) const;
    /// What was chosen for them, for steps of one token a sequence and so many tokens.
    [[nodiscard]] std::vector<PrepareReport> reports(Part part, std::int64_t tokens) const;
    /// Whether such a step's products have norms and sums in them.
    [[nodiscard]] bool are_whole(std::int64_t tokens) const {
        return std::ranges::find(whole_steps, tokens) != whole_steps.end() && !share_norms(tokens);
    }

    /// Whether such a step's products share its norms.
    [[nodiscard]] bool share_norms(std::int64_t tokens) const {
        return std::ranges::find(sharing_steps, tokens) != sharing_steps.end();
    }

    /// Whether attention of steps of one token a sequence is the append, too.
    [[nodiscard]] bool appends_in_attention() const {
        return std::ranges::all_of(appending, [](const AttentionAppendKernel& kernel) { return !!kernel; });
    }

    EmbeddingKernel embedding;
    EmbeddingKernel rows;           ///< of the residual stream: those that tokens are drawn from
    EmbeddingKernel attended_rows;  ///< of what attention leaves
    EmbeddingKernel drawn_tokens;   ///< of those of a step: the next one's
    NormKernel first_norm;
    NormKernel norm;  ///< of a sum
    /// Norms in front of products write the codes that these multiply: no launch in between makes them.
    bool norms_write_codes = false;
    NormKernel first_coded_norm;
    NormKernel coded_norm;
    LayerProducts plain;
    /// With the norms in front of them and the sums behind them, two launches fewer; empty where no step has
    /// such.
    LayerProducts whole;
    std::vector<std::int64_t> whole_steps;  ///< tokens of steps of one token a sequence that do, ascending
    /// Behind the first layer's first norm, which the embedding is in front of; empty where no step has such.
    SharedNormProducts sharing;
    std::int64_t most_sharing = 0;  ///< tokens of steps that they are prepared for
    /// As whole_steps, up to most_sharing; a step of both shares norms.
    std::vector<std::int64_t> sharing_steps;
    NormKernel query_norm;  ///< of all heads of a token together, as key_norm
    NormKernel key_norm;
    RopeKvAppendKernel append;         ///< one new token of each sequence
    RopeKvAppendKernel append_anyhow;  ///< any of them
    /// One for each of Description::windows().
    std::vector<AttentionKernel> one_query;  ///< of each sequence
    std::vector<AttentionKernel> any_queries;
    /// The same for one query of each sequence, with the append; empty where steps have a launch for that.
    std::vector<AttentionAppendKernel> appending;
    ExpertOperators experts;  ///< empty where no layer has them
    Product head;
    SampleKernel sample;
    SampleKernel filtered_sample;

  private:
    class Preparations;
};

}  // namespace hone::decoder
