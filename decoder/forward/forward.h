// A model on a GPU, ready to compute: its operators, the memory between them, and the KV cache. Knows tokens
// of sequences and pages, not whose they are. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "decoder/forward/operators.h"
#include "decoder/forward/step_inputs.h"
#include "decoder/scheduling/scheduler.h"

namespace hone::decoder {

/// A row that a token is drawn from.
struct Draw {
    Wishes wishes;
    std::int64_t counter = 0;  ///< of the token within its text
};

class Forward {
  public:
    /// Throws DecoderError, Error and CudaError. Everything that steps need is there afterwards: no step
    /// allocates, compiles or reads a file.
    Forward(const Gpu& gpu, Runtime& runtime, const Description& model, const ModelWeights& weights,
            const Capacity& capacity);
    ~Forward();

    /// Computes the parts and draws a token for each that samples, as `draws` has them one by one. Waits for
    /// the GPU. Throws CudaError or Error.
    [[nodiscard]] std::vector<int> step(std::span<const StepPart> parts, std::span<const Draw> draws);

    /// Microseconds that a replay of the graph of a step of so many sequences takes, without the host; the
    /// median of `repetitions`. For benchmarks: the cache's content does not matter.
    [[nodiscard]] double graph_us(std::int64_t sequences, std::int64_t kv_len, int repetitions);

    [[nodiscard]] const Capacity& capacity() const { return capacity_; }

  private:
    struct Memory;

    void enqueue_layers(const StepInputs& inputs, std::int64_t tokens, std::int64_t sequences,
                        std::int64_t kv_len, bool one_each);
    void enqueue_attention(const StepInputs& inputs, std::int64_t layer, std::int64_t tokens,
                           std::int64_t sequences, std::int64_t kv_len, bool one_each);
    void enqueue_append(const StepInputs& inputs, std::int64_t layer, std::int64_t tokens,
                        std::int64_t sequences, bool one_each);
    void enqueue_head(const StepInputs& inputs, std::int64_t rows, bool picks);
    void enqueue_sample(const StepInputs& inputs, std::int64_t rows, bool filters);
    void capture_graphs();
    [[nodiscard]] std::int64_t padded(std::int64_t sequences) const;
    [[nodiscard]] std::int64_t length_bucket(std::int64_t kv_len) const;
    void fill_one_each(std::span<const StepPart> parts, std::int64_t rows);
    void fill_any(std::span<const StepPart> parts);
    void fill_draws(const StepInputs& inputs, std::span<const Draw> draws);
    [[nodiscard]] std::vector<int> drawn(std::int64_t rows);

    const Gpu& gpu_;
    const Description& model_;
    const ModelWeights& weights_;
    Capacity capacity_;
    Operators operators_;
    StepInputs small_;  ///< of steps with one token of each sequence
    StepInputs large_;
    std::unique_ptr<Memory> memory_;
    std::map<std::pair<std::int64_t, std::int64_t>, runtime::GraphExec> graphs_;  ///< by sequences, kv_len
};

}  // namespace hone::decoder
