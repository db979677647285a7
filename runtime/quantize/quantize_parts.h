// The halves of quantize(): codes of 4 bits, and of 8.
#pragma once

#include "hone/quantize.h"
#include "runtime/quantize/weight_rows.h"

namespace hone::runtime {

/// All that a half works on; checked.
struct QuantizeJob {
    const WeightRows& weights;
    const PackedShape& shape;
    const PackedSpans& stored;
    const QuantizeOptions& options;
};

/// Throws what quantize() throws for a weight whose row `number` is `row`, which has no codes: a kernel has
/// found it.
[[noreturn]] void refuse_row(std::span<const std::byte> row, Dtype dtype, PackedShape shape,
                             std::int64_t number);

/// w4a16.
QuantLoss quantize_w4(const QuantizeJob& job);
/// w8a16, w8a8 and fp8.
QuantLoss quantize_8_bits(const QuantizeJob& job);

}  // namespace hone::runtime
