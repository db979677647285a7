// Which two neighboring tokens a BPE model joins, and in which order. Made once; a look-up takes the
// logarithm of the number of merges that have the same left side, whatever the file says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hone::decoder {

struct Merge {
    int left = 0;
    int right = 0;
    std::uint32_t rank = 0;  ///< the lowest of a word is joined first
    int result = 0;
};

class Merges {
  public:
    Merges() = default;
    /// Ids lie in 0..end_id - 1. Where a pair stands twice, the later rank holds, as in Hugging Face's
    /// readers.
    Merges(std::vector<Merge> merges, int end_id);

    /// Null where the two stay apart.
    [[nodiscard]] const Merge* find(int left, int right) const;

  private:
    std::vector<Merge> merges_;          ///< ordered by left, then right
    std::vector<std::uint32_t> starts_;  ///< by left: its first merge; one more for the end
};

}  // namespace hone::decoder
