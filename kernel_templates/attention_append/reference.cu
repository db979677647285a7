// Attention of the newest token, reference: a block computes one head of one sequence. It normalizes and
// rotates the query and the new key, each rounded to the element type, and does what attention_decode's
// reference does, everything in double. The cache is not written; `out` [batch, heads, head_dim] is float32
// without padding.
#include "attention_append/turned.cuh"

namespace hone::attention_decode::reference {

inline constexpr int threads = 256;
static_assert(head_dim <= threads, "a thread a column");

/// Element (token, column) of a sequence's head in the cache.
__device__ inline double element(const Tensors& t, const Element* cache, int sequence, int kv_head, int token,
                                 int column) {
    const int outer = paged ? t.page_of(sequence, token) : sequence;
    const int inner = paged ? token % page_size : token;
    return static_cast<double>(
        to_float(cache[t.cache_offset(outer, kv_head) + inner * t.cache_token_stride + column]));
}

__device__ inline void run(const Tensors& t) {
    __shared__ double query[threads];
    __shared__ double key[threads];
    __shared__ double scores[threads];
    __shared__ double weights[threads];
    const int head = static_cast<int>(blockIdx.x % heads);
    const int sequence = static_cast<int>(blockIdx.x / heads);
    const int column = threadIdx.x;
    const int length = t.length(sequence);
    const int kv_head = head / group;
    const Visible visible = t.visible_to(0, length);
    const Element* v = t.v + sequence * t.v_batch_stride + kv_head * t.v_head_stride;
    if (column < head_dim && length > 0) {
        query[column] =
            turned<double>(t, t.q + t.query_offset(sequence, 0, head), t.q_weight, length - 1, column);
        key[column] = turned<double>(t, t.k + sequence * t.k_batch_stride + kv_head * t.k_head_stride,
                                     t.k_weight, length - 1, column);
    }
    double max = -static_cast<double>(infinity);
    double sum = 0.0;
    double value = 0.0;
    for (int first = visible.first; first < visible.last; first += threads) {
        const int count = min(threads, visible.last - first);
        __syncthreads();
        if (column < count) {
            const int token = first + column;
            double score = 0.0;
            for (int i = 0; i < head_dim; ++i)
                score += query[i] *
                         (token == length - 1 ? key[i] : element(t, t.k_cache, sequence, kv_head, token, i));
            score *= static_cast<double>(t.scale);
            scores[column] = has_softcap ? t.softcap * tanh(score / t.softcap) : score;
        }
        __syncthreads();
        double top = max;
        for (int i = 0; i < count; ++i) top = scores[i] > top ? scores[i] : top;
        const double factor = exp(max - top);
        sum *= factor;
        value *= factor;
        max = top;
        if (column < count) weights[column] = exp(scores[column] - max);
        __syncthreads();
        for (int i = 0; i < count; ++i) {
            const int token = first + i;
            sum += weights[i];
            if (column < head_dim)
                value += weights[i] * (token == length - 1
                                           ? static_cast<double>(to_float(v[column]))
                                           : element(t, t.v_cache, sequence, kv_head, token, column));
        }
    }
    const int64 row = static_cast<int64>(sequence) * heads + head;
    if (column < head_dim)
        t.out[row * head_dim + column] =
            visible.first >= visible.last ? 0.0f : static_cast<float>(value / sum);
}

}  // namespace hone::attention_decode::reference

extern "C" __global__ void __launch_bounds__(256)
    attention_append_reference(HONE_PARAMETERS(attention_append_reference)) {
    const hone::attention_decode::Tensors tensors{HONE_ARGUMENTS(attention_append_reference)};
    hone::attention_decode::reference::run(tensors);
}
