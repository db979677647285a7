// Which tiles a block of products of experts by warpgroups (roles.cuh) works on, in which order: by each warp
// for itself, without a barrier.
#pragma once

#include "expert_linear/room.cuh"
#include "expert_linear/wgmma/tile.cuh"

namespace hone::expert_linear::wgmma {

/// Where parts of sums pass from block to block (linear/wgmma/partials.cuh).
__device__ inline float* partials_of(const Tensors& tensors) {
    const int64 at = partials_at(tensors.places(), combines ? columns * sizeof(Element) : 0,
                                 Sources::copies_x ? in * sizeof(Element) : 0);
    return reinterpret_cast<float*>(reinterpret_cast<uint8*>(tensors.workspace) + at);
}

/// Block b takes the whole tiles b, b + blocks, ... Tiles of the last round, where they are split, are dealt
/// as linear's schedule deals them: from the back, so that blocks wait for blocks of lower numbers alone.
class Walk {
  public:
    /// By a whole warp, as next().
    __device__ explicit Walk(const Tensors& tensors) : tensors_(tensors), tiles_(tensors), next_(blockIdx.x) {
        if constexpr (!Sources::splits_tail) return;
        const int64 all = tiles_.count();
        rest_ = static_cast<int>(all % gridDim.x);
        parts_ = gemm::tail_parts(rest_, static_cast<int>(gridDim.x), gemm::k_tiles);
        whole_ = parts_ > 1 ? all - rest_ : all;
    }

    /// Goes on to the block's next tile, or part of one; false: there is none.
    __device__ bool next() {
        steps_ = {.first_k = 0, .k_count = gemm::k_tiles};
        const int64 wanted = next_;
        next_ += gridDim.x;
        if constexpr (Sources::narrow_rows != 0) return find_in_order(wanted);
        if (!Sources::splits_tail || wanted < whole_) return tiles_.find(wanted, tile_);
        return parts_ > 1 && next_part();
    }
    __device__ const Tile& tile() const { return tile_; }
    /// Those of its sums' steps that are the block's, and where parts of sums go.
    __device__ const gemm::Work& steps() const { return steps_; }

  private:
    /// Narrow tiles behind all others, so that blocks end together: whose turn they are have fewer of these.
    __device__ bool find_in_order(int64 wanted) {
        const int64 whole = tiles_.count();
        return wanted < whole ? tiles_.find(wanted, tile_)
                              : NarrowTiles(tensors_).find(wanted - whole, tile_);
    }
    __device__ bool next_part() {
        const int block = static_cast<int>(blockIdx.x);
        if (block >= rest_ * parts_ || took_part_) return false;
        took_part_ = true;
        const int tile = block % rest_;
        const int part = parts_ - 1 - block / rest_;
        steps_.first_k = gemm::k_tiles * part / parts_;
        steps_.k_count = gemm::k_tiles * (part + 1) / parts_ - steps_.first_k;
        steps_.slot = tile * (parts_ - 1) + (part > 0 ? part - 1 : 0);
        steps_.others = part > 0 ? 0 : parts_ - 1;
        return tiles_.find(whole_ + tile, tile_);
    }

    const Tensors& tensors_;
    Tiles tiles_;
    Tile tile_;
    gemm::Work steps_;
    int64 next_;
    int64 whole_ = 0;  ///< tiles that are not split
    int rest_ = 0;     ///< tiles that are
    int parts_ = 1;
    bool took_part_ = false;
};

}  // namespace hone::expert_linear::wgmma
