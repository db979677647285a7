#include "checkpoints/pack/packed_tensors.h"

namespace hone::checkpoints {
namespace {

using Extents = std::vector<std::uint64_t>;

std::uint64_t count(std::int64_t number) { return static_cast<std::uint64_t>(number); }

std::uint64_t whole(std::int64_t extent, std::int64_t part) { return count((extent + part - 1) / part); }

TensorOutline codes_of(const PackedShape& shape) {
    const Extents plain{count(shape.out), count(shape.in)};
    const std::uint64_t rows = whole(shape.out, 64);
    const std::uint64_t columns = whole(shape.in, 64);
    switch (shape.format) {
        case QuantFormat::w4a16: return {{}, StoredType::u8, {rows, columns, 2048}};
        case QuantFormat::w8a16: return {{}, StoredType::i8, {rows, columns, 4096}};
        case QuantFormat::w8a8: return {{}, StoredType::i8, plain};
        case QuantFormat::fp8: break;
    }
    return {{}, StoredType::f8_e4m3, plain};
}

/// Extents of scales, and of zero points.
Extents scale_extents(const PackedShape& shape) {
    if (shape.format == QuantFormat::w4a16) {
        const std::uint64_t rows = whole(shape.out, 64);
        return {rows, count(scale_count(shape)) / (rows * 64), 64};
    }
    if (shape.one_scale) return {1};
    if (shape.group == 0) return {count(shape.out)};
    return {whole(shape.out, shape.group), count(row_groups(shape))};
}

StoredType scale_type(const PackedShape& shape) {
    if (shape.format != QuantFormat::w4a16) return StoredType::f32;
    return shape.scale_dtype == Dtype::fp16 ? StoredType::f16 : StoredType::bf16;
}

}  // namespace

std::vector<TensorOutline> packed_outlines(const LayerOutline& layer) {
    const PackedShape& shape = layer.shape;
    std::vector<TensorOutline> outlines{codes_of(shape), {{}, scale_type(shape), scale_extents(shape)}};
    outlines[0].name = layer.name + ".codes";
    outlines[1].name = layer.name + ".scales";
    if (shape.zeros) outlines.push_back({layer.name + ".zeros", StoredType::u8, scale_extents(shape)});
    if (layer.input_order)
        outlines.push_back({layer.name + ".input_order", StoredType::i32, {count(shape.in)}});
    return outlines;
}

std::vector<std::span<const std::byte>> packed_parts(const PackedLayer& layer) {
    const QuantizedWeight& weight = layer.weight;
    std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(weight.codes)),
                                                  std::as_bytes(std::span(weight.scales))};
    if (weight.shape.zeros) parts.push_back(std::as_bytes(std::span(weight.zeros)));
    if (!layer.input_order.empty()) parts.push_back(std::as_bytes(std::span(layer.input_order)));
    return parts;
}

}  // namespace hone::checkpoints
