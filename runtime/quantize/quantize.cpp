#include "hone/quantize.h"

#include "runtime/quantize/check.h"
#include "runtime/quantize/quantize_parts.h"

namespace hone {
namespace {

QuantizedWeight room_for(const PackedShape& shape) {
    QuantizedWeight room{.shape = shape};
    room.codes.resize(static_cast<std::size_t>(packed_bytes(shape.format, shape.out, shape.in)));
    room.scales.resize(static_cast<std::size_t>(scale_bytes(shape)));
    room.zeros.resize(static_cast<std::size_t>(zero_count(shape)));
    return room;
}

QuantLoss quantize_checked(const runtime::QuantizeJob& job) {
    return job.shape.format == QuantFormat::w4a16 ? runtime::quantize_w4(job) : runtime::quantize_8_bits(job);
}

}  // namespace

QuantLoss quantize_into(std::span<const std::byte> weights, Dtype dtype, const PackedShape& shape,
                        const PackedSpans& stored, const QuantizeOptions& options) {
    constexpr const char* where = "quantize";
    check(shape);
    runtime::check_stored(where, shape, stored.codes.size(), stored.scales.size(), stored.zeros.size());
    if (options.threads < 0)
        runtime::refuse(where, fmt::format("threads is {}; allowed: numbers from 0 on", options.threads),
                        "0 means as many as the machine has");
    const runtime::WeightRows rows(weights, dtype, shape.out, shape.in);
    const runtime::QuantizeJob job{rows, shape, stored, options};
    return quantize_checked(job);
}

QuantizedWeight quantize(std::span<const std::byte> weights, Dtype dtype, const PackedShape& shape,
                         const QuantizeOptions& options) {
    QuantizedWeight result = room_for(shape);
    result.loss = quantize_into(weights, dtype, shape, {result.codes, result.scales, result.zeros}, options);
    return result;
}

void runtime::refuse_row(std::span<const std::byte> row, Dtype dtype, PackedShape shape,
                         std::int64_t number) {
    shape.out = 1;
    QuantizedWeight room = room_for(shape);
    const WeightRows rows(row, dtype, 1, shape.in, number);
    const PackedSpans stored{room.codes, room.scales, room.zeros};
    const QuantizeOptions options{.search = false, .threads = 1};
    quantize_checked({rows, shape, stored, options});
    refuse("quantize", fmt::format("row {} of the weight has no codes; allowed: finite numbers", number),
           "nothing else may write to the weight meanwhile");
}

}  // namespace hone
