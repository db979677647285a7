// OCP's MXFP4 (Microscaling Formats, version 1.0), as gpt-oss has the weights of its experts: in a row blocks
// of 32 elements of four bits (E2M1, the lower half of a byte first), `NAME_blocks` [..., rows, columns / 32,
// 16], and a power of two for each block, `NAME_scales` [..., rows, columns / 32], less 127. Widened to
// numbers of 16 or 32 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "checkpoints/read/checkpoint.h"
#include "decoder/weights/weight_source.h"

namespace hone::decoder {

class Mxfp4 {
  public:
    Mxfp4(const checkpoints::Checkpoint& checkpoint, std::string_view name);

    /// The checkpoint has both tensors.
    [[nodiscard]] bool exists() const { return blocks_ != nullptr && scales_ != nullptr; }
    /// Throws DecoderError naming file and tensor for other shapes and types.
    void check(const WantedTensor& wanted) const;
    /// As WeightSource::read(); rows stand as they are wanted, also where numbers are transposed. What is
    /// smaller than `dtype` has is rounded.
    void read(const WantedTensor& wanted, Dtype dtype, std::int64_t first, std::int64_t count,
              std::span<std::byte> out) const;

  private:
    const checkpoints::StoredTensor* blocks_;
    const checkpoints::StoredTensor* scales_;
};

}  // namespace hone::decoder
