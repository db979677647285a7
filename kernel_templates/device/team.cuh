// The blocks that share a row: one by itself, or a cluster (mapa and barrier.cluster, sm_90), whose blocks
// write to each other's shared memory and read it.
//
// Protocol: start() says that this block runs; await_start() returns once all do, before the first post().
// sync() is a barrier over all threads of all blocks, after which everything posted and everything written to
// shared memory before it may be read. A block may end after the last sync() that follows its peers' last
// read().
#pragma once

#include "device/sync.cuh"

namespace hone {

struct Alone {
    static constexpr int blocks = 1;

    __device__ static int rank() { return 0; }
    __device__ static int64 row() { return blockIdx.x; }
    __device__ static void start() {}
    __device__ static void await_start() {}
    __device__ static void sync() { __syncthreads(); }

    /// Puts a value into the slot of every block, in lanes of one warp; `lane` is the calling one.
    template <class T>
    __device__ static void post(T* slot, int lane, const T& value) {
        if (lane == 0) *slot = value;
    }
    /// What stands in this variable of another block.
    __device__ static uint32 read(const uint32* variable, int) { return *variable; }
};

#if __CUDA_ARCH__ >= 900
template <int blocks_>
struct Cluster {
    static constexpr int blocks = blocks_;
    static_assert(blocks <= 32, "a lane posts to each block");

    __device__ static int rank() { return static_cast<int>(cluster_rank()); }
    __device__ static int64 row() { return blockIdx.x / blocks; }
    __device__ static void start() { cluster_arrive(); }
    __device__ static void await_start() { cluster_wait(); }
    __device__ static void sync() {
        cluster_arrive();
        cluster_wait();
    }

    template <class T>
    __device__ static void post(T* slot, int lane, const T& value) {
        if (lane < blocks) *at(slot, lane) = value;
    }
    __device__ static uint32 read(const uint32* variable, int from) { return *at(variable, from); }

  private:
    /// The same variable of another block.
    template <class T>
    __device__ static T* at(T* variable, int block) {
        T* remote;
        asm volatile("mapa.u64 %0, %1, %2;" : "=l"(remote) : "l"(variable), "r"(block));
        return remote;
    }
};
#endif

/// The team of so many blocks; names no cluster where there are none.
template <int blocks>
struct TeamOf {
#if __CUDA_ARCH__ >= 900
    using type = Cluster<blocks>;
#endif
};
template <>
struct TeamOf<1> {
    using type = Alone;
};

}  // namespace hone
