// Routing, variant blocks: any number of tokens in three launches.
//
//   count    a block for some tokens: their experts and weights (choose.cuh), how many of its pairs go to
//   each expert scan     one block: from counts to where each block's pairs of an expert begin, and the
//   experts' starts scatter  the blocks of count again: each pair's number to its place (order.cuh)
//
// Data's way: logits -> registers -> sets in shared memory -> experts of pairs [tokens * top_k] and counts
// [blocks, experts] in the workspace -> starts, rows. Barriers: order.cuh's. Launches are in order.
#include "expert_routing/order.cuh"

namespace hone::expert_routing::blocks {

static_assert(threads >= experts, "a thread for each expert");

/// What the launches hand on, in the workspace.
struct Between {
    int* experts_of_pairs;
    int* counts;  ///< [blocks, experts]

    __device__ explicit Between(const Tensors& tensors)
        : experts_of_pairs(tensors.workspace), counts(tensors.workspace + tensors.tokens * top_k) {}
};

/// A block's tokens.
struct Part {
    int64 first_token;
    int tokens;

    __device__ explicit Part(const Tensors& tensors)
        : first_token(static_cast<int64>(blockIdx.x) * block_tokens),
          tokens(static_cast<int>(min(tensors.tokens - first_token, static_cast<int64>(block_tokens)))) {}
};

__device__ inline void await_others() {
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
}

__device__ inline void count(const Tensors& tensors) {
    extern __shared__ uint4 memory[];
    Order order(memory);
    const Between between(tensors);
    const Part part(tensors);
    order.clear();
    await_others();
    choose_tokens(tensors, part.first_token, part.tokens, [&](int pair, int expert) {
        order.add(pair, expert);
        between.experts_of_pairs[part.first_token * top_k + pair] = expert;
    });
    __syncthreads();
    const int expert = static_cast<int>(threadIdx.x);
    if (expert < experts) between.counts[blockIdx.x * int64{experts} + expert] = order.count(expert);
}

/// Counts that a thread of scan has under way.
inline constexpr int together = 32;

/// Each thread an expert: the counts of the blocks become where their pairs begin among the expert's.
__device__ inline void scan(const Tensors& tensors) {
    __shared__ int scratch[warps];
    await_others();
    const Between between(tensors);
    const int64 parts = (tensors.tokens + block_tokens - 1) / block_tokens;
    const int expert = static_cast<int>(threadIdx.x);
    int sum = 0;
    for (int64 part = 0; expert < experts && part < parts; part += together) {
        int* const counts = between.counts + part * experts + expert;
        int found[together];
#pragma unroll
        for (int i = 0; i < together; ++i) found[i] = part + i < parts ? counts[i * experts] : 0;
#pragma unroll
        for (int i = 0; i < together; ++i) {
            if (part + i < parts) counts[i * experts] = sum;
            sum += found[i];
        }
    }
    const int first = sum_before(sum, scratch);
    if (expert < experts) tensors.starts[expert] = first;
    if (expert == 0) tensors.starts[experts] = static_cast<int>(tensors.tokens) * top_k;
}

__device__ inline void scatter(const Tensors& tensors) {
    extern __shared__ uint4 memory[];
    Order order(memory);
    const Between between(tensors);
    const Part part(tensors);
    const int first_pair = static_cast<int>(part.first_token) * top_k;
    const int pairs = part.tokens * top_k;
    order.clear();
    await_others();
    for (int pair = static_cast<int>(threadIdx.x); pair < pairs; pair += threads)
        order.add(pair, between.experts_of_pairs[first_pair + pair]);
    const int expert = static_cast<int>(threadIdx.x);
    if (expert < experts)
        order.set_first(expert,
                        tensors.starts[expert] + between.counts[blockIdx.x * int64{experts} + expert]);
    __syncthreads();
    for (int pair = static_cast<int>(threadIdx.x); pair < pairs; pair += threads)
        tensors.rows[order.place_of(pair)] = first_pair + pair;
}

}  // namespace hone::expert_routing::blocks

extern "C" __global__ void __launch_bounds__(hone::expert_routing::threads)
    expert_routing_count(HONE_PARAMETERS(expert_routing_count)) {
    const hone::expert_routing::Tensors tensors{HONE_ARGUMENTS(expert_routing_count)};
    hone::expert_routing::blocks::count(tensors);
}
extern "C" __global__ void __launch_bounds__(hone::expert_routing::threads)
    expert_routing_scan(HONE_PARAMETERS(expert_routing_scan)) {
    const hone::expert_routing::Tensors tensors{HONE_ARGUMENTS(expert_routing_scan)};
    hone::expert_routing::blocks::scan(tensors);
}
extern "C" __global__ void __launch_bounds__(hone::expert_routing::threads)
    expert_routing_scatter(HONE_PARAMETERS(expert_routing_scatter)) {
    const hone::expert_routing::Tensors tensors{HONE_ARGUMENTS(expert_routing_scatter)};
    hone::expert_routing::blocks::scatter(tensors);
}
