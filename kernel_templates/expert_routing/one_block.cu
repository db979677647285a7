// Routing, variant one_block: few tokens, one block, one launch. Data's way: logits -> registers of a warp a
// token -> the experts' sets in shared memory (order.cuh) -> starts and rows. Barriers: order.cuh's; the scan
// over experts has one of its own.
#include "expert_routing/order.cuh"

namespace hone::expert_routing::one_block {

static_assert(threads >= experts, "a thread for each expert");

__device__ inline void run(const Tensors& tensors) {
    extern __shared__ uint4 memory[];
    __shared__ int scratch[warps];
    Order order(memory);
    const int tokens = static_cast<int>(tensors.tokens);
    const int pairs = tokens * top_k;
    order.clear();
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    choose_tokens(tensors, 0, tokens, [&](int pair, int expert) { order.add(pair, expert); });
    __syncthreads();

    const int expert = static_cast<int>(threadIdx.x);
    const int first = sum_before(expert < experts ? order.count(expert) : 0, scratch);
    if (expert < experts) {
        order.set_first(expert, first);
        tensors.starts[expert] = first;
    }
    if (expert == 0) tensors.starts[experts] = pairs;
    __syncthreads();
    for (int pair = static_cast<int>(threadIdx.x); pair < pairs; pair += threads)
        tensors.rows[order.place_of(pair)] = pair;
}

}  // namespace hone::expert_routing::one_block

extern "C" __global__ void __launch_bounds__(hone::expert_routing::threads)
    expert_routing_one_block(HONE_PARAMETERS(expert_routing_one_block)) {
    const hone::expert_routing::Tensors tensors{HONE_ARGUMENTS(expert_routing_one_block)};
    hone::expert_routing::one_block::run(tensors);
}
