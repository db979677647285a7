// Routing, reference: a thread a token finds its experts one after the other, in double; then a thread an
// expert counts and writes its pairs, going through all of them. The outputs are float32, whole numbers up to
// 2^24.
#include "device/packet.cuh"
#include "hone_constants.h"

namespace hone::expert_routing::reference {

inline constexpr int experts = static_cast<int>(Shape::experts);
inline constexpr int top_k = static_cast<int>(Shape::top_k);

__device__ inline double logit_at(const Arguments& call, int64 token, int expert) {
    const double logit = to_float(call.logits[token * call.logits_stride + expert]);
    return logit != logit ? __builtin_bit_cast(double, 0xfff0000000000000ull) : logit;
}
/// e^(logit - largest), also where both are infinite.
__device__ inline double mass(double logit, double largest) {
    return logit == largest ? 1.0 : exp(logit - largest);
}

__device__ inline bool is_among(const int* chosen, int count, int expert) {
    for (int i = 0; i < count; ++i) {
        if (chosen[i] == expert) return true;
    }
    return false;
}
__device__ inline int largest_but(const Arguments& call, int64 token, const int* chosen, int count) {
    int best = -1;
    for (int expert = 0; expert < experts; ++expert) {
        if (is_among(chosen, count, expert)) continue;
        if (best < 0 || logit_at(call, token, expert) > logit_at(call, token, best)) best = expert;
    }
    return best;
}

__device__ inline void choose(const Arguments& call, int64 token) {
    int* const chosen = call.workspace + token * top_k;
    for (int slot = 0; slot < top_k; ++slot) chosen[slot] = largest_but(call, token, chosen, slot);
    const double largest = logit_at(call, token, chosen[0]);
    double sum = 0.0;
    const int terms = Shape::renormalize != 0 ? top_k : experts;
    for (int i = 0; i < terms; ++i)
        sum += mass(logit_at(call, token, Shape::renormalize != 0 ? chosen[i] : i), largest);
    for (int slot = 0; slot < top_k; ++slot) {
        const double weight = mass(logit_at(call, token, chosen[slot]), largest) / sum;
        call.routing_weights[token * top_k + slot] = static_cast<float>(weight);
    }
}

__device__ inline void order(const Arguments& call) {
    const int expert = static_cast<int>(threadIdx.x);
    const int pairs = static_cast<int>(call.tokens) * top_k;
    int before = 0;
    for (int pair = 0; pair < pairs; ++pair) before += call.workspace[pair] < expert ? 1 : 0;
    if (expert <= experts) call.starts[expert] = static_cast<float>(before);
    for (int pair = 0; pair < pairs; ++pair) {
        if (call.workspace[pair] == expert) call.rows[before++] = static_cast<float>(pair);
    }
}

}  // namespace hone::expert_routing::reference

extern "C" __global__ void __launch_bounds__(128)
    expert_routing_reference_choose(HONE_PARAMETERS(expert_routing_reference_choose)) {
    const hone::expert_routing::Arguments call{HONE_ARGUMENTS(expert_routing_reference_choose)};
    const hone::int64 token = static_cast<hone::int64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (token < call.tokens) hone::expert_routing::reference::choose(call, token);
}
extern "C" __global__ void __launch_bounds__(544)
    expert_routing_reference_order(HONE_PARAMETERS(expert_routing_reference_order)) {
    const hone::expert_routing::Arguments call{HONE_ARGUMENTS(expert_routing_reference_order)};
    hone::expert_routing::reference::order(call);
}
