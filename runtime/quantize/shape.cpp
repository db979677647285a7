#include "kernel_templates/quantized_linear/layout.cuh"

#include "hone/quantize.h"
#include "runtime/quantize/check.h"

namespace hone {
namespace {

namespace places = quantized_linear;

constexpr std::int64_t max_out = 1048576;
constexpr std::int64_t max_in = 262144;
constexpr const char* hint = "docs/formats.md lists what each format has";

void require(bool condition, const std::string& what) {
    if (!condition) runtime::refuse("PackedShape", what, hint);
}

void check_extents(QuantFormat format, std::int64_t out, std::int64_t in) {
    require(format <= QuantFormat::fp8,
            fmt::format("format is {}; allowed: an enumerator of QuantFormat", static_cast<int>(format)));
    require(out >= 1 && out <= max_out, fmt::format("out is {}; allowed: 1 to {}", out, max_out));
    require(in >= 1 && in <= max_in, fmt::format("in is {}; allowed: 1 to {}", in, max_in));
}

void check_group(const PackedShape& shape) {
    const std::int64_t group = shape.group;
    if (group == 0) return;
    if (shape.format == QuantFormat::fp8) {
        require(group == places::scaled_block,
                fmt::format("group is {}; allowed with fp8: 0, {}", group, places::scaled_block));
    } else {
        require(shape.format == QuantFormat::w4a16,
                fmt::format("group is {}; allowed with integer codes of 8 bits: 0", group));
        require(group == 32 || group == 64 || group == 128,
                fmt::format("group is {}; allowed with w4a16: 0, 32, 64, 128", group));
    }
    require(shape.in % group == 0,
            fmt::format("group is {} and in is {}; allowed: groups that divide in, or 0", group, shape.in));
}

}  // namespace

void check(const PackedShape& shape) {
    check_extents(shape.format, shape.out, shape.in);
    check_group(shape);
    const bool is_w4 = shape.format == QuantFormat::w4a16;
    require(is_w4 || !shape.zeros, "zeros is true; allowed with w4a16 only");
    const bool row_major = shape.format == QuantFormat::w8a8 || shape.format == QuantFormat::fp8;
    require(!shape.one_scale || (row_major && shape.group == 0),
            "one_scale is true; allowed with w8a8, and with fp8 and group 0");
    require(!is_w4 || shape.scale_dtype == Dtype::fp16 || shape.scale_dtype == Dtype::bf16,
            fmt::format("scale_dtype is {}; allowed with w4a16: fp16, bf16", name(shape.scale_dtype)));
}

std::int64_t packed_bytes(QuantFormat format, std::int64_t out, std::int64_t in) {
    check_extents(format, out, in);
    switch (format) {
        case QuantFormat::w4a16: return places::packed_bytes(out, in, 4);
        case QuantFormat::w8a16: return places::packed_bytes(out, in, 8);
        default: return out * in;
    }
}

std::int64_t scale_count(const PackedShape& shape) {
    check(shape);
    if (shape.format == QuantFormat::w4a16)
        return places::whole_blocks(shape.out) * places::groups_of(shape.in, shape.group) *
               places::block_rows;
    if (shape.one_scale) return 1;
    if (shape.group == 0) return shape.out;
    return (shape.out + places::scaled_block - 1) / places::scaled_block * row_groups(shape);
}

std::int64_t scale_bytes(const PackedShape& shape) {
    return scale_count(shape) * (shape.format == QuantFormat::w4a16 ? 2 : 4);
}

std::int64_t zero_count(const PackedShape& shape) { return shape.zeros ? scale_count(shape) : 0; }

std::int64_t row_groups(const PackedShape& shape) {
    check(shape);
    return shape.group == 0 ? 1 : shape.in / shape.group;
}

}  // namespace hone
