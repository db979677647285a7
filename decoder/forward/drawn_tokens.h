// Tokens that steps draw, where the host waits for them and the next step reads them: in the host's memory,
// which the GPU writes to, since a copy of a few numbers takes as long as a small kernel. Knows rows, not
// whose they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "decoder/gpu/gpu.h"

namespace hone::decoder {

/// Steps take turns: each has a place of its own for the tokens that it draws, and reads those of the step
/// before. A step that is launched while the one before is computed, which may not have read yet, needs a
/// third, to be cleared for its own. So graphs are made once for each turn.
constexpr std::size_t turns = 3;
[[nodiscard]] constexpr std::size_t turn_after(std::size_t turn) { return (turn + 1) % turns; }
[[nodiscard]] constexpr std::size_t turn_before(std::size_t turn) { return (turn + turns - 1) % turns; }

class DrawnTokens {
  public:
    /// In place of a token that is not there yet.
    static constexpr std::int32_t not_drawn = -1;

    /// Has room for so many rows of each turn, all of them 0. Throws CudaError.
    DrawnTokens(const Gpu& gpu, std::int64_t rows);

    /// [rows]; host and GPU know it by the same address.
    [[nodiscard]] std::span<std::int32_t> of(std::size_t turn) const;
    /// Its first rows are not there until the GPU has written them.
    void expect(std::size_t turn, std::int64_t rows) const;
    /// Whether they are.
    [[nodiscard]] bool are_there(std::size_t turn, std::int64_t rows) const;

  private:
    std::size_t rows_;
    runtime::PinnedBuffer<std::int32_t> memory_;  ///< [turns, rows]
};

}  // namespace hone::decoder
