// Attention decode, reference: a block computes one head of one query token. 256 tokens at a time, a thread
// adds up the score of one of them, all threads agree on the new maximum, and a thread adds one column of V
// over the 256, everything in double. out [batch, q_len, heads, head_dim] and lse [batch, heads, q_len] are
// float32 arrays without padding; packed [tokens, heads, head_dim] and [heads, tokens]. Rows that see
// nothing: zeros, minus infinity.
#include "attention_decode/tensors.cuh"

namespace hone::attention_decode::reference {

inline constexpr int threads = 256;
static_assert(head_dim <= threads, "a thread a column");

/// Element (token, column) of a sequence's head.
__device__ inline float element(const Tensors& t, const CacheElement* cache, int sequence, int kv_head,
                                int token, int column) {
    const int outer = paged ? t.page_of(sequence, token) : sequence;
    const int inner = paged ? token % page_size : token;
    return to_float(cache[t.cache_offset(outer, kv_head) + inner * t.cache_token_stride + column]);
}

/// The score of a row and one of the tokens that it sees.
__device__ inline double score(const Tensors& t, int sequence, int query, int head, int token) {
    const Element* q = t.q + t.query_offset(sequence, query, head);
    double sum = 0.0;
    for (int column = 0; column < head_dim; ++column)
        sum += static_cast<double>(to_float(q[column])) *
               static_cast<double>(element(t, t.k_cache, sequence, head / group, token, column));
    sum *= static_cast<double>(t.scale) * static_cast<double>(t.k_factor(head / group));
    if (has_softcap) sum = t.softcap * tanh(sum / t.softcap);
    return sum;
}

__device__ inline void run(const Tensors& t) {
    __shared__ double scores[threads];
    __shared__ double weights[threads];
    const int head = static_cast<int>(blockIdx.x % heads);
    const int query = static_cast<int>(blockIdx.x / heads % t.q_len);
    const int sequence = static_cast<int>(blockIdx.x / heads / t.q_len);
    const int column = threadIdx.x;
    if (packed && t.length(sequence) < 0) return;
    const Visible visible = t.visible_to(query, t.length(sequence));
    double max = -static_cast<double>(infinity);
    double sum = 0.0;
    double value = 0.0;
    for (int first = visible.first; first < visible.last; first += threads) {
        const int count = min(threads, visible.last - first);
        __syncthreads();
        if (column < count) scores[column] = score(t, sequence, query, head, first + column);
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
            sum += weights[i];
            if (column < head_dim)
                value += weights[i] * static_cast<double>(
                                          element(t, t.v_cache, sequence, head / group, first + i, column));
        }
    }
    const bool empty = visible.first >= visible.last;
    // Relative to the greatest score, as the other exponentials.
    if (has_sinks && !empty) sum += exp(static_cast<double>(t.sinks[head]) - max);
    const int64 token = packed ? t.q_starts[sequence] : sequence * t.q_len + query;
    const int64 row = token * heads + head;
    if (column < head_dim)
        t.out[row * head_dim + column] =
            empty ? 0.0f : static_cast<float>(value / sum * static_cast<double>(t.v_factor(head / group)));
    if (has_lse && column == 0)
        t.lse[t.lse_offset(sequence, query, head)] =
            empty ? (has_sinks ? t.sinks[head] : -infinity) : static_cast<float>(max + log(sum));
}

}  // namespace hone::attention_decode::reference

extern "C" __global__ void __launch_bounds__(256)
    attention_decode_reference(HONE_PARAMETERS(attention_decode_reference)) {
    const hone::attention_decode::Tensors tensors{HONE_ARGUMENTS(attention_decode_reference)};
    hone::attention_decode::reference::run(tensors);
}
