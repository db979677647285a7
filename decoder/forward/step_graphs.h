// Graphs of steps of one token a sequence: one for each of few sizes and lengths, which a step takes the next
// one of that has room. Knows no operators: StepCalls enqueues what is captured.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>

#include "decoder/forward/step.h"
#include "decoder/forward/step_calls.h"
#include "decoder/gpu/gpu.h"

namespace hone::decoder {

/// Keys a sequence that the graph's attention is chosen for, which has room for so many: one of few lengths,
/// however long contexts are.
[[nodiscard]] std::int64_t graph_length(std::int64_t kv_len);

class StepGraphs {
  public:
    /// `inputs`: of these steps, a block for each turn. All of these have to live as long.
    StepGraphs(const Gpu& gpu, Runtime& runtime, const Capacity& capacity, const StepCalls& calls,
               const StepInputs& inputs)
        : gpu_(gpu), runtime_(runtime), capacity_(capacity), calls_(calls), inputs_(inputs) {}

    /// Sequences that the graph of a step of so many has.
    [[nodiscard]] std::int64_t padded(std::int64_t sequences) const;
    /// Keys a sequence that its attention is chosen for.
    [[nodiscard]] std::int64_t length_bucket(std::int64_t kv_len) const;
    /// A step of so many sequences and keys as its graph has it, in the first turn.
    [[nodiscard]] ForwardStep step_of(std::int64_t sequences, std::int64_t kv_len) const;

    /// Captures all that steps can take. Throws as StepCalls, and CudaError, as all of it.
    void capture_all();
    /// Launches the step's, which is captured if it is not there: all are from capture_all() to clear().
    void launch(const ForwardStep& step);
    /// That of a step that filters nothing, in the first turn. Valid until clear().
    [[nodiscard]] CUgraphExec of(std::int64_t sequences, std::int64_t kv_len);
    /// Forgets them, and what they were captured of.
    void clear() { graphs_.clear(); }

    /// A graph of this step as it is, whoever's it becomes.
    [[nodiscard]] runtime::Graph capture(const ForwardStep& step) const;

  private:
    struct Kind {
        std::int64_t sequences = 0;
        std::int64_t kv_len = 0;
        bool filters = false;
        std::size_t turn = 0;
        auto operator<=>(const Kind&) const = default;
    };
    struct StepGraph {
        runtime::GraphExec graph;
        GraphCalls calls;
    };
    [[nodiscard]] const StepGraph& graph_of(std::int64_t sequences, std::int64_t kv_len, bool filters,
                                            std::size_t turn);

    const Gpu& gpu_;
    Runtime& runtime_;
    const Capacity& capacity_;
    const StepCalls& calls_;
    const StepInputs& inputs_;
    std::map<Kind, StepGraph> graphs_;
};

}  // namespace hone::decoder
