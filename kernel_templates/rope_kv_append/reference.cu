// RoPE and append, reference: a thread computes one element of the result, everything in double; the norm's
// sum anew for each element. Outputs are float32 arrays with the strides of the call: codes of a quantized
// cache as their decoded values.
#include "rope_kv_append/tensors.cuh"

namespace hone::rope_kv_append::reference {

/// Before the rotation.
__device__ inline double value_of(const Tensors& tensors, const Head& head, const Element* from, int column) {
    const double value = to_float(from[column]);
    if (!has_norm || head.is_v) return value;
    double squares = 0.0;
    for (int i = 0; i < head_dim; ++i) {
        const double x = to_float(from[i]);
        squares += x * x;
    }
    const double factor = 1.0 / sqrt(squares / head_dim + static_cast<double>(tensors.epsilon));
    return value * factor * counted(static_cast<double>(to_float(head.norm_weight(tensors)[column])));
}

__device__ inline double rotated(const Tensors& tensors, const Head& head, const Element* from, int position,
                                 int column) {
    const double value = value_of(tensors, head, from, column);
    if (head.is_v || column >= rotary_dim) return value;
    constexpr int half = rotary_dim == 0 ? 1 : rotary_dim / 2;
    const int pair = interleaved ? column / 2 : column % half;
    const bool is_first = interleaved ? column % 2 == 0 : column < half;
    const int partner = interleaved ? column ^ 1 : is_first ? column + half : column - half;
    const double cos = tensors.cos[static_cast<int64>(position) * half + pair];
    const double sin = tensors.sin[static_cast<int64>(position) * half + pair];
    const double other = value_of(tensors, head, from, partner);
    return is_first ? value * cos - other * sin : value * cos + other * sin;
}

/// A block is one head of one token.
__device__ inline void run(const Tensors& tensors) {
    const int token = static_cast<int>(blockIdx.x / all_heads);
    const Head head(static_cast<int>(blockIdx.x % all_heads));
    const Place place(tensors, token);
    if (!place.exists || (!head.is_q && place.offset < 0)) return;
    const Element* from = head.source(tensors, token);
    for (int column = threadIdx.x; column < head_dim; column += blockDim.x) {
        const double value = rotated(tensors, head, from, place.position, column);
        if (head.is_q) {
            tensors
                .q_out[token * tensors.q_out_token_stride + head.index * tensors.q_out_head_stride + column] =
                static_cast<float>(value);
            continue;
        }
        float* cache = head.is_v ? tensors.v_cache : tensors.k_cache;
        const float result = static_cast<float>(quantized ? value / head.scale(tensors) : value);
        cache[place.offset + head.index * tensors.cache_head_stride + column] =
            quantized ? to_float(from_float<fp8>(result)) : result;
    }
}

}  // namespace hone::rope_kv_append::reference

extern "C" __global__ void __launch_bounds__(128)
    rope_kv_append_reference(HONE_PARAMETERS(rope_kv_append_reference)) {
    const hone::rope_kv_append::Tensors tensors{HONE_ARGUMENTS(rope_kv_append_reference)};
    hone::rope_kv_append::reference::run(tensors);
}
