// Attention decode, variant plain: any size, any type, any strides, any chip; products on the CUDA cores in
// float32. The warps of a block take turns at the units of a fragment, each with its own online softmax, and
// meet at its end (join.cuh).
//
// Data's way: the lanes of a warp share a token's row, `vector` elements a lane at a time. K and V of `step`
// tokens come from global memory into registers together; products with the rows of q, which stay there, are
// added up over the lanes; weights multiply V into the lanes' columns of the sums. Sums registers -> shared
// -> global.
//
// Tokens that nobody may see are not read: accesses move to the nearest visible one, whose weight is then 0.
#include "attention_decode/combine.cuh"
#include "device/reduce.cuh"

namespace hone::attention_decode::plain {

inline constexpr int vector = static_cast<int>(Tuned::vector);
/// Tokens that are read together.
inline constexpr int step = 4;
/// Accesses to a row, and elements of it, of a lane.
inline constexpr int accesses = (head_dim + 32 * vector - 1) / (32 * vector);
inline constexpr int columns = accesses * vector;
static_assert(unit % step == 0, "a unit is whole steps");

__device__ inline int column_of(int access) {
    return (access * 32 + static_cast<int>(threadIdx.x) % 32) * vector;
}
__device__ inline bool exists(int access) {
    return head_dim % (32 * vector) == 0 || column_of(access) < head_dim;
}

/// A lane's part of a row.
template <class T>
struct Part {
    Packet<T, vector> packets[accesses];

    __device__ void load(const T* row) {
#pragma unroll
        for (int i = 0; i < accesses; ++i) {
            packets[i] = {};
            if (exists(i)) packets[i] = load_packet<T, vector>(row + column_of(i));
        }
    }
    __device__ void unpack(float (&values)[columns]) const {
#pragma unroll
        for (int i = 0; i < accesses; ++i) {
            float some[vector];
            hone::unpack(packets[i], some);
#pragma unroll
            for (int j = 0; j < vector; ++j) values[i * vector + j] = some[j];
        }
    }
};

/// A warp's rows: the query, and what it has seen so far.
struct Rows {
    float q[block_rows][columns];
    float sums[block_rows][columns];
    State states[block_rows];
    float scale;

    __device__ void start(const Tensors& tensors, const Fragment& fragment) {
        scale = scale_of(tensors, fragment.list);
#pragma unroll
        for (int r = 0; r < block_rows; ++r) {
            const int row = first_row_of(fragment.list) + r;
            Part<Element> part{};
            if (row < tensors.rows())
                part.load(tensors.q + tensors.query_offset(fragment.sequence, token_of(row),
                                                           head_of(fragment.list, row)));
            part.unpack(q[r]);
            states[r] = {-infinity, 0.0f};
#pragma unroll
            for (int c = 0; c < columns; ++c) sums[r][c] = 0.0f;
        }
    }

    /// Log2 of what row `r` makes of K.
    __device__ float score(const Tensors& tensors, int r, const float (&k)[columns]) const {
        float product = 0.0f;
#pragma unroll
        for (int c = 0; c < columns; ++c) product = fmaf(q[r][c], k[c], product);
        const float score = reduce_lanes<Sum, 32>(product) * scale;
        if constexpr (has_softcap) return capped(score, tensors.softcap);
        return score * log2_e;
    }

    /// Takes the scores of a step, makes weights.
    __device__ void weigh(int r, float (&scores)[step]) {
        float max = states[r].max;
#pragma unroll
        for (int i = 0; i < step; ++i) max = fmaxf(max, scores[i]);
        const float factor = fast_exp2(states[r].max - finite_max(max));
        states[r] = {max, states[r].sum * factor};
#pragma unroll
        for (int i = 0; i < step; ++i) {
            scores[i] = fast_exp2(scores[i] - finite_max(max));
            states[r].sum += scores[i];
        }
#pragma unroll
        for (int c = 0; c < columns; ++c) sums[r][c] *= factor;
    }

    __device__ void leave(Shared& shared) const {
        const int warp = threadIdx.x / 32;
#pragma unroll
        for (int r = 0; r < block_rows; ++r) {
            if (threadIdx.x % 32 == 0) shared.states[warp][r] = states[r];
#pragma unroll
            for (int c = 0; c < columns; ++c) {
                if (exists(c / vector)) shared.sums[warp][r][column_of(c / vector) + c % vector] = sums[r][c];
            }
        }
    }
};

/// `step` tokens from `token` on, of which those in [first, last) may be read.
__device__ inline void take(const Tensors& tensors, const Fragment& fragment, int token, int first, int last,
                            Rows& rows) {
    Part<CacheElement> k[step];
    Part<CacheElement> v[step];
#pragma unroll
    for (int i = 0; i < step; ++i) {
        const int near = min(max(token + i, first), last - 1);
        const int outer = paged ? tensors.page_of(fragment.sequence, near) : fragment.sequence;
        const int64 offset = tensors.cache_offset(outer, kv_head_of(fragment.list)) +
                             (paged ? near % page_size : near) * tensors.cache_token_stride;
        k[i].load(tensors.k_cache + offset);
        v[i].load(tensors.v_cache + offset);
    }
    float scores[block_rows][step];
#pragma unroll
    for (int i = 0; i < step; ++i) {
        float values[columns];
        k[i].unpack(values);
#pragma unroll
        for (int r = 0; r < block_rows; ++r) {
            const int row = first_row_of(fragment.list) + r;
            const Visible visible = tensors.visible_to(token_of(row), fragment.length);
            const bool seen = token + i >= max(first, visible.first) && token + i < min(last, visible.last);
            const float score = rows.score(tensors, r, values);
            scores[r][i] = seen ? score : -infinity;
        }
    }
#pragma unroll
    for (int r = 0; r < block_rows; ++r) rows.weigh(r, scores[r]);
#pragma unroll
    for (int i = 0; i < step; ++i) {
        float values[columns];
        v[i].unpack(values);
#pragma unroll
        for (int r = 0; r < block_rows; ++r) {
#pragma unroll
            for (int c = 0; c < columns; ++c)
                rows.sums[r][c] = fmaf(scores[r][i], values[c], rows.sums[r][c]);
        }
    }
}

__device__ inline void run(const Tensors& tensors, Shared& shared) {
    const int warp = threadIdx.x / 32;
    Schedule schedule(tensors);
    if (join_way == Join::last_block && threadIdx.x == 0) shared.ended = schedule.ended();
    store_empty(tensors);
    Rows rows;
    for (Fragment fragment = schedule.next(); fragment.present; fragment = schedule.next()) {
        rows.start(tensors, fragment);
        const int first_visible = tensors.visible(fragment.length).first;
#pragma unroll 1
        for (int index = warp; index < fragment.units; index += warps) {
            const int begin = fragment.first_token + index * unit;
            const int first = max(first_visible, begin);
            const int last = min(fragment.length, begin + unit);
#pragma unroll 1
            for (int token = begin + (first - begin) / step * step; token < last; token += step)
                take(tensors, fragment, token, first, last, rows);
        }
        rows.leave(shared);
        join_block(tensors, shared, fragment);
    }
    if constexpr (join_way == Join::last_block) join_ended(tensors, shared);
}

}  // namespace hone::attention_decode::plain

extern "C" __global__ void __launch_bounds__(hone::attention_decode::compute_threads, Tuned::blocks_per_sm)
    attention_decode_plain(HONE_PARAMETERS(attention_decode_plain)) {
    const hone::attention_decode::Tensors tensors{HONE_ARGUMENTS(attention_decode_plain)};
    extern __shared__ __align__(16) unsigned char memory[];
    hone::wait_for_predecessor();
    hone::release_successor();
    hone::attention_decode::plain::run(tensors, *reinterpret_cast<hone::attention_decode::Shared*>(memory));
}
