// Variant wgmma (kernel.cu): where things are in shared memory, and how a tile gets from the producer to a
// consumer.
#pragma once

#include "attention_prefill/wgmma/schedule.cuh"
#include "device/mbarrier.cuh"
#include "device/shared_tile.cuh"
#include "device/tma_4d.cuh"

namespace hone::attention_prefill::warpgroup {

struct Maps {
    const TensorMap& query;
    const TensorMap& key;
    const TensorMap& value;
};

using Ring = RingPosition<stages>;
using QueryRing = RingPosition<query_stages>;

/// Addresses in shared memory, and the barriers: full ones first, then empty ones.
struct Layout {
    uint32 base;

    __device__ uint32 query(int warpgroup, int stage) const {
        return base + (warpgroup * query_stages + stage) * geometry.query_bytes();
    }
    __device__ uint32 key(int stage) const {
        return base + geometry.keys_at() + stage * geometry.key_stage_bytes();
    }
    __device__ uint32 value(int stage) const {
        return base + geometry.values_at() + stage * geometry.stage_bytes();
    }
    __device__ uint32 full_query(int warpgroup, int stage) const {
        return barrier(warpgroup * query_stages + stage);
    }
    __device__ uint32 full_key(int stage) const { return barrier(consumers * query_stages + stage); }
    __device__ uint32 full_value(int stage) const { return full_key(stages + stage); }
    /// The empty barrier that belongs to a full one.
    __device__ static uint32 empty(uint32 full) { return full + geometry.barriers() / 2 * 8; }

    /// The tile whose queries the stage holds, written before they arrive.
    __device__ uint32 tile(int warpgroup, int stage) const {
        return base + geometry.tiles_at() + (warpgroup * query_stages + stage) * Geometry::tile_bytes;
    }

    /// Where one of many producers leaves the number that it has drawn for all.
    __device__ uint32 drawn() const { return base + geometry.drawn_at(); }
    /// The place of the next tile of the thread's warp.
    __device__ uint32 next_tile() const {
        return base + geometry.next_tiles_at() + threadIdx.x / 32 * Geometry::tile_bytes;
    }

    __device__ uint32 barrier(int number) const { return base + geometry.barriers_at() + number * 8; }
};

/// What fills stages of keys and values: from where, to where, and which are next.
struct Feed {
    const Layout& layout;
    const Maps& maps;
    const Call& call;
    Ring& keys;
    Ring& values;
};

/// A tile on its way from the producer to a consumer; of the sequence only what the call does not say.
__device__ inline void store_tile(uint32 address, const Tile& tile) {
    store_shared(address, uint4{static_cast<uint32>(tile.slot), static_cast<uint32>(tile.row),
                                static_cast<uint32>(tile.first), static_cast<uint32>(tile.last)});
    if constexpr (lengths == Lengths::none) return;
    const Sequence& s = tile.sequence;
    store_shared(address + 16, uint4{static_cast<uint32>(s.q_len), static_cast<uint32>(s.kv_len),
                                     static_cast<uint32>(s.q_start), static_cast<uint32>(s.kv_start)});
}
/// By every thread that asks.
__device__ inline Tile load_uniform_tile(uint32 address, const Call& call) {
    const uint4 place = load_shared_16(address);
    Tile tile{static_cast<int>(place.x),
              static_cast<int>(place.y),
              static_cast<int>(place.z),
              static_cast<int>(place.w),
              {}};
    if constexpr (lengths == Lengths::none) {
        tile.sequence = call.sequence(tile.slot / heads);
    } else {
        const uint4 words = load_shared_16(address + 16);
        tile.sequence = {tile.slot / heads, static_cast<int>(words.x), static_cast<int>(words.y),
                         static_cast<int>(words.z), static_cast<int>(words.w)};
    }
    return tile;
}
/// By the warp's first lane alone, the one that will say that the tile was read; no branch, since products
/// are under way. The others' words are zeros.
__device__ inline uint4 load_by_first_lane(uint32 address) {
    uint4 word{0, 0, 0, 0};
    asm volatile(
        "{\n.reg .pred leads;\nsetp.eq.u32 leads, %5, 0;\n"
        "@leads ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
        : "+r"(word.x), "+r"(word.y), "+r"(word.z), "+r"(word.w)
        : "r"(address), "r"(threadIdx.x % 32)
        : "memory");
    return word;
}
/// In registers that are the same in the whole warp.
__device__ inline Tile load_tile(uint32 address, const Call& call) {
    const auto uniform = [](uint32 word) { return static_cast<int>(__shfl_sync(0xffffffffu, word, 0)); };
    const uint4 place = load_by_first_lane(address);
    Tile tile{uniform(place.x), uniform(place.y), uniform(place.z), uniform(place.w), {}};
    if constexpr (lengths == Lengths::none) {
        tile.sequence = call.sequence(tile.slot / heads);
    } else {
        const uint4 words = load_by_first_lane(address + 16);
        tile.sequence = {tile.slot / heads, uniform(words.x), uniform(words.y), uniform(words.z),
                         uniform(words.w)};
    }
    return tile;
}

}  // namespace hone::attention_prefill::warpgroup
