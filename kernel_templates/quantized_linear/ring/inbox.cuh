// Where the sums of a tile meet, in variant ring (kernel.cu): a block's two inboxes, which its tiles take in
// turn, each with a pair of barriers.
//
// Blocks of a cluster write to each other asynchronously: bytes end the phase of `full`, once the owner has
// announced them. A block alone stores as into any shared memory, and arrivals of its threads end the phase:
// when such blocks, launched without clusters, wrote to themselves asynchronously, some configs ended in
// illegal instructions on an H100; those of clusters never did.
#pragma once

#include "device/shared_tile.cuh"
#include "device/stream.cuh"
#include "quantized_linear/ring/block.cuh"

namespace hone::quantized_linear::ring {

/// The inbox of tile `number` of the block.
class Inbox {
  public:
    __device__ Inbox(Memory memory, int number)
        : sums_(memory.inbox(number % 2)),
          full_(memory.inbox_full(number % 2)),
          read_(memory.inbox_read(number % 2)),
          parity_(static_cast<uint32>(number / 2 & 1)) {}

    /// By one thread.
    __device__ void initialize() const {
        barrier_init(full_, has_cluster ? 1 : compute_warps * 32);
        barrier_init(read_, finishers * (has_cluster ? cluster_k : 32));
    }
    /// By one thread, before any block may send: announces the tile's bytes.
    __device__ void open(int rank) const {
        if constexpr (has_cluster)
            barrier_arrive_expecting(full_, geometry.owned(rank) * geometry.place_bytes());
    }

    /// Compute warps: until the sums before were read everywhere.
    __device__ void wait_free() const { wait(read_, parity_ ^ 1); }
    /// A lane's sums of fragment `result`, to the block that owns it.
    __device__ void send(int result, int product, int source, const float4& sums) const {
        const uint32 to = address(result / cluster_k, product, source);
        if constexpr (has_cluster)
            store_remote_4(remote_address(to, result % cluster_k), sums,
                           remote_address(full_, result % cluster_k));
        else
            store_shared(to, {__float_as_uint(sums.x), __float_as_uint(sums.y), __float_as_uint(sums.z),
                              __float_as_uint(sums.w)});
    }
    /// A warp that has sent all of its sums.
    __device__ void sent() const {
        if constexpr (!has_cluster) barrier_arrive(full_);
    }

    /// Finishing warps.
    __device__ void wait_full() const { wait(full_, parity_); }
    /// What one source sent of a place.
    __device__ float4 sums(int place, int product, int source) const {
        const uint4 word = load_shared_16(address(place, product, source));
        return {__uint_as_float(word.x), __uint_as_float(word.y), __uint_as_float(word.z),
                __uint_as_float(word.w)};
    }
    /// A warp that has read all of its places, where a tile follows in this inbox.
    __device__ void tell_read() const {
        if constexpr (has_cluster) {
            __syncwarp();
            const uint32 lane = threadIdx.x % 32;
            if (lane < cluster_k) barrier_arrive_remote(remote_address(read_, lane));
        } else {
            barrier_arrive(read_);
        }
    }

  private:
    /// Where this lane's sums of a source stand.
    __device__ uint32 address(int place, int product, int source) const {
        return sums_ + place * geometry.place_bytes() +
               ((product * geometry.sources() + source) * 32 + threadIdx.x % 32) * 16;
    }
    __device__ static void wait(uint32 barrier, uint32 parity) {
        if constexpr (has_cluster)
            barrier_wait_cluster(barrier, parity);
        else
            barrier_wait(barrier, parity);
    }

    uint32 sums_;
    uint32 full_;
    uint32 read_;
    uint32 parity_;
};

}  // namespace hone::quantized_linear::ring
