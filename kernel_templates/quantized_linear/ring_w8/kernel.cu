// Quantized linear, variant ring_w8 (sm_90a), for few tokens: codes of 8 bits, row by row, pass through a
// ring of stages that takes nearly all of a multiprocessor's shared memory, and the tensor cores read them
// there. No warp moves a byte of them, so that nothing but memory decides. Tiles have as many rows as give
// all multiprocessors even shares.
//
// Data's way: weights global -> ring by tensor copies (a tile's rows x 128 columns, 128-byte swizzle), the
// first before the wait for the kernel that writes x. x global -> shared, once a block, in chunks of 16 codes
// that need no room for tokens that are none (geometry.cuh); its codes are made there of 16-bit numbers
// (x.cuh), or copied; or its codes pass through the ring, by tensor copies. Both -> wgmma, weights left,
// tokens on the right. Sums of int8 are exact; those of fp8 are added up in float32 registers stage by stage,
// or with blocks panel by panel, scaled. Sums registers -> one of two buffers in shared memory -> added up,
// scaled, activated by the finishing warps -> global.
//
// Warps: `consumers` warpgroups multiply, taking the stages in turns; of the last warpgroup an elected lane
// of the first warp copies, three warps finish. Barriers:
//   full[stage]     bytes of the copies; empty[stage]: one arrival of each warp of the warpgroup whose stage
//                   it is: the same in every round, since stages are a multiple of warpgroups
//   sums_full[2]    one arrival of each thread that multiplies; tile n of a block is in buffer n % 2
//   sums_read[2]    one arrival of each thread that finishes
// and one among the threads that multiply, when x is there.

namespace hone::quantized_linear::quantize {
inline constexpr int vector = 8;
}

#include "device/elect.cuh"
#include "quantized_linear/ring_w8/consumer.cuh"
#include "quantized_linear/ring_w8/finisher.cuh"
#include "quantized_linear/ring_w8/producer.cuh"
#include "quantized_linear/ring_w8/x.cuh"

namespace hone::quantized_linear::ring_w8 {

__device__ inline void initialize(Memory memory) {
    for (int stage = 0; stage < stages; ++stage) {
        barrier_init(memory.full(stage), 1);
        barrier_init(memory.empty(stage), 4);
    }
    for (int buffer = 0; buffer < 2; ++buffer) {
        barrier_init(memory.sums_full(buffer), geometry.consumer_threads());
        barrier_init(memory.sums_read(buffer), Finisher::threads);
    }
    fence_barrier_init();
    for (int token = 0; token < tokens; ++token) memory.largest()[token] = 0;
}

__device__ inline void run(const Tensors& tensors, const Maps& maps, Memory memory) {
    const Schedule schedule;
    constexpr int producer = 4 * consumers;
    const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
    if (threadIdx.x == 0) initialize(memory);
    __syncthreads();
    release_successor();
    if (warp < producer) {
        wait_for_predecessor();
        stage_x(tensors, memory);
        Consumer(tensors, memory, schedule).run();
    } else if (warp == producer) {
        if (elect()) Producer(maps, memory, schedule).run();
    } else {
        wait_for_predecessor();
        Finisher(tensors, memory, schedule).run();
    }
}

}  // namespace hone::quantized_linear::ring_w8

extern "C" __global__ void __launch_bounds__(hone::quantized_linear::ring_w8::geometry.threads(), 1)
    quantized_linear_ring_w8(HONE_PARAMETERS(quantized_linear_ring_w8)) {
    extern __shared__ unsigned char memory[];
    const unsigned int skipped = -hone::shared_address(memory) & 1023u;
    const hone::quantized_linear::Tensors tensors{HONE_ARGUMENTS(quantized_linear_ring_w8)};
    hone::quantized_linear::ring_w8::run(tensors, {weight_map, up_map, x_map},
                                         {memory + skipped, hone::shared_address(memory) + skipped});
}
