// Variant ring_w8 (kernel.cu): its constants, which tiles a block takes, and where things stand in its shared
// memory.
#pragma once

#include "device/mbarrier.cuh"
#include "quantized_linear/quantize.cuh"
#include "quantized_linear/ring_w8/geometry.cuh"

namespace hone::quantized_linear::ring_w8 {

static_assert(!is_packed, "codes of 8 bits, row by row");

/// Codes of x are made by each block, of 16-bit numbers.
inline constexpr bool makes_codes = Tuned::x_place == 0;
static_assert(!makes_codes || (quantizes_x && !linear::has_norm), "x of 16 bits, as it is");

inline constexpr RingW8Geometry geometry{.products = products,
                                         .in = in,
                                         .out = out,
                                         .blocks_scaled = has_blocks,
                                         .tokens = Tuned::tokens,
                                         .rows = Tuned::rows,
                                         .consumers = Tuned::consumers,
                                         .stage_columns = Tuned::stage_columns,
                                         .stages = Tuned::stages,
                                         .x_streams = Tuned::x_place == 2};
inline constexpr bool x_streams = geometry.x_streams;
inline constexpr int stages = geometry.stages;
inline constexpr int consumers = geometry.consumers;
inline constexpr int tokens = geometry.tokens;
static_assert(stages % consumers == 0, "a stage is the same warpgroup's in every round");
static_assert(geometry.rows % 8 == 0, "panels begin at multiples of 1024 bytes");

/// A warpgroup's sum: of int8 codes an integer, so that those of all warpgroups are added exactly.
using Partial = Conditional<format == Format::fp8, float, int>::type;

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
    __device__ uint32 x() const { return base + geometry.x_at(); }
    /// Chunk `chunk` of a token.
    __device__ unsigned char* x_chunk(int token, int chunk) const {
        return start + geometry.x_at() + (chunk * tokens + token) * RingW8Geometry::chunk;
    }
    __device__ float* scales() const { return reinterpret_cast<float*>(start + geometry.scales_at()); }
    __device__ uint32* largest() const { return reinterpret_cast<uint32*>(start + geometry.largest_at()); }
    /// Sums of a warpgroup, [tokens][pitch].
    __device__ Partial* partials(int buffer, int warpgroup) const {
        return reinterpret_cast<Partial*>(start + geometry.partials_at()) + buffer * geometry.buffer_words() +
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

}  // namespace hone::quantized_linear::ring_w8
