// Parts of sums from block to block through the workspace, tail_split (schedule.cuh says whose they
// are). A slot holds the accumulators of all threads that share a tile, in the order in which they hold them,
// 512 bytes a warp. Parts are added in the order of the steps: the result does not depend on which block came
// first. A block leaves one part at most: there are no more slots than blocks.
//
// Beside a slot stand flags, one for each warpgroup that shares a tile: raised when the part is there, taken
// down by the warpgroup that has added it. So no flag is up between calls, and the workspace, whose content
// nobody knows, need not be cleared: a word that is no flag's equals `ready` once in 2^64, and as two floats
// it is a pair of NaNs that no arithmetic makes.
#pragma once

#include "device/flag.cuh"
#include "device/packet.cuh"
#include "device/warpgroup.cuh"
#include "linear/wgmma/tile.cuh"

namespace hone::linear::gemm {

class Partials {
  public:
    /// `named_barrier`: for the 128 threads of the warpgroup.
    __device__ Partials(float* workspace, int warpgroup, int named_barrier)
        : flags_(reinterpret_cast<uint64*>(workspace + static_cast<int64>(gridDim.x) * slot_floats)),
          mine_(workspace + (sharer(warpgroup) * 128 + threadIdx.x % 128) * 4),
          sharer_(sharer(warpgroup)),
          named_barrier_(named_barrier) {}

    __device__ void leave(const Sums& sums, int slot) const {
        float* const to = mine_ + static_cast<int64>(slot) * slot_floats;
#pragma unroll
        for (int word = 0; word < words; ++word) {
            const float* sum = &sums[word / row_words][4 * (word % row_words)];
            store_packet(to + word * word_pitch, Packet<float, 4>{sum[0], sum[1], sum[2], sum[3]});
        }
        named_barrier_sync<128>(named_barrier_);
        if (threadIdx.x % 128 == 0) raise_flag(flag(slot), ready);
        __syncwarp();
    }

    /// Adds the parts in `count` slots from `first` on.
    __device__ void collect(Sums& sums, int first, int count) const {
        for (int slot = first; slot < first + count; ++slot) {
            if (threadIdx.x % 128 == 0) {
                while (flag_value(flag(slot)) != ready) {
                }
                *flag(slot) = 0;
            }
            __syncwarp();
            named_barrier_sync<128>(named_barrier_);
            add(sums, mine_ + static_cast<int64>(slot) * slot_floats);
        }
    }

  private:
    static constexpr uint64 ready = 0xffa57e3c7fb91d2eull;
    static constexpr int slot_floats = geometry.partial_bytes() / 4;
    static constexpr int row_words = tile_n / 8;
    static constexpr int words = row_blocks * row_words;
    static constexpr int word_pitch = geometry.sharers() * 128 * 4;

    __device__ static int sharer(int warpgroup) { return ping_pong ? 0 : warpgroup; }
    __device__ uint64* flag(int slot) const { return flags_ + slot * geometry.sharers() + sharer_; }

    /// Some loads at a time: their registers come on top of the sums'.
    __device__ static void add(Sums& sums, const float* from) {
        constexpr int together = 16;
#pragma unroll
        for (int first = 0; first < words; first += together) {
            Packet<float, 4> parts[together];
#pragma unroll
            for (int i = 0; i < together && first + i < words; ++i)
                parts[i] = load_packet<float, 4, LoadHint::no_allocate>(from + (first + i) * word_pitch);
#pragma unroll
            for (int i = 0; i < together && first + i < words; ++i) {
                float* sum = &sums[(first + i) / row_words][4 * ((first + i) % row_words)];
#pragma unroll
                for (int e = 0; e < 4; ++e) sum[e] += parts[i].elements[e];
            }
        }
    }

    uint64* flags_;
    float* mine_;
    int sharer_;
    int named_barrier_;
};

}  // namespace hone::linear::gemm
