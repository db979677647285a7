// Linear layers of experts, variant wgmma (sm_90a). START HERE; tile (sizes), producer and writer hold a part
// each. The ring, the products and the geometry are those of linear (linear/wgmma/product.cuh says how they
// work).
//
// Data's way: weights and rows of x, global -> ring of stages in shared memory (tensor copies; gathered rows
// by copies of 16 bytes) -> tensor cores -> registers -> shared memory (stmatrix) -> out, or the workspace
// where results are combined. Warpgroup 0 is the producer, warpgroups 1 to `consumers` multiply and share a
// tile. Blocks are persistent: each walks over the tiles of expert_tiles.cuh with the grid's step; every warp
// finds them for itself in the call's starts, and all find the same.
//
// Left is x and right the weight; `swapped` exchanges them for few rows an expert. A tile reads whole boxes:
// rows of the next expert behind its own rows, weights of the next expert behind its own columns. Each result
// is made of its own row and column alone, and what is not the tile's is not written.
//
// Barriers, one pair a stage:
//   full[s]   arrivals of the thread that announces copies, with their bytes, and of the four gathering
//   warps. Consumers
//             wait for it.
//   empty[s]  an arrival from each consumer warp. The producer waits for it before it fills s again.
// and those of the writer. Programmatic launch: nothing is read before the kernel before has ended, since
// starts say which weights are needed.
#include "expert_linear/wgmma/producer.cuh"
#include "expert_linear/wgmma/writer.cuh"

namespace hone::expert_linear::wgmma {

/// Registers of a producer's and a consumer's thread; together the file's 64 Ki, in steps of 8.
inline constexpr bool moves_registers = geometry.blocks_per_sm == 1 && gemm::consumers == 2;
inline constexpr int producer_registers = 56;
inline constexpr int consumer_registers = 224;

__device__ inline void prepare(uint32 shared, const Maps& maps) {
    for (int stage = 0; stage < gemm::stages; ++stage) {
        barrier_init(gemm::full_barrier(shared, stage), full_arrivals);
        barrier_init(gemm::empty_barrier(shared, stage), gemm::consumers * 4);
    }
    fence_barrier_init();
    if constexpr (!gathers) prefetch_map(maps.x);
    prefetch_map(maps.weight);
    if constexpr (gated) prefetch_map(maps.up);
}

__device__ inline void produce(uint32 shared, const Maps& maps, const Tensors& tensors) {
    const Tiles tiles(tensors);
    if constexpr (gathers) {
        GatheringProducer(shared, maps, tensors).run(tiles);
    } else if (threadIdx.x < 32) {
        produce_sorted(shared, maps, tiles);
    }
}

__device__ inline void consume(uint32 shared, const Tensors& tensors, int warpgroup) {
    const Tiles tiles(tensors);
    const Writer writer(shared, tensors, warpgroup);
    const gemm::ElementProduct product;
    const gemm::Work whole{.first_k = 0, .k_count = gemm::k_tiles};
    gemm::Ring ring;
    Tile tile;
    for (int64 work = blockIdx.x; tiles.find(work, tile); work += gridDim.x) {
        gemm::Sums sums;
        product.multiply(shared, warpgroup, whole, ring, sums, [] {});
        writer.store(sums, tile);
    }
}

__device__ inline void run(const Tensors& tensors, const Maps& maps) {
    extern __shared__ uint8 memory[];
    constexpr uint32 below = gemm::Geometry::alignment - 1;
    const uint32 shared = (shared_address(memory) + below) & ~below;
    const int warpgroup = __shfl_sync(all_lanes, static_cast<int>(threadIdx.x) / 128, 0);
    if (threadIdx.x == 0) prepare(shared, maps);
    __syncthreads();
    if constexpr (gemm::programmatic) {
        release_successor();
        wait_for_predecessor();
        fence_async_proxy_global();  // x may be the kernel's before
    }
    if (warpgroup == 0) {
        if constexpr (moves_registers) release_registers<producer_registers>();
        produce(shared, maps, tensors);
    } else {
        if constexpr (moves_registers) claim_registers<consumer_registers>();
        consume(shared, tensors, warpgroup - 1);
    }
}

}  // namespace hone::expert_linear::wgmma

extern "C" __global__ void __launch_bounds__(hone::linear::gemm::threads, Tuned::blocks_per_sm)
    expert_linear_wgmma(HONE_PARAMETERS(expert_linear_wgmma)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(expert_linear_wgmma)};
    hone::expert_linear::wgmma::run(tensors, {x_map, weight_map, up_map});
}

namespace hone::expert_linear::combine {
inline constexpr int vector = 8;
}

#include "expert_linear/combine.cuh"
