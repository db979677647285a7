// The compute warps of variant ring (kernel.cu): from a stage and x to sums, and those to their owners.
#pragma once

#include "device/mma.cuh"
#include "device/shared_tile.cuh"
#include "quantized_linear/code_pairs.cuh"
#include "quantized_linear/ring/inbox.cuh"

namespace hone::quantized_linear::ring {

inline constexpr int row_fragments = geometry.warp_rows / 16;
/// 32 columns: a quad of x's matrices, and two instructions' worth of codes.
inline constexpr int halves = 2;

using Sums = MmaSums[row_fragments][token_blocks];
/// What a lane holds of each 16 rows: 64 columns of 4 bits, or 32 of 8.
using Codes = uint4[row_fragments];

/// How codes of the thread's rows g and g + 8 are widened.
struct Rows {
    using Codes = RowCodes<Element, has_zeros, false>;
    Codes rows[2];

    /// Made of two zero points in the low bytes.
    __device__ static Rows of(uint32 zeros) { return {Codes(0, zeros, 0), Codes(1, zeros, 0)}; }
};

__device__ inline uint32 load_shared_half(uint32 address) {
    uint16 half;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(half) : "r"(address) : "memory");
    return half;
}

/// A left operand of 16 columns, from one word (4 bits) or two.
struct Operand {
    uint32 words[4];

    __device__ Operand(uint32 codes, const Rows& rows) {
#pragma unroll
        for (int i = 0; i < 4; ++i) words[i] = rows.rows[i % 2].widen(codes, i);
    }
    __device__ Operand(uint32 low, uint32 high) {
        words[0] = widen_bytes<Element>(low);
        words[1] = widen_bytes<Element>(low >> 8);
        words[2] = widen_bytes<Element>(high);
        words[3] = widen_bytes<Element>(high >> 8);
    }
};

class Consumer {
  public:
    __device__ Consumer(const Tensors& tensors, Memory memory, const Schedule& schedule)
        : tensors_(tensors), memory_(memory), schedule_(schedule) {
        const int warp = threadIdx.x / 32;
        const int row = warp % geometry.row_warps() * geometry.warp_rows;
        k_warp_ = warp / geometry.row_warps();
        first_fragment_ = row / 16;
        const int block = row / block_rows;
        const int quarter = row % block_rows / 16;
        codes_at_ = geometry.codes_at() + block * geometry.row_code_bytes() + (quarter * 32 + lane()) * 16;
        const int pair = quarter * 16 + lane() / 4 * 2;
        scales_at_ = geometry.scales_at() + block * geometry.row_scale_bytes() + pair * 2;
        zeros_at_ = geometry.zeros_at() + block * geometry.row_zero_bytes() + pair;
        // Lane l names row l % 8 of 8 x 8 matrix l / 8: columns 8 (l / 8) on, of the first 32.
        x_at_ = swizzled_offset<block_columns>(lane() % 8, lane() / 8);
    }

    __device__ void run() {
        RingPosition<stages> ring;
        for (int number = 0; number < schedule_.tile_count; ++number) {
            Sums sums = {};
            Rows whole_rows[row_fragments];
            load_row_zeros(schedule_.tile(number), whole_rows);
            for (int step = 0; step < schedule_.steps; ++step, ring.advance()) {
                barrier_wait(memory_.full(ring.stage), ring.parity);
                if (!x_streams && number == 0) barrier_wait(memory_.x_full(step), 0);
                multiply_stage(sums, step, memory_.stage(ring.stage), whole_rows);
                __syncwarp();
                if (lane() == 0) barrier_arrive(memory_.empty(ring.stage));
            }
            // All blocks of the cluster must run before anything is written there.
            if (has_cluster && number == 0) cluster_wait();
            send(sums, Inbox(memory_, number));
        }
    }

  private:
    __device__ static int lane() { return threadIdx.x % 32; }

    /// Where a row has one zero point, which is not in the ring.
    __device__ void load_row_zeros(int tile, Rows (&rows)[row_fragments]) const {
        if constexpr (has_zeros && !has_groups) {
#pragma unroll
            for (int f = 0; f < row_fragments; ++f) {
                constexpr int product_fragments = geometry.rows / 16;
                const int fragment = first_fragment_ + f;
                const int64 row =
                    (static_cast<int64>(tile) * product_fragments + fragment % product_fragments) * 16;
                const uint8* from = tensors_.weight_of(fragment / product_fragments).zeros;
                const int64 last = whole_blocks(out) * block_rows - 16;
                rows[f] = Rows::of(*reinterpret_cast<const uint16*>(
                    from + scale_place(row < last ? row : last, 0, 1) + lane() / 4 * 2));
            }
        }
    }

    __device__ void multiply_stage(Sums& sums, int step, uint32 stage,
                                   const Rows (&whole_rows)[row_fragments]) const {
        const int units = schedule_.units(step);
        const uint32 x = memory_.x(step, stage) + x_at_;
#pragma unroll 1
        for (int unit = k_warp_; unit < units; unit += geometry.k_warps)
            multiply_unit(sums, stage, unit, x + unit * geometry.unit_blocks() * geometry.box_bytes(),
                          whole_rows);
    }

    /// Sums of a group are scaled once it ends; without groups they are the whole sums.
    __device__ void multiply_unit(Sums& sums, uint32 stage, int unit, uint32 x,
                                  const Rows (&whole_rows)[row_fragments]) const {
        Sums parts;
        Rows rows[row_fragments];
        Codes words;
        constexpr int group_halves = has_groups ? geometry.group / 32 : 1;
        const uint32 codes = stage + codes_at_ + unit * geometry.unit_blocks() * geometry.block_bytes();
#pragma unroll
        for (int half = 0; half < halves * geometry.unit_blocks(); ++half) {
            const uint32 x_half = (x + half / 2 * geometry.box_bytes()) ^ (half % 2 * 64);
            if constexpr (has_groups) {
                const int place = unit * geometry.unit_groups() + half / group_halves;
                if (half % group_halves == 0) begin_group(parts, rows, stage, place);
                multiply_half(parts, words, codes, half, x_half, rows);
                if (half % group_halves == group_halves - 1) end_group(sums, parts, stage, place);
            } else {
                multiply_half(sums, words, codes, half, x_half, whole_rows);
            }
        }
    }

    __device__ void begin_group(Sums& parts, Rows (&rows)[row_fragments], uint32 stage, int group) const {
#pragma unroll
        for (int f = 0; f < row_fragments; ++f) {
            if constexpr (has_zeros)
                rows[f] = Rows::of(load_shared_half(stage + zeros_at_ + group * block_rows + f * 16));
#pragma unroll
            for (int n = 0; n < token_blocks; ++n) parts[f][n] = {};
        }
    }
    __device__ void end_group(Sums& sums, const Sums& parts, uint32 stage, int group) const {
#pragma unroll
        for (int f = 0; f < row_fragments; ++f) {
            const uint32 pair = load_shared(stage + scales_at_ + group * block_rows * 2 + f * 32);
            Packet<Element, 2> packet;
            memcpy(&packet, &pair, 4);
            float scales[2];
            unpack(packet, scales);
#pragma unroll
            for (int n = 0; n < token_blocks; ++n) {
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    sums[f][n].values[i] = fmaf(parts[f][n].values[i], scales[i / 2], sums[f][n].values[i]);
            }
        }
    }

    /// 32 columns: half `half` of the unit. `words` has the codes, of 4 bits those of the half before too.
    __device__ void multiply_half(Sums& sums, Codes& words, uint32 codes, int half, uint32 x,
                                  const Rows (&rows)[row_fragments]) const {
        uint32 tokens[token_blocks][4];
#pragma unroll
        for (int n = 0; n < token_blocks; ++n) load_matrices(tokens[n], x + n * 1024);
#pragma unroll
        for (int f = 0; f < row_fragments; ++f) {
            if (half * geometry.bits % 8 == 0)
                words[f] = load_shared_16(codes + half * geometry.bits * 256 + f * 512);
#pragma unroll
            for (int step = 0; step < 2; ++step) {
                const Operand a = operand(words[f], half, step, rows[f]);
#pragma unroll
                for (int n = 0; n < token_blocks; ++n)
                    multiply_16<Element>(sums[f][n], a.words[0], a.words[1], a.words[2], a.words[3],
                                         tokens[n][2 * step], tokens[n][2 * step + 1]);
            }
        }
    }
    __device__ static Operand operand(const uint4& words, int half, int step, const Rows& rows) {
        const uint32 all[4] = {words.x, words.y, words.z, words.w};
        if constexpr (format == Format::w8a16) return Operand(all[2 * step], all[2 * step + 1]);
        return Operand(all[half % 2 * 2 + step], has_zeros ? rows : Rows::of(0));
    }

    /// Every fragment to the block that owns it.
    __device__ void send(const Sums& sums, const Inbox& inbox) const {
        inbox.wait_free();
        const int source = schedule_.rank * geometry.k_warps + k_warp_;
#pragma unroll
        for (int f = 0; f < row_fragments; ++f) {
            constexpr int product_fragments = geometry.rows / 16;
            const int fragment = first_fragment_ + f;
            const int product = fragment / product_fragments;
#pragma unroll
            for (int n = 0; n < token_blocks; ++n) {
                const float(&v)[4] = sums[f][n].values;
                inbox.send(fragment % product_fragments * token_blocks + n, product, source,
                           {v[0], v[1], v[2], v[3]});
            }
        }
        inbox.sent();
    }

    const Tensors& tensors_;
    Memory memory_;
    const Schedule& schedule_;
    int k_warp_;
    int first_fragment_;  ///< the first of the tile's fragments of 16 rows
    // Where this lane's begin in a stage; x's in a box of 64 columns.
    uint32 codes_at_;
    uint32 scales_at_;
    uint32 zeros_at_;
    uint32 x_at_;
};

}  // namespace hone::quantized_linear::ring
