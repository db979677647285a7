// Packed weights in registers, for warp-level products: what a lane holds of 16 rows x 64 columns (a panel),
// from global memory to the words of a left operand. With g = lane / 4 and t = lane % 4 it has some of rows g
// and g + 8.
#pragma once

#include "device/packet.cuh"
#include "quantized_linear/code_pairs.cuh"
#include "quantized_linear/tensors.cuh"

namespace hone::quantized_linear {

inline constexpr int panels = static_cast<int>(whole_blocks(in));

/// w4a16, w8a16: a fragment as it is stored, one word of 4-bit codes or two of 8-bit for each 16 columns, and
/// the two rows' scales and zero points, which stand side by side. They become pairs of T.
template <class T>
class PackedPanel {
  public:
    static constexpr bool has_groups = format == Format::w4a16 && group != 0;
    /// Groups of a panel, at least one.
    static constexpr int sets = has_groups && group < block_columns ? block_columns / group : 1;

    /// What a lane has of 16 rows from `row` on, a multiple of 16; those behind the last block are of that
    /// one.
    struct Rows {
        Rows() = default;
        __device__ Rows(const Weight& weight, int row) {
            const int lane = threadIdx.x % 32;
            const int64 block = min(row / block_rows, static_cast<int>(whole_blocks(out)) - 1);
            const int warp = row % block_rows / 16;
            const int64 place = block * groups * block_rows + warp * 16 + lane / 4 * 2;
            codes = weight.codes + block * panels * block_bytes + (warp * 32 + lane) * 16;
            scales = weight.scales + place;
            if constexpr (has_zeros) zeros = weight.zeros + place;
        }

        const uint8* codes;
        const Scale* scales;
        const uint8* zeros;
    };

    __device__ static void load(const Rows& from, int index, PackedPanel& to) {
        const uint8* const codes = from.codes + static_cast<int64>(index) * block_bytes;
#pragma unroll
        for (int i = 0; i < quads; ++i) to.words_[i] = load_word<LoadHint::no_allocate, 16>(codes + i * 2048);
        const int64 place = static_cast<int64>(group_of(index)) * block_rows;
#pragma unroll
        for (int i = 0; i < sets; ++i) {
            if constexpr (has_groups)
                to.scales_[i] = load_word<LoadHint::normal, 4>(from.scales + place + i * block_rows);
            if constexpr (has_zeros)
                to.zeros_[i] = load_word<LoadHint::normal, 2>(from.zeros + place + i * block_rows);
        }
    }
    __device__ static void load(const Weight& from, int row, int index, PackedPanel& to) {
        load(Rows(from, row), index, to);
    }

    /// Codes less their zero points, word i of the left operand of the `step`-th 16 columns: row g, or g + 8
    /// (i odd), columns 2t and 2t + 1, or 8 further (i > 1). As code_pairs.cuh has them: smaller by a power
    /// of two.
    __device__ uint32 codes(int step, int i) const { return pair<false>(step, i); }
    /// The same times the group's scale, where there are groups.
    __device__ uint32 values(int step, int i) const { return pair<has_groups>(step, i); }
    /// Scales of rows g and g + 8 in the group of the `step`-th 16 columns.
    __device__ void scales(int step, float (&of_rows)[2]) const {
        Packet<T, 2> packet;
        memcpy(&packet, &scales_[set_of(step)], 4);
        unpack(packet, of_rows);
    }

  private:
    static constexpr int quads = format == Format::w4a16 ? 1 : 2;
    static constexpr int block_bytes = quads * 2048;

    __device__ static int group_of(int index) {
        return has_groups ? index * block_columns / (has_groups ? group : 1) : 0;
    }
    __device__ static int set_of(int step) { return step * sets / 4; }
    __device__ static uint32 part(const uint4& word, int i) {
        return i == 0 ? word.x : i == 1 ? word.y : i == 2 ? word.z : word.w;
    }
    template <bool scaled>
    __device__ uint32 pair(int step, int i) const {
        if constexpr (format == Format::w8a16) {
            const uint4& quad = words_[quads == 1 ? 0 : step / 2];
            return widen_bytes<T>(part(quad, step % 2 * 2 + i / 2) >> 8 * (i % 2));
        } else {
            const int set = set_of(step);
            const RowCodes<T, has_zeros, scaled> row(i % 2, zeros_[set], scales_[set]);
            return row.widen(part(words_[0], step), i);
        }
    }

    uint4 words_[quads];
    uint32 scales_[sets];
    uint32 zeros_[sets];
};

}  // namespace hone::quantized_linear
