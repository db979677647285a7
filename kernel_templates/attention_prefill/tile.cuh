// Which queries a block of the variants mma and plain works on: tile_m of one head of one sequence.
//
// blockIdx.y is a section of heads, whose keys and values together stay in level 2; x counts rows of tiles
// and, fastest, the heads of the section, so that heads of a group, which share keys, follow each other.
// Causal tiles differ in length: the longest, last rows, come first.
#pragma once

#include "attention_prefill/problem.cuh"

namespace hone::attention_prefill {

struct Tile {
    Sequence sequence;
    int head;
    int row;  ///< the first query
    bool exists;

    /// `tile_m`: queries of a tile. `section`: heads of a section.
    __device__ Tile(const Call& call, int tile_m, int section) {
        const int slot = blockIdx.y * section + blockIdx.x % section;
        const int rank = blockIdx.x / section;
        head = slot % heads;
        row = (causal ? static_cast<int>(gridDim.x) / section - 1 - rank : rank) * tile_m;
        exists = slot < call.batch * heads;
        if (!exists) return;
        sequence = call.sequence(slot / heads);
        exists = row < sequence.q_len;
    }

    /// Some query of the tile sees a key of [begin, end); empty where none sees any.
    __device__ int begin() const { return sequence.begin(row); }
    __device__ int end(int tile_m) const { return sequence.end(row + tile_m - 1); }
};

}  // namespace hone::attention_prefill
