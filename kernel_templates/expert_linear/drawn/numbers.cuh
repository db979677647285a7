// Numbers of tiles: how blocks of variant drawn (kernel.cu) draw them from a word of the workspace, and how
// one thread hands them to all warps of its block.
#pragma once

#include "device/mbarrier.cuh"
#include "device/warp.cuh"
#include "expert_linear/drawn/room.cuh"

namespace hone::expert_linear::drawn {

/// A block's first tile is its own number; each further one is whatever is next when it asks. The count
/// stands in a word of the workspace, whose content nobody knows: the first to come makes it `mark`, and
/// whoever draws last clears it, so that it is unmarked between calls. A word that is no count carries the
/// mark once in 2^36, and as two floats begins with a NaN that no arithmetic makes.
class Deal {
  public:
    __device__ Deal(uint64* word, int tiles) : word_(word), tiles_(tiles) {}

    /// -1: there is none, and the block must not draw.
    __device__ int first() const { return static_cast<int>(blockIdx.x) < tiles_ ? blockIdx.x : -1; }
    /// Before the first draw: the word carries the mark.
    __device__ void open() const {
        uint64 seen = *static_cast<const volatile uint64*>(word_);
        while (seen >> count_bits != mark >> count_bits) {
            const uint64 before = atomicCAS(word_, seen, mark);
            if (before == seen) return;
            seen = before;
        }
    }
    /// Only issues the atomic operation: number() is what waits for it.
    __device__ uint64 draw() const { return atomicAdd(word_, uint64{1}); }
    /// Number of the tile drawn, -1 where there is none. Every block that has a first tile draws until there
    /// is none: as often as there are tiles, all together.
    __device__ int number(uint64 drawn) const {
        const int count = static_cast<int>(drawn & ((uint64{1} << count_bits) - 1));
        if (count == tiles_ - 1) *static_cast<volatile uint64*>(word_) = 0;
        const int index = count + static_cast<int>(gridDim.x);
        return index < tiles_ ? index : -1;
    }

  private:
    static constexpr uint64 mark = uint64{0xffa57e3c7} << count_bits;

    uint64* word_;
    int tiles_;
};

/// Two words in turn, with their barriers.
class Numbers {
  public:
    __device__ explicit Numbers(uint32 shared) : shared_(shared) {}

    /// By one thread; `warps`: that take numbers.
    __device__ void init(int warps) const {
        for (int i = 0; i < words; ++i) {
            barrier_init(given(i), 1);
            barrier_init(taken(i), warps);
        }
    }
    /// By the thread that draws.
    __device__ void give(int number) {
        barrier_wait(taken(next_.stage), next_.parity ^ 1);
        store_word(next_.stage, number);
        barrier_arrive(given(next_.stage));
        next_.advance();
    }
    /// By a whole warp; the thread that draws keeps Numbers of its own for it. Who reads the word arrives:
    /// racecheck does not see that reads of other lanes are over (docs/compute-sanitizer.md).
    __device__ int take() {
        int number = 0;
        if (lane_index() == 0) {
            barrier_wait(given(next_.stage), next_.parity);
            number = load_word(next_.stage);
            barrier_arrive(taken(next_.stage));
        }
        next_.advance();
        return __shfl_sync(all_lanes, number, 0);
    }

  private:
    static constexpr int words = 2;

    __device__ uint32 given(int i) const { return shared_ + i * 8; }
    __device__ uint32 taken(int i) const { return shared_ + (words + i) * 8; }
    __device__ uint32 word(int i) const { return shared_ + 2 * words * 8 + i * 4; }
    __device__ void store_word(int i, int number) const {
        asm volatile("st.shared.s32 [%0], %1;" ::"r"(word(i)), "r"(number) : "memory");
    }
    __device__ int load_word(int i) const {
        int number;
        asm volatile("ld.shared.s32 %0, [%1];" : "=r"(number) : "r"(word(i)) : "memory");
        return number;
    }

    uint32 shared_;
    RingPosition<words> next_;
};

}  // namespace hone::expert_linear::drawn
