// Where the sums of a tile meet, in variant ring (kernel.cu): a block's two inboxes, which its tiles take in
// turn, each with a pair of barriers.
//
// Blocks of a cluster write to each other asynchronously: bytes end the phase of `full`, once the owner has
// announced them. A block alone stores as into any shared memory, and arrivals of its threads end the phase.
#pragma once

#include "linear/ring/block.cuh"

namespace hone::linear::ring {

/// A number to an address of the cluster's shared memory; `barrier`, in the same block, counts the bytes.
__device__ inline void store_remote_1(uint32 address, float value, uint32 barrier) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(address),
        "f"(value), "r"(barrier)
        : "memory");
}

/// The inbox of tile `number` of the block.
class Inbox {
  public:
    __device__ Inbox(Memory memory, int number)
        : memory_(memory), index_(number % 2), parity_(static_cast<uint32>(number / 2 & 1)) {}

    /// By one thread.
    __device__ void initialize() const {
        barrier_init(full(), has_cluster ? 1 : geometry.consumer_threads());
        barrier_init(read(), RingGeometry::finishers * (has_cluster ? cluster_k : 32));
    }
    /// By one thread, before any block may send: announces the tile's bytes.
    __device__ void open() const {
        if constexpr (has_cluster) barrier_arrive_expecting(full(), geometry.inbox_bytes());
    }

    /// Threads that multiply: until the sums before were read everywhere.
    __device__ void wait_free() const { wait(read(), parity_ ^ 1); }
    /// The sum of a panel's row and a token, to the block that owns it; of source `source`.
    __device__ void send(int source, int row, int token, float sum) const {
        if constexpr (has_cluster) {
            const int place = row % geometry.rows;
            const uint32 owner = static_cast<uint32>(place / geometry.owned_rows());
            const int own = row / geometry.rows * geometry.owned_rows() + place % geometry.owned_rows();
            if (row < geometry.panel_rows())
                store_remote_1(remote_address(memory_.sums_address(index_, source, token, own), owner), sum,
                               remote_address(full(), owner));
        } else {
            memory_.sums(index_, source, token)[row] = sum;
        }
    }
    /// A thread that has sent all of its sums.
    __device__ void sent() const {
        if constexpr (!has_cluster) barrier_arrive(full());
    }

    /// Finishing warps.
    __device__ void wait_full() const { wait(full(), parity_); }
    /// The sum of all sources, in their order, of a row that is the block's own.
    __device__ float sum(int row, int token) const {
        float sum = 0.0f;
#pragma unroll
        for (int source = 0; source < geometry.sources(); ++source)
            sum += memory_.sums(index_, source, token)[row];
        return sum;
    }
    /// A warp that has read all that it wants.
    __device__ void tell_read() const {
        if constexpr (has_cluster) {
            __syncwarp();
            const uint32 lane = threadIdx.x % 32;
            if (lane < cluster_k) barrier_arrive_remote(remote_address(read(), lane));
        } else {
            barrier_arrive(read());
        }
    }

  private:
    __device__ uint32 full() const { return memory_.sums_full(index_); }
    __device__ uint32 read() const { return memory_.sums_read(index_); }
    __device__ static void wait(uint32 barrier, uint32 parity) {
        if constexpr (has_cluster)
            barrier_wait_cluster(barrier, parity);
        else
            barrier_wait(barrier, parity);
    }

    Memory memory_;
    int index_;
    uint32 parity_;
};

}  // namespace hone::linear::ring
