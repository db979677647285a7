// Attention of the newest token, variant plain: a block computes one head of one sequence in float32, a
// thread a token of the cache for scores and a column for sums, `threads` tokens at a time with an online
// softmax. The block of a group's first head writes the new key and value; nobody reads these from the cache.
#include "attention_append/turned.cuh"
#include "device/sync.cuh"

namespace hone::attention_decode::plain {

inline constexpr int threads = static_cast<int>(Tuned::threads);

struct Memory {
    float query[head_dim];
    float key[head_dim];
    float weights[threads];
};

/// Offset in the cache of a token's row.
__device__ inline int64 row_of(const Tensors& t, int sequence, int kv_head, int token) {
    const int outer = paged ? t.page_of(sequence, token) : sequence;
    return t.cache_offset(outer, kv_head) + (paged ? token % page_size : token) * t.cache_token_stride;
}

__device__ inline void run(const Tensors& t) {
    __shared__ Memory memory;
    const int head = static_cast<int>(blockIdx.x % heads);
    const int sequence = static_cast<int>(blockIdx.x / heads);
    const int kv_head = head / group;
    const int length = t.length(sequence);
    const int newest = length - 1;
    const Visible visible = t.visible_to(0, length);
    const Element* v = t.v + sequence * t.v_batch_stride + kv_head * t.v_head_stride;
    if (length > 0) {
        const Element* k = t.k + sequence * t.k_batch_stride + kv_head * t.k_head_stride;
        const int64 row = row_of(t, sequence, kv_head, newest);
        for (int column = threadIdx.x; column < head_dim; column += threads) {
            memory.query[column] =
                turned<float>(t, t.q + t.query_offset(sequence, 0, head), t.q_weight, newest, column);
            memory.key[column] = turned<float>(t, k, t.k_weight, newest, column);
            if (head % group != 0) continue;
            const_cast<Element*>(t.k_cache)[row + column] = from_float<Element>(memory.key[column]);
            const_cast<Element*>(t.v_cache)[row + column] = v[column];
        }
    }
    constexpr int columns = (head_dim + threads - 1) / threads;
    float max = -infinity;
    float sum = 0.0f;
    float sums[columns] = {};
    for (int first = visible.first; first < visible.last; first += threads) {
        const int count = min(threads, visible.last - first);
        const int token = first + static_cast<int>(threadIdx.x);
        __syncthreads();
        float score = -infinity;
        if (token < visible.last) {
            const Element* row = token == newest ? nullptr : t.k_cache + row_of(t, sequence, kv_head, token);
            score = 0.0f;
            for (int i = 0; i < head_dim; ++i)
                score += memory.query[i] * (row == nullptr ? memory.key[i] : to_float(row[i]));
            score *= t.scale;
            if (has_softcap) score = t.softcap * tanhf(score / t.softcap);
        }
        memory.weights[threadIdx.x] = score;
        __syncthreads();
        float top = max;
        for (int i = 0; i < count; ++i) top = fmaxf(top, memory.weights[i]);
        const float shrink = expf(max - top);
        max = top;
        __syncthreads();
        memory.weights[threadIdx.x] = expf(score - max);
        __syncthreads();
        sum *= shrink;
        for (int i = 0; i < count; ++i) sum += memory.weights[i];
        for (int c = 0; c < columns; ++c) {
            const int column = static_cast<int>(threadIdx.x) + c * threads;
            sums[c] *= shrink;
            if (column >= head_dim) continue;
            for (int i = 0; i < count; ++i) {
                const Element* from =
                    first + i == newest ? v : t.v_cache + row_of(t, sequence, kv_head, first + i);
                sums[c] += memory.weights[i] * to_float(from[column]);
            }
        }
    }
    Element* const out = t.out + t.result_offset(sequence, 0, head);
    for (int c = 0; c < columns; ++c) {
        const int column = static_cast<int>(threadIdx.x) + c * threads;
        if (column < head_dim) out[column] = from_float<Element>(sum > 0.0f ? sums[c] / sum : 0.0f);
    }
}

}  // namespace hone::attention_decode::plain

extern "C" __global__ void __launch_bounds__(Tuned::threads)
    attention_append_plain(HONE_PARAMETERS(attention_append_plain)) {
    const hone::attention_decode::Tensors tensors{HONE_ARGUMENTS(attention_append_plain)};
    hone::attention_decode::plain::run(tensors);
}
