// A norm that two products share (../shared_norm.cuh), in the tensor-core product. Behind a norm three warps
// of the producer's warpgroup work out the factors of x's rows while the others multiply, and sums are
// multiplied with them before they go anywhere. In front of one a thread asks for the residual and the norm's
// weight of its results before it multiplies, and has whole slots of 16 columns together with its neighbours.
#pragma once

#include "device/mbarrier.cuh"
#include "device/packet.cuh"
#include "device/sync.cuh"
#include "linear/results.cuh"
#include "linear/wgmma/tile.cuh"

namespace hone::linear::gemm {

/// What results are written with where a norm is shared.
struct SharingResults : Results {
    // Behind a norm.
    const float* norm_squares;
    float epsilon;
    // In front of one.
    const Element* norm_weight;
    Element* scaled;
    float* squares;

    __device__ void store_scaled_pair(Pair at, const Packet<Element, 2>& weight, float first,
                                      float second) const {
        if (at.token >= tokens || at.column >= out) return;
        const uint32 pair =
            pack_pair(Element{}, first * to_float(weight.elements[0]), second * to_float(weight.elements[1]));
        *reinterpret_cast<uint32*>(scaled + static_cast<int64>(at.token) * out + at.column) = pair;
    }
};

template <bool shares>
struct ResultsOf {
    using type = Results;
};
template <>
struct ResultsOf<true> {
    using type = SharingResults;
};
/// What a launch's results are written with.
using GivenResults = ResultsOf<shares_norm()>::type;

/// Behind a norm: what rows of x are multiplied with, and a barrier with an arrival of each warp that works
/// them out. It is memory of its own: a constant more of the geometry would be one of every image.
struct Factors {
    float of_row[tile_m];
    uint64 barrier;

    static constexpr int warps() { return 3; }
    __device__ static Factors& here() {
        __shared__ Factors factors;
        return factors;
    }
};
__device__ inline void open_factors() {
    barrier_init(shared_address(&Factors::here().barrier), Factors::warps());
}

/// By warp `warp` of those.
template <class AnyResults>
__device__ inline void leave_factors(const AnyResults& results, int warp) {
    Factors& factors = Factors::here();
    find_factors<Factors::warps(), tile_m>(results, warp,
                                           [&](int row, float factor) { factors.of_row[row] = factor; });
    if (threadIdx.x % 32 == 0) barrier_arrive(shared_address(&factors.barrier));
}

/// Multiplies a warpgroup's sums of a tile, whose first row in the tile is `first_row`.
__device__ inline void multiply_by_factors(int first_row, Sums& sums) {
    const Factors& factors = Factors::here();
    barrier_wait(shared_address(&factors.barrier), 0);
    const float* const of_lane =
        factors.of_row + first_row + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
    for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float factor = of_lane[b * block_rows + half * 8];
#pragma unroll
            for (int i = 0; i < tile_n / 2; i += 4) {
                sums[b][i + 2 * half] *= factor;
                sums[b][i + 2 * half + 1] *= factor;
            }
        }
    }
}

/// What a fragment's results need besides their sums, in front of a norm: of two columns, of both halves of
/// its rows.
struct Asked {
    Packet<Element, 2> residual[2];
    Packet<Element, 2> norm_weight;
};

}  // namespace hone::linear::gemm
