// Weights as codes of 4 or 8 bits, for the quantized linear layers: quantizing, packing and their inverses,
// on the CPU and in host memory. docs/formats.md says where each bit stands. A checkpoint that comes
// quantized is packed with pack_w4() or pack_w8(), pack_scales() and pack_zeros() as it is; quantize() makes
// codes of 32- or 16-bit weights. Nothing here needs a GPU; every function may be called from several threads
// at once. All of them throw Error, with ErrorKind::bad_argument, where sizes do not fit or values are not
// allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hone/error.h"
#include "hone/quant_format.h"
#include "kernel_templates/dtype.h"

namespace hone {

/// Version of the places that docs/formats.md describes. Another number: weights have to be packed again.
inline constexpr int packed_layout_version = 1;

/// What a weight is like once it is stored, and how much memory that takes.
struct PackedShape {
    QuantFormat format = QuantFormat::w4a16;
    std::int64_t out = 0;  ///< rows, 1 to 1048576
    std::int64_t in = 0;   ///< columns, 1 to 262144
    /// Columns that share a scale; 0: all of a row. w4a16: 32, 64 or 128, dividing `in`. fp8: 128, dividing
    /// `in`, for a scale each 128 x 128 of the weight. Other formats: 0.
    std::int64_t group = 0;
    bool zeros = false;      ///< w4a16: codes have zero points, one a group
    bool one_scale = false;  ///< w8a8, and fp8 with group 0: one scale for the whole weight, not one a row
    /// Element type of w4a16's scales: fp16 or bf16, the operator's. The other formats' are fp32 always.
    Dtype scale_dtype = Dtype::bf16;

    friend bool operator==(const PackedShape&, const PackedShape&) = default;
};

/// Throws Error unless the fields go together.
void check(const PackedShape&);

/// Bytes of the codes, with the padding to whole blocks where the format has blocks.
[[nodiscard]] std::int64_t packed_bytes(QuantFormat format, std::int64_t out, std::int64_t in);
/// Scales as they are stored, padding included: w4a16 [blocks of 64 rows][groups][64], w8a16 [out], w8a8 and
/// fp8 [out], one, or [ceil(out / 128), in / 128].
[[nodiscard]] std::int64_t scale_count(const PackedShape&);
[[nodiscard]] std::int64_t scale_bytes(const PackedShape&);
/// Zero points as they are stored, one byte each: as many as scales; 0 without zero points.
[[nodiscard]] std::int64_t zero_count(const PackedShape&);
/// Scales of one row as a checkpoint has them, without padding: in / group, or 1.
[[nodiscard]] std::int64_t row_groups(const PackedShape&);

/// Where the parts of a stored weight are to go, or are. Sizes are those that the functions above give.
struct PackedSpans {
    std::span<std::uint8_t> codes;
    std::span<std::uint8_t> scales;  ///< fp16, bf16 or fp32 numbers, little-endian; no alignment needed
    std::span<std::uint8_t> zeros;   ///< empty without zero points
};
struct PackedView {
    std::span<const std::uint8_t> codes;
    std::span<const std::uint8_t> scales;
    std::span<const std::uint8_t> zeros;
};

/// What quantizing has lost, over all elements.
struct QuantLoss {
    double relative_l2 =
        0;               ///< |weight - stored| / |weight|, of the Euclidean norms; 0 for a weight of zeros
    double largest = 0;  ///< largest |weight - stored|
};

/// A stored weight in host memory of its own.
struct QuantizedWeight {
    PackedShape shape;
    std::vector<std::uint8_t> codes;
    std::vector<std::uint8_t> scales;
    std::vector<std::uint8_t> zeros;
    QuantLoss loss;

    [[nodiscard]] PackedView view() const { return {codes, scales, zeros}; }
};

struct QuantizeOptions {
    /// w4a16: takes the scale (and zero point) of each group that leaves the least squared error; else the
    /// one that clips nothing. The other formats' scale always puts the largest magnitude at the largest
    /// code.
    bool search = true;
    int threads = 0;  ///< 0: as many as the machine has
};

/// Quantizes `weights`, [out, in] row by row, of fp32, fp16 or bf16. Each code is the one nearest to weight /
/// scale, where the scale is already rounded to its stored type; ties go to the even one. The result is the
/// same whatever the number of threads. Symmetric w4a16 uses all 16 codes, so its scales may be negative: -8
/// serves the side that reaches further. A scale is 0 where all weights that share it are below 2^-100.
/// Throws for weights that are infinite or no number, and for scales beyond the range of scale_dtype.
[[nodiscard]] QuantizedWeight quantize(std::span<const std::byte> weights, Dtype dtype,
                                       const PackedShape& shape, const QuantizeOptions& options = {});
/// The same into memory of the caller.
QuantLoss quantize_into(std::span<const std::byte> weights, Dtype dtype, const PackedShape& shape,
                        const PackedSpans& stored, const QuantizeOptions& options = {});

/// Writes the values of a stored weight, [out, in]. Throws for scales that are infinite or no number, for
/// negative ones where the format has 8 bits, and for zero points above 15.
void dequantize(const PackedShape& shape, const PackedView& stored, std::span<float> values);

/// Codes 0 to 15, one a byte, [out, in], to their places in blocks. Padding gets the code 8; in columns
/// beyond `in` it gets padding[row] where `padding` has `out` codes: the row's zero point, with zero points
/// and group 0. Padding then has the value 0 everywhere.
void pack_w4(std::span<const std::uint8_t> codes, std::int64_t out, std::int64_t in,
             std::span<std::uint8_t> packed, std::span<const std::uint8_t> padding = {});
void unpack_w4(std::span<const std::uint8_t> packed, std::int64_t out, std::int64_t in,
               std::span<std::uint8_t> codes);

/// Codes -128 to 127 of w8a16, [out, in], to their places in blocks. Padding gets the code 0.
void pack_w8(std::span<const std::int8_t> codes, std::int64_t out, std::int64_t in,
             std::span<std::uint8_t> packed);
void unpack_w8(std::span<const std::uint8_t> packed, std::int64_t out, std::int64_t in,
               std::span<std::int8_t> codes);

/// Scales of w4a16, [out, row_groups] as bits of shape.scale_dtype, to their places. Padding gets 0. Throws
/// for scales that are infinite or no number, and for those of bf16 from 2^35 on.
void pack_scales(std::span<const std::uint16_t> scales, const PackedShape& shape,
                 std::span<std::uint16_t> packed);
void unpack_scales(std::span<const std::uint16_t> packed, const PackedShape& shape,
                   std::span<std::uint16_t> scales);

/// Zero points of w4a16, 0 to 15, [out, row_groups], to their places. Padding gets 8.
void pack_zeros(std::span<const std::uint8_t> zeros, const PackedShape& shape,
                std::span<std::uint8_t> packed);
void unpack_zeros(std::span<const std::uint8_t> packed, const PackedShape& shape,
                  std::span<std::uint8_t> zeros);

/// The E4M3 code nearest to a number, ties to even; magnitudes from 448 on, infinity too, become 448. NaN:
/// 0x7F or 0xFF.
[[nodiscard]] std::uint8_t encode_e4m3(float value);
/// Exact; 0x7F and 0xFF are NaN.
[[nodiscard]] float decode_e4m3(std::uint8_t code);

}  // namespace hone
