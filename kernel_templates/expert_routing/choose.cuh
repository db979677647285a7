// The experts of a token: a warp holds its logits in registers, up to 16 a lane, and takes the largest top_k
// times. Lane s keeps the expert of slot s. No shared memory, no barrier.
#pragma once

#include "device/packet.cuh"
#include "device/reduce.cuh"
#include "device/sync.cuh"
#include "device/warp.cuh"
#include "hone_constants.h"

namespace hone::expert_routing {

using Element = DtypeOf<Shape::dtype>::type;
inline constexpr int experts = static_cast<int>(Shape::experts);
inline constexpr int top_k = static_cast<int>(Shape::top_k);
inline constexpr bool renormalizes = Shape::renormalize != 0;
/// Logits of a lane.
inline constexpr int held = (experts + 31) / 32;
static_assert(top_k <= 32 && top_k <= experts, "a lane for each slot, an expert for each");

struct Tensors : Arguments {};

/// Rises with the logit and is above 0; NaN counts as minus infinity.
__device__ inline uint32 key_of(float logit) {
    const uint32 bits = logit != logit ? 0xff800000u : __float_as_uint(logit + 0.0f);  // one zero, not two
    return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline float logit_of(uint32 key) {
    return __uint_as_float(key >> 31 != 0 ? key & 0x7fffffffu : ~key);
}
/// e^(logit - largest), also where both are infinite.
__device__ inline float mass_of(uint32 key, uint32 largest) {
    if (key == largest) return 1.0f;
    return exp2f((logit_of(key) - logit_of(largest)) * 1.4426950408889634f);
}

/// A lane's logits of a token; 0 stands for none.
struct Keys {
    uint32 values[held];

    __device__ Keys(const Tensors& tensors, int64 token) {
        const Element* const logits = tensors.logits + token * tensors.logits_stride;
#pragma unroll
        for (int i = 0; i < held; ++i) {
            const int expert = i * 32 + lane_index();
            values[i] =
                expert < experts ? key_of(to_float(load_packet<Element, 1>(logits + expert).elements[0])) : 0;
        }
    }
    /// The largest of the warp and its expert, of equal ones the first: (key, ~expert).
    __device__ uint64 largest() const {
        uint32 best = 0;
        int where = 0;
#pragma unroll
        for (int i = 0; i < held; ++i) {
            if (values[i] > best) {
                best = values[i];
                where = i;
            }
        }
        return warp_max(static_cast<uint64>(best) << 32 | ~static_cast<uint32>(where * 32 + lane_index()));
    }
    __device__ void remove(int expert) {
#pragma unroll
        for (int i = 0; i < held; ++i) {
            if (i * 32 + lane_index() == expert) values[i] = 0;
        }
    }
    /// Over the warp.
    __device__ float mass(uint32 largest) const {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < held; ++i) {
            if (values[i] != 0) sum += mass_of(values[i], largest);
        }
        return reduce_lanes<Sum, 32>(sum);
    }
};

/// Calls take(slot, expert, weight) in the first top_k lanes; by a whole warp.
template <class Take>
__device__ inline void choose(const Tensors& tensors, int64 token, Take take) {
    Keys keys(tensors, token);
    uint64 found = keys.largest();
    const uint32 largest = static_cast<uint32>(found >> 32);
    const float all = renormalizes ? 0.0f : keys.mass(largest);
    float sum = 0.0f;
    float mine = 0.0f;
    int expert = 0;
    for (int slot = 0; slot < top_k; ++slot) {
        const int chosen = static_cast<int>(~static_cast<uint32>(found));
        const float mass = mass_of(static_cast<uint32>(found >> 32), largest);
        sum += mass;
        if (lane_index() == slot) {
            expert = chosen;
            mine = mass;
        }
        if (slot + 1 == top_k) break;
        keys.remove(chosen);
        found = keys.largest();
    }
    if (lane_index() < top_k) take(lane_index(), expert, mine / (renormalizes ? sum : all));
}

}  // namespace hone::expert_routing
