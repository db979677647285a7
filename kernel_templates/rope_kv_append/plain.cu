// RoPE and append, variant plain: any head_dim, any alignment, element by element.
//
// Data's way: global -> registers -> global, twice read where there is a norm. A warp takes one head of a
// token: its lanes first sum the squares, then each rotates every 32nd pair, and copies every 32nd of the
// columns that do not rotate. q may be rotated in place: the sum is complete before any lane writes, and
// pairs have one lane.
#include "device/sync.cuh"
#include "rope_kv_append/tensors.cuh"

namespace hone::rope_kv_append::plain {

inline constexpr int threads = static_cast<int>(Tuned::threads);

__device__ inline float norm_factor(const Element* from, int lane, float epsilon) {
    float sum = 0.0f;
    for (int column = lane; column < head_dim; column += 32) {
        const float value = to_float(from[column]);
        sum += value * value;
    }
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    return rsqrtf(sum * (1.0f / head_dim) + epsilon);
}

/// `read(column)` is a value before the rotation, `write(column, value)` takes it after.
template <class Read, class Write>
__device__ inline void rotate(const Tensors& tensors, int position, int lane, Read read, Write write) {
    const int64 row = static_cast<int64>(position) * (rotary_dim / 2);
    for (int pair = lane; pair < rotary_dim / 2; pair += 32) {
        const int first = interleaved ? 2 * pair : pair;
        const int second = interleaved ? first + 1 : pair + rotary_dim / 2;
        const float cos = tensors.cos[row + pair];
        const float sin = tensors.sin[row + pair];
        const float x = read(first);
        const float y = read(second);
        write(first, x * cos - y * sin);
        write(second, y * cos + x * sin);
    }
}

__device__ inline void run(const Tensors& tensors) {
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int64 item = static_cast<int64>(blockIdx.x) * (threads / 32) + threadIdx.x / 32;
    if (item >= tensors.tokens * all_heads) return;
    const int token = static_cast<int>(item / all_heads);
    const Head head(static_cast<int>(item % all_heads));
    const Place place(tensors, token);
    if (!place.exists || (!head.is_q && place.offset < 0)) return;

    const Element* from = head.source(tensors, token);
    const bool normalizes = has_norm && !head.is_v;
    const float factor = normalizes ? norm_factor(from, lane, tensors.epsilon) : 1.0f;
    const auto read = [&](int column) {
        const float value = to_float(from[column]);
        return normalizes ? value * factor * counted(to_float(head.norm_weight(tensors)[column])) : value;
    };
    const auto hand_on = [&](auto write) {
        if (!head.is_v) rotate(tensors, place.position, lane, read, write);
        for (int column = lane + (head.is_v ? 0 : rotary_dim); column < head_dim; column += 32)
            write(column, read(column));
    };
    if (head.is_q) {
        Element* to =
            tensors.q_out + token * tensors.q_out_token_stride + head.index * tensors.q_out_head_stride;
        hand_on([&](int column, float value) { to[column] = from_float<Element>(value); });
    } else {
        Cached* to = (head.is_v ? tensors.v_cache : tensors.k_cache) + place.offset +
                     head.index * tensors.cache_head_stride;
        const float inverse = quantized ? 1.0f / head.scale(tensors) : 1.0f;
        hand_on([&](int column, float value) { to[column] = from_float<Cached>(value * inverse); });
    }
}

}  // namespace hone::rope_kv_append::plain

extern "C" __global__ void __launch_bounds__(hone::rope_kv_append::plain::threads)
    rope_kv_append_plain(HONE_PARAMETERS(rope_kv_append_plain)) {
    const hone::rope_kv_append::Tensors tensors{HONE_ARGUMENTS(rope_kv_append_plain)};
    hone::rope_kv_append::plain::run(tensors);
}
