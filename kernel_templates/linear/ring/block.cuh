// Variant ring (kernel.cu): its constants, which tiles a block takes, and where things stand in its shared
// memory.
#pragma once

#include "device/mbarrier.cuh"
#include "linear/ring/geometry.cuh"
#include "linear/tensors.cuh"

namespace hone::linear::ring {

inline constexpr RingGeometry geometry{.products = products,
                                       .in = in,
                                       .out = out,
                                       .tokens = Tuned::tokens,
                                       .rows = Tuned::rows,
                                       .consumers = Tuned::consumers,
                                       .stage_columns = Tuned::stage_columns,
                                       .stages = Tuned::stages};
inline constexpr int stages = geometry.stages;
inline constexpr int consumers = geometry.consumers;
inline constexpr int tokens = geometry.tokens;
static_assert(stages % consumers == 0, "a stage is the same warpgroup's in every round");
static_assert(geometry.rows % 8 == 0, "panels begin at multiples of 1024 bytes");

/// What a block has to do: tiles with the grid's step.
struct Schedule {
    __device__ Schedule()
        : first(static_cast<int>(blockIdx.x)),
          step(static_cast<int>(gridDim.x)),
          count((geometry.tiles() - first + step - 1) / step) {}
    __device__ int tile(int number) const { return first + number * step; }

    int first;
    int step;
    int count;
};

/// Places in shared memory; `start` is a multiple of 1024.
struct Memory {
    unsigned char* start;
    uint32 base;

    __device__ uint32 stage(int index) const { return base + index * geometry.stage_bytes(); }
    /// Sums of a warpgroup, [tokens][pitch].
    __device__ float* partials(int buffer, int warpgroup) const {
        return reinterpret_cast<float*>(start + geometry.partials_at()) + buffer * geometry.buffer_words() +
               warpgroup * geometry.partial_words();
    }
    __device__ uint32 barrier(int index) const { return base + geometry.barriers_at() + 8 * index; }
    __device__ uint32 full(int stage) const { return barrier(stage); }
    __device__ uint32 empty(int stage) const { return barrier(stages + stage); }
    __device__ uint32 sums_full(int buffer) const { return barrier(2 * stages + buffer); }
    __device__ uint32 sums_read(int buffer) const { return barrier(2 * stages + 2 + buffer); }
};

/// Where the sums of a block's tile `number` meet, and the parity of that buffer's round.
struct Meeting {
    __device__ explicit Meeting(int number)
        : buffer(number % 2), parity(static_cast<uint32>(number / 2 & 1)) {}
    int buffer;
    uint32 parity;
};

}  // namespace hone::linear::ring
