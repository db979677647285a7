// Products of experts by warpgroups (sm_90a). START HERE; tile (sizes), producer and writer hold a part each,
// the .cu that includes this what weights are and how they are multiplied. The ring, the products and the
// geometry are those of linear (linear/wgmma/product.cuh says how they work).
//
// Data's way: weights and rows of x, global -> ring of stages in shared memory (tensor copies; gathered rows
// by copies of 16 bytes) -> tensor cores -> registers -> shared memory (stmatrix) -> out, or the workspace
// where results are combined. Warpgroup 0 is the producer, warpgroups 1 to `consumers` multiply and share a
// tile. Blocks are persistent: each walks over the tiles of expert_tiles.cuh with the grid's step (walk.cuh);
// every warp finds them for itself in the call's starts, and all find the same. Where that is asked for,
// tiles of a last round that few blocks would take are split over all blocks, as linear does
// (linear/wgmma/schedule.cuh).
//
// Left is x and right the weight; `swapped` exchanges them for few rows an expert. A tile reads whole boxes:
// rows of the next expert behind its own rows. The last rows' tile, and the last columns', begin early so
// that no box leaves its matrix (tile.cuh). Each result is made of its own row and column alone, and what is
// not the tile's is not written.
//
// Where an expert's last rows are few, their tile may be a narrow one (tile.cuh), whose products leave out
// the rest.
//
// Barriers, one pair a stage:
//   full[s]   arrivals of the thread that announces copies, with their bytes, and of the four gathering
//             warps. Consumers wait for it.
//   empty[s]  an arrival from each consumer warp. The producer waits for it before it fills s again.
// and those of the writer, and of parts of sums. Programmatic launch: nothing is read before the kernel
// before has ended, since starts say which weights are needed.
#pragma once

#include "expert_linear/wgmma/producer.cuh"
#include "expert_linear/wgmma/writer.cuh"

namespace hone::expert_linear::wgmma {

template <class Weights>
__device__ inline void prepare(uint32 shared, const XMaps& x, const Weights& weights) {
    for (int stage = 0; stage < gemm::stages; ++stage) {
        barrier_init(gemm::full_barrier(shared, stage), full_arrivals);
        barrier_init(gemm::empty_barrier(shared, stage), gemm::consumers * 4);
    }
    fence_barrier_init();
    if constexpr (!Sources::x_by_token) prefetch_map(x.whole);
    if constexpr (Sources::narrow_rows != 0) prefetch_map(x.narrow);
    weights.prefetch();
}

template <class Weights>
__device__ inline void produce(uint32 shared, const XMaps& x, const Weights& weights,
                               const Tensors& tensors) {
    const Boxes boxes(shared, x, tensors.places());
    if constexpr (Sources::x_by_token) {
        GatheringProducer<Weights>(shared, boxes, weights, tensors).run();
    } else if (threadIdx.x < 32) {
        produce_sorted(shared, boxes, weights, tensors);
    }
}

template <class Products>
__device__ inline void consume(uint32 shared, const Products& multiplier, const Tensors& tensors,
                               int warpgroup) {
    Walk walk(tensors);
    const Writer writer(shared, tensors, warpgroup);
    gemm::Ring ring;
    while (walk.next()) {
        gemm::Sums sums;
        multiplier.multiply(shared, warpgroup, walk.tile(), walk.steps(), ring, sums);
        if constexpr (Sources::splits_tail) {
            const gemm::Partials partials(partials_of(tensors), warpgroup, 1 + warpgroup);
            if (walk.steps().is_rest()) {
                partials.leave(sums, walk.steps().slot);
                continue;
            }
            partials.collect(sums, walk.steps().slot, walk.steps().others);
        }
        writer.store(sums, walk.tile());
    }
}

/// Where the ring of the block begins.
__device__ inline uint32 ring_at() {
    extern __shared__ uint8 memory[];
    constexpr uint32 below = gemm::Geometry::alignment - 1;
    return (shared_address(memory) + below) & ~below;
}

/// Behind it barriers are ready, those that thread 0 initialized before as well, and what was launched before
/// has ended.
template <class Weights>
__device__ inline void begin(uint32 shared, const XMaps& x, const Weights& weights) {
    if (threadIdx.x == 0) prepare(shared, x, weights);
    __syncthreads();
    if constexpr (gemm::programmatic) {
        release_successor();
        wait_for_predecessor();
        fence_async_proxy_global();  // x may be the kernel's before
    }
}

/// `weights` are as MatrixWeights; `multiplier.multiply(shared, warpgroup, tile, steps, ring, sums)` makes
/// the sums of some steps of a tile; `Registers` says whether roles exchange registers (`moves`), and what
/// each then has.
template <class Registers, class Weights, class Products>
__device__ inline void run(const Tensors& tensors, const XMaps& x, const Weights& weights,
                           const Products& multiplier) {
    const uint32 shared = ring_at();
    const int warpgroup = __shfl_sync(all_lanes, static_cast<int>(threadIdx.x) / 128, 0);
    begin(shared, x, weights);
    if (warpgroup == 0) {
        if constexpr (Registers::moves) release_registers<Registers::producer>();
        produce(shared, x, weights, tensors);
    } else {
        if constexpr (Registers::moves) claim_registers<Registers::consumer>();
        consume(shared, multiplier, tensors, warpgroup - 1);
    }
}

}  // namespace hone::expert_linear::wgmma
