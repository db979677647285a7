// From a dynamic dimension to its bucket: the first edge that is not smaller. Edges are the powers of two,
// the maximum, and up to three sizes between two powers, so the number of bits leads to the bucket or a few
// before it; any ascending edges give right answers.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hone::runtime {

class BucketIndex {
  public:
    BucketIndex() = default;
    /// `edges`: positive, ascending, at most 255.
    explicit BucketIndex(std::span<const std::int64_t> edges) : edges_(edges.begin(), edges.end()) {
        for (std::size_t bits = 0; bits < first_.size(); ++bits) {
            std::size_t bucket = 0;
            while (bucket + 1 < edges_.size() && bits_of(edges_[bucket]) < bits) ++bucket;
            first_[bits] = static_cast<std::uint8_t>(bucket);
        }
    }

    [[nodiscard]] std::int64_t max() const noexcept { return edges_.empty() ? 0 : edges_.back(); }
    [[nodiscard]] std::span<const std::int64_t> edges() const noexcept { return edges_; }

    /// For 1 <= value <= max().
    [[nodiscard]] std::size_t find(std::int64_t value) const noexcept {
        std::size_t bucket = first_[bits_of(value)];
        while (edges_[bucket] < value) ++bucket;
        return bucket;
    }

  private:
    [[nodiscard]] static std::size_t bits_of(std::int64_t value) noexcept {
        return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(value - 1)));
    }

    std::vector<std::int64_t> edges_;
    std::array<std::uint8_t, 65> first_{};  ///< by bits of value - 1
};

}  // namespace hone::runtime
