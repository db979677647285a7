// Geometry of variant mma (kernel.cu): what follows from its tunables and the head's size. Plain C++ that
// both the host's plan (plan.cpp) and the kernel include, so that they cannot disagree.
#pragma once

namespace hone::attention_prefill::warp_mma {

struct Geometry {
    int head_dim = 0;
    int warps = 4;
    int warp_rows = 16;  ///< queries of a warp
    int tile_n = 64;     ///< keys, or values, of a stage
    int stages = 2;
    int blocks_per_sm = 1;  ///< that its registers leave room for
    bool query_in_registers = false;

    constexpr int threads() const { return 32 * warps; }
    constexpr int tile_m() const { return warps * warp_rows; }
    constexpr int row_blocks() const { return warp_rows / 16; }
    constexpr int key_blocks() const { return tile_n / 8; }

    /// Columns that are multiplied: the rest of the last 16 are zeros.
    constexpr int padded_dim() const { return (head_dim + 15) / 16 * 16; }
    constexpr int chunks() const { return head_dim / 8; }
    constexpr int dim_steps() const { return padded_dim() / 16; }

    /// Bytes of a row in shared memory: an odd number of 16-byte chunks, so that a chunk of eight rows in
    /// turn touches every bank once.
    constexpr int pitch() const { return padded_dim() * 2 + 16; }
    constexpr int query_bytes() const { return tile_m() * pitch(); }
    constexpr int stage_bytes() const { return tile_n * pitch(); }
    /// Queries that move to registers leave their place to the ring.
    constexpr int ring_at() const { return query_in_registers ? 0 : query_bytes(); }
    constexpr int shared_bytes() const {
        const int ring = ring_at() + stages * stage_bytes();
        return ring > query_bytes() ? ring : query_bytes();
    }

    // Copies: eight threads a row, each every eighth chunk.
    constexpr int rows_a_round() const { return threads() / 8; }
    constexpr int rounds() const { return tile_n / rows_a_round(); }
    constexpr int chunk_rounds() const { return (chunks() + 7) / 8; }

    /// Registers that a thread may take.
    constexpr int register_budget() const {
        const int share = 65536 / (threads() * blocks_per_sm) / 8 * 8;
        return share < 255 ? share : 255;
    }
    /// Registers that a thread cannot do without, and those of a stage's chunks on their way: without
    /// asynchronous copies they are asked for a stage ahead where there is room.
    constexpr int registers() const {
        const int sums = row_blocks() * chunks() * 4;
        const int scores = row_blocks() * key_blocks() * 4;
        const int queries = query_in_registers ? row_blocks() * dim_steps() * 4 + 24 : row_blocks() * 8;
        const int rest = 38 + row_blocks() * 4 + (tile_n > 64 ? (tile_n - 64) / 4 : 0);
        return sums + scores + queries + rest;
    }
    constexpr int copy_registers() const { return rounds() * chunk_rounds() * 4; }
    constexpr bool loads_ahead() const {
        return registers() + 2 * copy_registers() <= register_budget() - 32;
    }

    static constexpr int alignment = 128;
};

}  // namespace hone::attention_prefill::warp_mma
