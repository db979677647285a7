// A model on a GPU, ready to compute: its operators, the memory between them, and the KV cache. Knows tokens
// of sequences and pages, not whose they are. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decoder/forward/graph_race.h"
#include "decoder/forward/operators.h"
#include "decoder/forward/part.h"
#include "decoder/forward/step.h"
#include "decoder/forward/step_calls.h"
#include "decoder/forward/step_graphs.h"
#include "decoder/forward/step_inputs.h"
#include "decoder/forward/stream_timer.h"
#include "decoder/scheduling/scheduler.h"
#include "decoder/scheduling/step_cost.h"
#include "kernel_templates/family.h"

namespace hone::decoder {

/// Of a step of one token a sequence.
struct StepSizes {
    std::int64_t sequences = 1;
    std::int64_t kv_len = 1024;  ///< keys of each sequence
};

/// Keys of a sequence in a round of a race of kernels: all of them, half, and a quarter in turn, from
/// sequence to sequence and from round to round. A graph serves such lengths, and a server's sequences
/// differ.
[[nodiscard]] std::int64_t raced_length(std::int64_t kv_len, std::int64_t sequence, std::int64_t round);

/// A kernel that a step calls, in all layers alike.
struct StepKernel {
    Part part;
    Problem problem;  ///< the largest that the kernel serves, as tuners name it
    Problem at_edge;  ///< the same with room for what was prepared, as dispatch knows it
    Candidate candidate;
    Origin origin = Origin::fallback;  ///< where the knowledge of it comes from
};

/// Keys of the sequences of steps that are compared: all as many as their sizes say, or raced_length()'s.
enum class Lengths : std::uint8_t { equal, mixed };

/// A step's graph, and where its time goes. Microseconds, medians over replays that take turns.
struct ChainTimes {
    struct OfPart {
        Part part;
        double us = 0;  ///< that the graph takes longer than without this part, in all layers together
        std::int64_t bytes = 0;  ///< of weights, and of keys and values, that it has to read
    };
    double step_us = 0;
    std::int64_t launches = 0;
    double idle_us = 0;  ///< of a graph of as many launches that find nothing to do
    std::vector<OfPart> parts;
};

class Forward {
  public:
    /// Throws DecoderError, Error and CudaError. Everything that steps need is there afterwards: no step
    /// allocates, compiles or reads a file.
    Forward(const Gpu& gpu, Runtime& runtime, const Description& model, const ModelWeights& weights,
            const Capacity& capacity);
    ~Forward();

    /// Writes down a step of these parts, which draws a token for each that samples, as `draws` has them one
    /// by one. Also while the step before is computed, whose tokens parts may wait for.
    void prepare(std::span<const StepPart> parts, std::span<const Draw> draws);
    /// Begins to compute what was prepared last, behind the step whose tokens finish() has given, `drawn`:
    /// the GPU is at work when it returns. Throws CudaError or Error.
    void launch(std::span<const int> drawn);
    /// Begins the same while the step before is computed, whose tokens it reads on the GPU: where those are
    /// all that it waits for, and up to most_in_place sequences, where each text has the place that it has
    /// there. Returns whether that is so; else launch() has to follow finish(). Throws as launch().
    [[nodiscard]] bool launch_ahead();
    /// prepare() and launch(), where no part waits for a token.
    void start(std::span<const StepPart> parts, std::span<const Draw> draws) { start(parts, draws, {}); }
    /// Waits until then for the step that finish() is to end. Returns whether that has nothing left to wait
    /// for.
    [[nodiscard]] bool wait_until(std::chrono::steady_clock::time_point end);
    /// The same without waiting.
    [[nodiscard]] bool has_ended() const { return has_tokens() || gpu_.done(); }
    /// Waits for the step under way, the older one of two. Returns the tokens, as many as draws. Throws
    /// CudaError, and DecoderError where the GPU left no token of the vocabulary.
    [[nodiscard]] std::vector<int> finish();

    /// Logits on the host, [vocabulary] of the model's dtype each. Valid until the next that are read.
    using HostRows = std::vector<std::span<const std::byte>>;
    /// As many rows as are read at a time, at most.
    [[nodiscard]] std::int64_t logit_rows() const;
    // Both are for the step whose tokens finish() has given, until another one is launched. Throw as start().
    /// Of these of the rows that its tokens were drawn from.
    [[nodiscard]] HostRows read_logits(std::span<const std::int64_t> rows);
    /// Of rows of its part with this number among those that are scored, the first of which is `begin`.
    /// Before another step is prepared.
    [[nodiscard]] HostRows score_logits(std::size_t part, std::int64_t begin, std::int64_t rows);

    /// Natural logarithms of what the model gives each token but the first, as a text from its beginning: 2
    /// tokens to a context of them. Overwrites the first pages of the cache. Throws as start().
    [[nodiscard]] std::vector<double> log_probabilities(std::span<const int> text);

    /// Microseconds that a replay of the graph of a step of so many sequences takes, without the host; the
    /// median of `repetitions`. For benchmarks: the cache's content does not matter.
    [[nodiscard]] double graph_us(std::int64_t sequences, std::int64_t kv_len, int repetitions);
    /// Microseconds that a step of this load takes on the GPU, the copy of its inputs included, and its
    /// launches where they do not keep ahead; the median of `repetitions`. As graph_us(), for steps with a
    /// prompt, too, which then comes to its end. Overwrites pages of the cache.
    [[nodiscard]] double step_us(const StepLoad& load, int repetitions);
    /// Where that goes in a step with a prompt: each part is what the step is shorter without it.
    [[nodiscard]] std::vector<std::pair<Part, double>> step_parts_us(const StepLoad& load, int repetitions);
    /// Of the same graph, beside others that lack one of its parts each. Captures them.
    [[nodiscard]] ChainTimes chain_times(std::int64_t sequences, std::int64_t kv_len, int repetitions);

    /// The kernels that a step of so many sequences calls and that a tuner may choose.
    [[nodiscard]] std::vector<StepKernel> step_kernels(const StepSizes& sizes) const;
    /// Replays the step's graph as it is, and beside it one graph for each of these, which takes the place of
    /// `kernel`: in turns, so that all see the same clocks. Microseconds of each replay, first of the step as
    /// it is; none of a candidate that cannot be prepared. Keys are raced_length()'s.
    [[nodiscard]] std::vector<std::vector<double>> times_with(const StepKernel& kernel,
                                                              std::span<const Candidate> candidates,
                                                              const StepSizes& sizes, int rounds,
                                                              const FaultSink& on_fault);
    /// The step as it is, and beside it the one that it was when mark() was called, as times_with().
    void mark(const StepSizes& sizes);
    [[nodiscard]] std::vector<std::vector<double>> times_since_mark(const StepSizes& sizes, Lengths lengths,
                                                                    int rounds, const FaultSink& on_fault);
    /// From now on graphs that are captured have this candidate in the kernel's place.
    void take(const StepKernel& kernel, const Candidate& candidate);
    /// Whether steps of so many sequences can be told to share norms: of models that can, up to
    /// Capacity::told_sequences.
    [[nodiscard]] bool can_share_norms(std::int64_t sequences) const;
    /// From now on the step that so many sequences take, and the graphs that are captured of it, share norms
    /// or have launches for them, whatever was chosen.
    void share_norms(std::int64_t sequences, bool shares);

    [[nodiscard]] const Capacity& capacity() const { return capacity_; }
    /// Where on the GPU a layer's scales of keys and of values stand; of a cache of codes.
    [[nodiscard]] std::pair<const float*, const float*> kv_scales_at(std::int64_t layer) const {
        return calls_.kv_scales_at(layer);
    }

  private:
    struct Prepared {
        ForwardStep step;
        std::int64_t rows = 0;  ///< that tokens are drawn from
        /// The GPU knows where the step before draws what it waits for.
        bool is_known_ahead = false;
        bool is_sent = false;  ///< its inputs are on their way beside the step before
    };
    struct UnderWay {
        std::size_t turn = 0;
        std::int64_t rows = 0;     ///< that tokens are drawn from
        std::int64_t sampled = 0;  ///< these, and those of nobody that fill a graph up
    };
    /// A step with another kernel in it. Its graph needs the operators and the workspace as long as it lives.
    struct Variation {
        Operators operators;
        Bytes workspace;  ///< where that of all steps is too small
        runtime::GraphExec graph;
    };

    /// Without this part, for benchmarks: of steps with prompts alone.
    void start(std::span<const StepPart> parts, std::span<const Draw> draws, std::optional<Part> without);
    /// Both write the inputs of a step of these parts.
    [[nodiscard]] ForwardStep step_of_singles(std::span<const StepPart> parts);
    [[nodiscard]] ForwardStep step_of_any(std::span<const StepPart> parts);
    [[nodiscard]] bool is_known_ahead(std::span<const StepPart> parts) const;
    void begin_prepared();
    [[nodiscard]] bool has_tokens() const;
    [[nodiscard]] HostRows compute_logits(std::int64_t first, std::int64_t rows);
    [[nodiscard]] HostRows host_rows(std::int64_t rows) const;

    void fill_for_timing(std::int64_t sequences, std::int64_t kv_len);
    /// With so many keys of each row.
    void fill_for_timing(std::int64_t sequences, const std::function<std::int64_t(std::int64_t row)>& kv_len);
    void fill_for_race(const StepSizes& sizes, Lengths lengths, int round);
    [[nodiscard]] double start_us(std::span<const StepPart> parts, std::span<const Draw> draws,
                                  std::optional<Part> without);
    [[nodiscard]] double idle_us(std::int64_t launches, std::int64_t sequences, int repetitions);
    [[nodiscard]] std::optional<Operators> with_other(const StepKernel& kernel, const Candidate& candidate);
    [[nodiscard]] Variation variation(Operators operators, const StepSizes& sizes);
    /// As race(); null: a step that is not there.
    [[nodiscard]] std::vector<std::vector<double>> times_of(std::span<const Variation* const> steps,
                                                            const StepSizes& sizes, Lengths lengths,
                                                            int rounds, const FaultSink& on_fault);

    const Gpu& gpu_;
    Runtime& runtime_;
    const Description& model_;
    const ModelWeights& weights_;
    Capacity capacity_;
    Operators operators_;
    StepInputs small_;  ///< of steps with one token of each sequence
    StepInputs large_;
    std::unique_ptr<ForwardMemory> memory_;
    StepCalls calls_;
    StepGraphs graphs_;
    StreamTimer timer_;
    std::unique_ptr<Variation> mark_;
    std::optional<Prepared> prepared_;
    std::size_t turn_ = 0;             ///< of the step that was launched last
    std::vector<UnderWay> under_way_;  ///< the older one first, of two
};

}  // namespace hone::decoder
