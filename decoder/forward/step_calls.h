// What a step computes: calls of a model's operators, part by part, each from one place of its memory to
// another. Puts them into the GPU's stream, where they are computed or captured. Knows neither which step
// comes next nor that there are graphs: these are Forward's and StepGraphs' matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "decoder/forward/operators.h"
#include "decoder/forward/part.h"
#include "decoder/forward/step.h"
#include "decoder/gpu/gpu.h"

namespace hone::decoder {

struct ForwardMemory;

class StepCalls {
  public:
    /// All of these have to live as long; what operators and memory hold may change between two steps.
    StepCalls(const Gpu& gpu, Runtime& runtime, const Description& model, const ModelWeights& weights,
              const Capacity& capacity, const Operators& operators, const ForwardMemory& memory)
        : gpu_(gpu),
          runtime_(runtime),
          model_(model),
          weights_(weights),
          capacity_(capacity),
          operators_(operators),
          memory_(memory) {}

    // All that enqueue throw DecoderError where an operator refuses a call, and Error with the driver's words
    // where that does.

    /// From ids to the last norm, of all rows.
    void enqueue_layers(const ForwardStep& step) const;
    /// As enqueue_layers(), but that behind the last layer's keys and values only rows count that tokens are
    /// drawn from: what else this layer makes is for nobody, unless the step is scored. `rows` of them; 0:
    /// none.
    void enqueue_prompts(const ForwardStep& step, std::int64_t rows) const;
    /// In front of a step that does not embed in place: ids of its sequences of one token, from where the
    /// step before draws them.
    void enqueue_awaited(const ForwardStep& step) const;
    /// Logits of each sequence, and their tokens.
    void enqueue_draws(const ForwardStep& step) const;
    /// A step of one token each as a whole.
    void enqueue_whole(const ForwardStep& step) const;
    /// Logits of these rows of the step that was computed last, behind its last norm: `last_rows` of `in`.
    void enqueue_logits(const StepInputs::Arrays& in, std::int64_t rows) const;
    /// The rotation of queries and keys, and the append of keys and values, as a launch of its own.
    void enqueue_append(std::int64_t layer, const ForwardStep& step) const;

    /// Whether a step has a launch for it.
    [[nodiscard]] bool has(Part part, const ForwardStep& step) const;
    /// Where on the GPU a layer's scales of keys and of values stand; of a cache of codes.
    [[nodiscard]] std::pair<const float*, const float*> kv_scales_at(std::int64_t layer) const;

  private:
    void require(Status status, const char* what) const;
    void enqueue_first_layers(const ForwardStep& step, std::int64_t layers) const;
    void enqueue_keys(std::int64_t layer, const ForwardStep& step) const;
    void enqueue_behind_attention(std::int64_t layer, const ForwardStep& step) const;
    void enqueue(Part part, std::int64_t layer, const ForwardStep& step) const;
    void enqueue_part(Part part, std::int64_t layer, const ForwardStep& step) const;
    void enqueue_drawn_rows(const ForwardStep& step) const;
    void enqueue_rows(const EmbeddingKernel& kernel, const StepInputs::Arrays& in, const Bytes& from,
                      const Bytes& to, std::int64_t rows) const;

    // The model's two ends, and norms.
    void enqueue_embedding(const ForwardStep& step) const;
    void enqueue_norm(const NormWeight& weight, bool of_sum, const ForwardStep& step) const;
    void enqueue_norm_in_front(const NormWeight& weight, bool of_sum, const ForwardStep& step) const;
    void enqueue_norm_behind(const NormWeight& weight, const ForwardStep& step) const;
    void enqueue_last_norm(const ForwardStep& step) const;
    void enqueue_head_norms(const LayerWeights& layer, const ForwardStep& step) const;
    void enqueue_head(const void* x, std::int64_t rows) const;
    void enqueue_sample(const ForwardStep& step) const;
    [[nodiscard]] NormArgs norm_args(const NormWeight& weight, bool of_sum, const ForwardStep& step) const;

    // Products, by themselves, with norms and sums in them, or sharing norms.
    [[nodiscard]] bool is_whole(const ForwardStep& step) const;
    [[nodiscard]] bool shares_norms(const ForwardStep& step) const;
    [[nodiscard]] const LayerProducts& products_of(const ForwardStep& step) const;
    [[nodiscard]] const void* product_input(const ForwardStep& step) const;
    [[nodiscard]] std::byte* stream_of(const ForwardStep& step) const;
    [[nodiscard]] SharedNormArgs sharing_args(const ForwardStep& step) const;
    void enqueue_qkv(const LayerWeights& layer, const ForwardStep& step) const;
    void enqueue_output(const LayerWeights& layer, const ForwardStep& step) const;
    void enqueue_network(const LayerWeights& layer, const ForwardStep& step) const;
    void enqueue_sharing_qkv(const LayerWeights& layer, const ForwardStep& step) const;
    void enqueue_sharing_output(const LayerWeights& layer, const ForwardStep& step) const;
    void enqueue_sharing_network(std::int64_t layer, const ForwardStep& step) const;

    // experts.cpp and attention.cpp.
    void enqueue_routing(const LayerWeights& layer, const ForwardStep& step) const;
    void enqueue_experts(const LayerWeights& layer, const ForwardStep& step) const;
    void enqueue_attention(std::int64_t layer, const ForwardStep& step) const;
    void enqueue_appending(std::int64_t layer, const ForwardStep& step) const;

    const Gpu& gpu_;
    Runtime& runtime_;
    const Description& model_;
    const ModelWeights& weights_;
    const Capacity& capacity_;
    const Operators& operators_;
    const ForwardMemory& memory_;
};

}  // namespace hone::decoder
