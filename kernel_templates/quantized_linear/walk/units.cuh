// Variant walk (kernel.cu): what a lane holds of 16 rows x 128 columns of the weight (a unit), from global
// memory to the words of a left operand.
#pragma once

#include "device/mma_8bit.cuh"
#include "device/packet.cuh"
#include "quantized_linear/tensors.cuh"
#include "quantized_linear/walk/geometry.cuh"

namespace hone::quantized_linear::walk {

inline constexpr bool has_groups = format == Format::w4a16 && group != 0;
/// A norm is part of the product where x stands as digits: else x comes as codes of what it left.
inline constexpr bool folds_norm = has_norm && is_packed;
inline constexpr WalkGeometry geometry{.products = products,
                                       .in = in,
                                       .out = out,
                                       .digits = is_packed,
                                       .x_bytes = format == Format::fp8 ? 2 : 1,
                                       .blocks_scaled = has_blocks,
                                       .zeros = has_zeros,
                                       .sets = has_groups ? WalkGeometry::unit_columns / group : 1,
                                       .norm = folds_norm,
                                       .tokens = Tuned::tokens,
                                       .k_warps = Tuned::k_warps,
                                       .unroll = Tuned::unroll};
inline constexpr int unroll = geometry.unroll;
inline constexpr int column_blocks = geometry.column_blocks();
inline constexpr int unit_columns = WalkGeometry::unit_columns;
inline constexpr int units = geometry.units();
/// Units are whole, and every warp has some in every turn.
inline constexpr bool whole_units = in % unit_columns == 0;
inline constexpr bool whole_turns = whole_units && units % geometry.turn() == 0;

/// Integer codes meet integers; those of fp8 become fp16, exactly: sm_90 makes its warp products of such.
using Part = Conditional<format == Format::fp8, MmaSums, IntMmaSums>::type;

__device__ inline uint4 draw(const uint8* address) { return load_word<LoadHint::no_allocate, 16>(address); }
/// Into level 2; multiples of 16 bytes.
__device__ inline void prefetch_bytes(const uint8* address, uint32 bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(address), "r"(bytes) : "memory");
}
__device__ inline uint32 part(const uint4& word, int i) {
    return i == 0 ? word.x : i == 1 ? word.y : i == 2 ? word.z : word.w;
}

/// Codes 0 to 15 in the upper half of each byte, as 16 times what they are above 8, two's complement.
__device__ inline uint32 upper_nibbles(uint32 codes) {
    uint32 result;  // told as one instruction, else there are two
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(codes), "r"(0xf0f0f0f0u), "r"(0x80808080u));
    return result;
}

/// w4a16, w8a16: fragments as they are stored, one word of 4-bit codes or two of 8-bit for each 16 columns,
/// and the two rows' scales and zero points, which stand side by side. Four codes of a row make a word of
/// columns 2 t, 2 t + 8, 2 t + 1 and 2 t + 9: the order of x (x.cuh).
class PackedUnit {
  public:
    /// Products of a unit.
    static constexpr int steps = 4;

    /// Where a warp's units stand, from one of them on.
    class From {
      public:
        From() = default;
        __device__ From(const Weight& weight, int rows, int unit) {
            const int lane = threadIdx.x % 32;
            const int64 block = rows / 4;
            const int64 place = (block * groups + unit * sets) * block_rows + rows % 4 * 16 + lane / 4 * 2;
            codes = weight.codes + block * panels * block_bytes + (rows % 4 * 32 + lane) * 16 +
                    unit * (2 * block_bytes);
            if constexpr (format == Format::w4a16) scales = weight.scales + (has_groups ? place : 0);
            if constexpr (has_zeros) zeros = weight.zeros + (has_groups ? place : place - unit * block_rows);
        }
        /// `units` units and `blocks` blocks of rows further.
        __device__ void advance(int units, int blocks) {
            codes += static_cast<int64>(units) * (2 * block_bytes) +
                     static_cast<int64>(blocks) * (panels * block_bytes);
            const int64 scale_step = static_cast<int64>(units) * (sets * block_rows) +
                                     static_cast<int64>(blocks) * (groups * block_rows);
            if constexpr (has_groups) scales += scale_step;
            if constexpr (has_zeros)
                zeros += has_groups ? scale_step : static_cast<int64>(blocks) * block_rows;
        }

        const uint8* codes;
        const Scale* scales;
        const uint8* zeros;
    };

    /// The unit `index` further on, of which so many columns exist; where only one panel of 64 does it stands
    /// twice, and x is zeros.
    __device__ void load(const From& from, int index, int columns_there) {
        const int there = whole_units || columns_there > 64 ? 2 : 1;  // panels
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int panel = whole_units ? i : min(i, there - 1);
#pragma unroll
            for (int quad = 0; quad < quads; ++quad)
                words_[i * quads + quad] =
                    draw(from.codes + index * (2 * block_bytes) + panel * block_bytes + quad * 2048);
        }
#pragma unroll
        for (int i = 0; i < sets; ++i) {
            const int set = has_groups ? index * sets + (whole_units || 2 * i < there * sets ? i : 0) : 0;
            if constexpr (has_groups)
                scales_[i] = load_word<LoadHint::normal, 4>(from.scales + set * block_rows);
            if constexpr (has_zeros)
                zeros_[i] = load_word<LoadHint::normal, 2>(from.zeros + set * block_rows);
        }
    }
    /// Asks level 2 for a unit.
    __device__ static void prefetch(const From& from, int index) {
        const int lane = threadIdx.x % 32;
        if (lane < 2 * quads)
            prefetch_bytes(from.codes - lane * 16 + index * (2 * block_bytes) + lane / quads * block_bytes +
                               lane % quads * 2048,
                           512);
    }

    /// sums += 32 columns, number `step` of the unit, times x's `b0` and `b1`.
    template <class Sums>
    __device__ void multiply(Sums& sums, int step, const uint32 (&b)[column_blocks][2]) const {
        uint32 a[4];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if constexpr (format == Format::w4a16) {
                const uint32 word = part(words_[step / 2], step % 2 * 2 + half);
                a[2 * half] = upper_nibbles(word << 4);
                a[2 * half + 1] = upper_nibbles(word);
            } else {
                const uint4& quad = words_[step];
                a[2 * half] = __byte_perm(part(quad, 2 * half), part(quad, 2 * half + 1), 0x6240);
                a[2 * half + 1] = __byte_perm(part(quad, 2 * half), part(quad, 2 * half + 1), 0x7351);
            }
        }
#pragma unroll
        for (int n = 0; n < column_blocks; ++n)
            multiply_32(sums[n], a[0], a[1], a[2], a[3], b[n][0], b[n][1]);
    }
    /// Scales of rows g and g + 8 in a set.
    __device__ void scales(int set, float (&of_rows)[2]) const {
        Packet<Element, 2> packet;
        memcpy(&packet, &scales_[set], 4);
        unpack(packet, of_rows);
    }
    /// 16 times what row g (0) or g + 8 (1) is above its zero points where it is above 8.
    __device__ int excess(int set, int row) const {
        return 128 - 16 * static_cast<int>(zeros_[set] >> 8 * row & 255u);
    }

  private:
    static constexpr int panels = static_cast<int>(whole_blocks(in));
    static constexpr int quads = format == Format::w4a16 ? 1 : 2;
    static constexpr int block_bytes = quads * 2048;
    static constexpr int sets = geometry.sets;

    uint4 words_[2 * quads];
    uint32 scales_[sets];
    uint32 zeros_[sets];
};

/// w8a8, fp8 in rows: lane 4 g + t has, of rows g and g + 8, 16 codes from columns 16 t and 64 + 16 t on.
/// Which column is which does not matter to a sum as long as x stands in the same order (x.cuh).
class RowUnit {
  public:
    static constexpr int steps = format == Format::fp8 ? 8 : 4;

    class From {
      public:
        From() = default;
        __device__ From(const Weight& weight, int rows, int unit) : stride(weight.stride) {
            const int lane = threadIdx.x % 32;
            codes = weight.codes + (rows * 16 + lane / 4) * stride + unit * unit_columns + lane % 4 * 16;
            if constexpr (has_blocks) scales = weight.scales + rows / 8 * groups + unit;
            row_group = rows;
        }
        /// `units` units and `blocks` times 64 rows further.
        __device__ void advance(int units, int blocks) {
            codes += units * unit_columns + blocks * block_rows * stride;
            if constexpr (has_blocks) {
                const int before = row_group / 8;
                row_group += blocks * 4;
                scales += units + (row_group / 8 - before) * groups;
            }
        }

        const uint8* codes;
        const Scale* scales;
        int64 stride;
        int row_group;
    };

    /// As PackedUnit's; columns that do not exist are some that do.
    __device__ void load(const From& from, int index, int columns_there) {
#pragma unroll
        for (int panel = 0; panel < 2; ++panel) {
            const int wanted = index * unit_columns + panel * 64;
            const int column = static_cast<int>(threadIdx.x) % 4 * 16;
            const int place =
                whole_units || panel * 64 + column < columns_there ? wanted : index * unit_columns - column;
#pragma unroll
            for (int row = 0; row < 2; ++row)
                words_[row][panel] = draw(from.codes + row * 8 * from.stride + place);
        }
        if constexpr (has_blocks) scale_ = to_float(from.scales[index]);
    }
    __device__ static void prefetch(const From& from, int index) {
        if (threadIdx.x % 4 != 0) return;
#pragma unroll
        for (int row = 0; row < 2; ++row)
            prefetch_bytes(from.codes + row * 8 * from.stride + index * unit_columns,
                           whole_units ? unit_columns : 16);
    }

    /// sums += 16 columns of fp8 or 32 of int8.
    template <class Sums>
    __device__ void multiply(Sums& sums, int step, const uint32 (&b)[column_blocks][2]) const {
        uint32 a[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if constexpr (format == Format::w8a8) {
                a[i] = part(words_[i % 2][step / 2], step % 2 * 2 + i / 2);
            } else {
                const uint32 word = part(words_[i % 2][step / 4], step % 4);
                a[i] = i < 2 ? widen_pair<fp16, 0, 1>(word) : widen_pair<fp16, 2, 3>(word);
            }
        }
#pragma unroll
        for (int n = 0; n < column_blocks; ++n) {
            if constexpr (format == Format::w8a8)
                multiply_32(sums[n], a[0], a[1], a[2], a[3], b[n][0], b[n][1]);
            else
                multiply_16<fp16>(sums[n], a[0], a[1], a[2], a[3], b[n][0], b[n][1]);
        }
    }
    __device__ void scales(int, float (&of_rows)[2]) const { of_rows[0] = of_rows[1] = scale_; }
    __device__ int excess(int, int) const { return 0; }

  private:
    uint4 words_[2][2];
    float scale_;
};

using Unit = Conditional<is_packed, PackedUnit, RowUnit>::type;

/// What a row's sums are multiplied with: its scale, where all its columns share one.
__device__ inline float row_factor(const Weight& weight, int64 row) {
    if constexpr (is_packed) return packed_row_scale(weight, row);
    if constexpr (has_blocks) return 1.0f;
    return to_float(weight.scales[row * weight.scale_stride]);
}

}  // namespace hone::quantized_linear::walk
