// The order of a block's pairs by expert. Shared memory holds a set for each expert, one bit for each pair: a
// pair's place among its expert's is the number of bits before its own, and no order of atomic operations
// shows in it.
//
// Barriers: one behind clearing, one behind the bits (and the pairs' experts), one behind counts.
#pragma once

#include "expert_routing/choose.cuh"
#include "expert_routing/members.cuh"

namespace hone::expert_routing {

inline constexpr int threads = static_cast<int>(Tuned::threads);
inline constexpr int warps = threads / 32;
/// Pairs that a block has room for, and tokens whose pairs these are.
inline constexpr int room = static_cast<int>(Tuned::pairs);
inline constexpr int block_tokens = room / top_k;
inline constexpr int words = member_words(room);
inline constexpr int pitch = member_pitch(room);
static_assert(threads % 32 == 0, "whole warps");
static_assert(block_tokens >= 1, "a token's pairs stand in one block");

class Order {
  public:
    __device__ explicit Order(void* memory)
        : members_(static_cast<uint32*>(memory)),
          firsts_(reinterpret_cast<int*>(members_ + experts * pitch)),
          experts_(reinterpret_cast<uint16*>(firsts_ + experts)) {}

    /// Ends with a barrier.
    __device__ void clear() {
        for (int i = threadIdx.x; i < experts * pitch; i += threads) members_[i] = 0;
        __syncthreads();
    }
    /// By any thread, each pair once.
    __device__ void add(int pair, int expert) {
        experts_[pair] = static_cast<uint16>(expert);
        atomicOr(&members_[expert * pitch + pair / 32], 1u << pair % 32);
    }
    /// Behind a barrier.
    __device__ int count(int expert) const {
        int sum = 0;
#pragma unroll 8
        for (int word = 0; word < words; ++word)
            sum += __popc(static_cast<int>(members_[expert * pitch + word]));
        return sum;
    }
    __device__ void set_first(int expert, int place) { firsts_[expert] = place; }
    /// Where a pair belongs; behind a barrier, expert's first place known.
    __device__ int place_of(int pair) const {
        const int expert = experts_[pair];
        const uint32* const members = members_ + expert * pitch;
        int before = __popc(static_cast<int>(members[pair / 32] & ((1u << pair % 32) - 1)));
        for (int word = 0; word < pair / 32; ++word) before += __popc(static_cast<int>(members[word]));
        return firsts_[expert] + before;
    }

  private:
    uint32* members_;
    int* firsts_;
    uint16* experts_;
};

/// The sum of the values of all threads before this one; `scratch` has a word for each warp. One barrier.
__device__ inline int sum_before(int value, int* scratch) {
    const int until = inclusive_sum(value);
    if (lane_index() == 31) scratch[warp_index()] = until;
    __syncthreads();
    int before = until - value;
    for (int warp = 0; warp < warp_index(); ++warp) before += scratch[warp];
    return before;
}

/// Chooses the experts of the block's tokens from `first_token` on; take(pair of the block, expert) sees
/// them. A warp a token.
template <class Take>
__device__ inline void choose_tokens(const Tensors& tensors, int64 first_token, int tokens, Take take) {
    for (int token = warp_index(); token < tokens; token += warps) {
        choose(tensors, first_token + token, [&](int slot, int expert, float weight) {
            tensors.routing_weights[(first_token + token) * top_k + slot] = weight;
            take(token * top_k + slot, expert);
        });
    }
}

}  // namespace hone::expert_routing
