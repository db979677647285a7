// Variant wgmma_tf32 of attention_prefill (kernel.cu): its tunables, the block's tile, and where
// everything stands in shared memory.
#pragma once

#include "attention_prefill/problem.cuh"
#include "attention_prefill/wgmma_tf32/geometry.cuh"
#include "device/mbarrier.cuh"

namespace hone::attention_prefill::tf32 {

inline constexpr Geometry geometry{.head_dim = head_dim,
                                   .consumers = static_cast<int>(Tuned::consumers),
                                   .tile_n = static_cast<int>(Tuned::tile_n),
                                   .stages = static_cast<int>(Tuned::stages)};

inline constexpr int consumers = geometry.consumers;
inline constexpr int tile_m = geometry.tile_m();
inline constexpr int tile_n = geometry.tile_n;
inline constexpr int stages = geometry.stages;
inline constexpr int depth = geometry.depth();
inline constexpr bool programmatic = Tuned::programmatic != 0;

static_assert(sizeof(Element) == 4, "other types have variant wgmma");
static_assert(tile_n % panel_columns == 0 && tile_n <= 256, "values are transposed in panels of 32 keys");
static_assert(head_dim % 4 == 0 && depth <= 256, "rows of 16-byte chunks, one instruction wide at most");
static_assert(geometry.shared_bytes() + reserved_bytes <= shared_bytes_per_sm, "shared memory");

using Ring = RingPosition<stages>;

/// tile_m queries of a head and the keys that at least one of them sees, [begin, end).
struct Tile {
    Sequence sequence;
    int head;
    int row;  ///< first query
    int begin;
    int end;

    __device__ int first_block() const { return begin / tile_n; }
    __device__ int end_block() const { return begin < end ? (end + tile_n - 1) / tile_n : first_block(); }
};

/// The tile of this block. Causal tiles differ in length, and the longest ones of all heads come first; else
/// the tiles of a head follow each other, so that its keys and values stay in level 2.
__device__ inline Tile tile_of_block(const Call& call) {
    const int slots = call.batch * heads;
    const int rows = gridDim.x / slots;
    const int slot = causal ? blockIdx.x % slots : blockIdx.x / rows;
    const int row = causal ? rows - 1 - blockIdx.x / slots : blockIdx.x % rows;
    Tile tile{.sequence = call.sequence(slot / heads), .head = slot % heads, .row = row * tile_m};
    tile.begin = tile.sequence.begin(tile.row);
    tile.end = tile.sequence.end(min(tile.row + tile_m, tile.sequence.q_len) - 1);
    return tile;
}

/// Addresses in shared memory, and the barriers.
struct Layout {
    uint32 base;

    __device__ uint32 query(int warpgroup) const { return base + warpgroup * geometry.query_bytes(); }
    __device__ uint32 key(int stage) const {
        return base + geometry.keys_at() + stage * 2 * geometry.key_bytes();
    }
    __device__ uint32 value(int stage) const {
        return base + geometry.values_at() + stage * 2 * geometry.value_bytes();
    }
    __device__ uint32 full_key(int stage) const { return base + geometry.barriers_at() + stage * 8; }
    __device__ uint32 full_value(int stage) const { return full_key(stages + stage); }
    /// The empty barrier that belongs to a full one.
    __device__ static uint32 empty(uint32 full) { return full + 2 * stages * 8; }
};

}  // namespace hone::attention_prefill::tf32
