// What a step is told: whose tokens, at which positions, in which pages, and how tokens are drawn. Written by
// the host, while the step before is computed and its own inputs may still be on their way; copied as one
// block to one of the GPU's blocks, whose addresses never change, so that graphs may hold them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "decoder/forward/operators.h"
#include "decoder/gpu/gpu.h"
#include "decoder/scheduling/scheduler.h"

namespace hone::decoder {

/// How a row's token is drawn; SampleArgs says what they mean.
struct Wishes {
    float temperature = 0;  ///< 0: the likeliest token
    std::int32_t top_k = 0;
    float top_p = 1;
    float min_p = 0;
    std::int64_t seed = 0;

    [[nodiscard]] bool filters() const { return temperature > 0 && (top_k > 0 || top_p < 1 || min_p > 0); }
};

/// A row that a token is drawn from.
struct Draw {
    Wishes wishes;
    std::int64_t counter = 0;  ///< of the token within its text
};

/// What a step of any parts comes to, as its operators are told it.
struct PackedStep {
    std::int64_t tokens = 0;
    std::int64_t kv_len = 0;   ///< keys of the longest sequence
    std::int64_t longest = 0;  ///< tokens of one sequence
    std::int64_t prompts = 0;  ///< sequences of more than one token, behind all others
};

class StepInputs {
  public:
    /// Has room for so many tokens and sequences, in each of so many blocks on the GPU. Throws CudaError.
    StepInputs(const Gpu& gpu, std::int64_t tokens, std::int64_t sequences, std::int64_t pages_a_sequence,
               std::size_t blocks = 1);

    /// The arrays on one side: host or GPU.
    struct Arrays {
        std::int64_t* seed = nullptr;        ///< [sequences]
        std::int64_t* counter = nullptr;     ///< [sequences]
        float* temperature = nullptr;        ///< [sequences]
        std::int32_t* top_k = nullptr;       ///< [sequences]
        float* top_p = nullptr;              ///< [sequences]
        float* min_p = nullptr;              ///< [sequences]
        std::int32_t* q_starts = nullptr;    ///< [sequences + 1]
        std::int32_t* kv_lengths = nullptr;  ///< [sequences]; 0: nobody
        std::int32_t* last_rows = nullptr;   ///< [sequences]; rows that tokens are drawn from
        std::int32_t* awaited = nullptr;     ///< [sequences]; StepPart::awaited of those of one token
        std::int32_t* ids = nullptr;         ///< [tokens]
        std::int32_t* positions = nullptr;   ///< [tokens]
        std::int32_t* slots = nullptr;       ///< [tokens]; places in the cache
        std::int32_t* pages = nullptr;       ///< [sequences, pages_a_sequence]
    };
    /// Of the step that is written, since begin().
    [[nodiscard]] const Arrays& host() const { return sides_[side_].arrays; }
    [[nodiscard]] const Arrays& device(std::size_t block = 0) const { return blocks_[block].arrays; }
    [[nodiscard]] std::int64_t pages_a_sequence() const { return pages_a_sequence_; }

    /// Another step is written from now on: beside the one that was sent last.
    void begin() { side_ = 1 - side_; }
    /// Writes a step of one token a sequence; rows behind its parts, up to `rows`, are those of nobody.
    void fill_one_each(std::span<const StepPart> parts, std::int64_t rows);
    /// Writes a step of any parts: sequences of one token first, then the others, each in their order, and
    /// the rows that tokens are drawn from in the order of the parts.
    [[nodiscard]] PackedStep fill(std::span<const StepPart> parts, std::int64_t page_size);
    /// First rows of the parts of that step that are scored, in their order.
    [[nodiscard]] const std::vector<std::int64_t>& scored_rows() const { return scored_rows_; }
    /// Writes how a token is drawn for each row; temperatures times `logit_divisor`, which draws as logits
    /// that are divided by it.
    void fill_draws(std::span<const Draw> draws, double logit_divisor) const;
    /// Whether in the step that is written all parts of one token wait for theirs, and no others do: the GPU
    /// finds them by Arrays::awaited.
    [[nodiscard]] bool awaits_singles() const { return awaits_singles_; }
    /// Writes the tokens that parts waited for, of those that the step before has drawn.
    void fill_awaited(std::span<const int> drawn) const;

    /// Enqueues the copy of what steps of up to so many sequences read.
    void send(std::int64_t sequences, std::size_t block = 0) const { send(gpu_.stream(), sequences, block); }
    /// The same at once, whatever is computed: no step under way may read that block. gpu.has_copied() says
    /// when it is there.
    void send_ahead(std::int64_t sequences, std::size_t block) const {
        send(gpu_.copies(), sequences, block);
    }

  private:
    struct Side {
        runtime::PinnedBuffer<std::byte> memory;
        Arrays arrays;
    };
    struct Block {
        Bytes memory;
        Arrays arrays;
    };
    struct Awaited {
        std::int64_t row = 0;
        int drawn = 0;  ///< StepPart::awaited
    };
    Arrays arrays_from(std::byte* base) const;
    void note_awaited(std::span<const StepPart> parts);
    [[nodiscard]] Side side() const;
    void send(CUstream stream, std::int64_t sequences, std::size_t block) const;

    const Gpu& gpu_;
    std::int64_t tokens_;
    std::int64_t sequences_;
    std::int64_t pages_a_sequence_;
    std::vector<Block> blocks_;  ///< the GPU's
    std::array<Side, 2> sides_;  ///< the host's
    std::size_t side_ = 0;
    std::vector<Awaited> awaited_;  ///< of the step that is written
    bool awaits_singles_ = false;
    std::vector<std::int64_t> scored_rows_;
};

}  // namespace hone::decoder
