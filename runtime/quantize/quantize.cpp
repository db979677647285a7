#include "hone/quantize.h"

#include "runtime/quantize/check.h"
#include "runtime/quantize/quantize_parts.h"

namespace hone {

QuantLoss quantise_into(std::span<const std::byte> weights, Dtype dtype, const PackedShape& shape,
                        const PackedSpans& stored, const QuantizeOptions& options) {
    constexpr const char* where = "quantise";
    check(shape);
    runtime::check_stored(where, shape, stored.codes.size(), stored.scales.size(), stored.zeros.size());
    if (options.threads < 0)
        runtime::refuse(where, fmt::format("threads is {}; allowed: numbers from 0 on", options.threads),
                        "0 means as many as the machine has");
    const runtime::WeightRows rows(weights, dtype, shape.out, shape.in);
    const runtime::QuantizeJob job{rows, shape, stored, options};
    return shape.format == QuantFormat::w4a16 ? runtime::quantise_w4(job) : runtime::quantise_8_bits(job);
}

QuantizedWeight quantise(std::span<const std::byte> weights, Dtype dtype, const PackedShape& shape,
                         const QuantizeOptions& options) {
    QuantizedWeight result{.shape = shape};
    result.codes.resize(static_cast<std::size_t>(packed_bytes(shape.format, shape.out, shape.in)));
    result.scales.resize(static_cast<std::size_t>(scale_bytes(shape)));
    result.zeros.resize(static_cast<std::size_t>(zero_count(shape)));
    result.loss = quantise_into(weights, dtype, shape, {result.codes, result.scales, result.zeros}, options);
    return result;
}

}  // namespace hone
