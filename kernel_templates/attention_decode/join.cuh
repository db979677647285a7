// From the warps' sums to results. The warps of a block that shared a fragment leave their sums, maxima and
// sums of weights in shared memory; after a barrier all of them add up, four columns a thread, in the order
// of the warps. What is whole becomes a result; what is not
//   second_launch  goes to the workspace; combine.cuh's kernel adds the pieces of a list,
//   last_block     goes to the workspace, and a flag is raised; the block that ends the list adds its pieces
//                  when its other work is done. It waits for blocks of lower numbers alone, which never wait
//                  for it, and which ended their parts, as long as its own, at about the same time,
//   in a cluster   goes straight to the block of the cluster that owns these columns, into its inbox: one
//                  remote store a thread that announces itself at the owner's barrier. Nobody waits for
//                  anybody but for its own inbox to be full, and leaves then: what it owes, it has received.
// Pieces are added in the order of their slots: the same bits at every launch.
//
// Workspace: float sums[2 * blocks][block_rows][4 * row_items], State states[2 * blocks][block_rows], uint64
// flags[2 * blocks]. Piece p of block b has index 2 * b + p. Who has seen a flag takes it down: none is up
// between calls, and the workspace, whose content nobody knows, need not be cleared: a word that is no flag's
// equals `ready` once in 2^64, and as two floats it is a pair of NaNs that no arithmetic makes.
#pragma once

#include "attention_decode/scores.cuh"
#include "device/flag.cuh"
#include "device/packet.cuh"
#include "device/stream.cuh"
#include "device/warpgroup.cuh"

namespace hone::attention_decode {

inline constexpr int sums_pitch = geometry.sums_pitch();
inline constexpr int row_items = geometry.row_items();
inline constexpr int items = geometry.items();
inline constexpr int inbox_items = geometry.inbox_items();

/// A row's maximum of scores (log2), and its sum of weights relative to that.
struct State {
    float max;
    float sum;
};

/// Where the blocks of the cluster leave their sums of the items that this one owns.
struct Inbox {
    alignas(16) float4 sums[cluster][inbox_items];
    State states[cluster][inbox_items];
    uint64 full;
};

struct Shared {
    alignas(16) float sums[warps][block_rows][sums_pitch];
    State states[warps][block_rows];
    Inbox inbox;
    Ended ended;  ///< out of the way of the registers
};
static_assert(sizeof(Shared) == geometry.join_bytes(), "the host counts the same bytes");

/// Variants without other warps may use the block's barrier.
__device__ inline void sync_compute_warps() {
#if __CUDA_ARCH__ >= 900
    named_barrier_sync<compute_threads>(1);
#else
    __syncthreads();
#endif
}

template <class T>
constexpr int result_vector_of() {
    if constexpr (requires { T::vector; }) return static_cast<int>(T::vector);
    return 4;
}
/// Elements that results are aligned to.
inline constexpr int result_vector = result_vector_of<Tuned>() < 4 ? result_vector_of<Tuned>() : 4;
static_assert(head_dim % result_vector == 0, "an access does not reach past the end of a head");

/// Four columns of a row on their way: sums relative to a maximum.
class Joined {
  public:
    __device__ void include(const State& state) { max_ = fmaxf(max_, state.max); }
    /// After more maxima are included: sums so far were relative to `max`.
    __device__ void shrink(float max) {
        const float weight = fast_exp2(max - finite_max(max_));
        sum_ *= weight;
        sums_.x *= weight;
        sums_.y *= weight;
        sums_.z *= weight;
        sums_.w *= weight;
    }
    /// After all maxima are included.
    __device__ void add(const State& state, const float4& sums) {
        const float weight = fast_exp2(state.max - finite_max(max_));
        sum_ = fmaf(state.sum, weight, sum_);
        sums_.x = fmaf(sums.x, weight, sums_.x);
        sums_.y = fmaf(sums.y, weight, sums_.y);
        sums_.z = fmaf(sums.z, weight, sums_.z);
        sums_.w = fmaf(sums.w, weight, sums_.w);
    }
    __device__ State state() const { return {max_, sum_}; }
    __device__ const float4& sums() const { return sums_; }

    /// Writes the result: zeros, and minus infinity as log-sum-exp, for a row that saw nothing. Where there
    /// are sinks, that of the row's head counts as one more piece, which has no value.
    __device__ void store(const Tensors& tensors, int sequence, int list, int item) const {
        const int row = first_row_of(list) + item / row_items;
        if (row >= tensors.rows()) return;
        if constexpr (has_sinks) {
            const State sink{tensors.sinks[head_of(list, row)] * log2_e, 1.0f};
            Joined all;
            all.include(state());
            all.include(sink);
            all.add(state(), sums_);
            all.add(sink, {0.0f, 0.0f, 0.0f, 0.0f});
            all.write(tensors, sequence, list, row, item);
        } else {
            write(tensors, sequence, list, row, item);
        }
    }

  private:
    __device__ void write(const Tensors& tensors, int sequence, int list, int row, int item) const {
        const int column = item % row_items * 4;
        const int head = head_of(list, row);
        const float scale = sum_ > 0.0f ? tensors.v_factor(kv_head_of(list)) / sum_ : 0.0f;
        const float values[4] = {sums_.x * scale, sums_.y * scale, sums_.z * scale, sums_.w * scale};
        Element* to = tensors.out + tensors.result_offset(sequence, token_of(row), head) + column;
#pragma unroll
        for (int i = 0; i < 4; i += result_vector) {
            float some[result_vector];
#pragma unroll
            for (int j = 0; j < result_vector; ++j) some[j] = values[i + j];
            if (column + i < head_dim) store_packet(to + i, pack<Element>(some));
        }
        if (has_lse && column == 0)
            tensors.lse[tensors.lse_offset(sequence, token_of(row), head)] =
                sum_ > 0.0f ? (max_ + fast_log2(sum_)) * (1.0f / log2_e) : -infinity;
    }

    float max_ = -infinity;
    float sum_ = 0.0f;
    float4 sums_ = {0.0f, 0.0f, 0.0f, 0.0f};
};

/// The workspace of a call of `blocks` blocks.
class Workspace {
  public:
    __device__ Workspace(const Tensors& tensors, int blocks)
        : sums_(static_cast<float*>(tensors.workspace)),
          states_(reinterpret_cast<State*>(sums_ + 8ll * blocks * items)),
          flags_(reinterpret_cast<uint64*>(states_ + 2ll * blocks * block_rows)) {}

    __device__ void leave(int piece, int item, const Joined& joined) const {
        reinterpret_cast<float4*>(sums_)[static_cast<int64>(piece) * items + item] = joined.sums();
        if (item % row_items == 0) states_[piece * block_rows + item / row_items] = joined.state();
    }
    /// By one thread, after the barrier behind leave().
    __device__ void raise(int piece) const { raise_flag(flags_ + piece, ready); }
    /// By all threads that compute, before the barrier that join() stands behind: each looks at flags of its
    /// own, since one flag after the other would be a way to memory each.
    __device__ void await(const Pieces& pieces, int line) const {
        for (int i = threadIdx.x; i < pieces.count(); i += compute_threads) {
            uint64* const flag = flags_ + index(pieces, line, i);
            while (flag_value(flag) != ready) {
            }
            *flag = 0;
        }
    }

    /// Four columns of a row from the pieces of slots `first`, `first + 1`, ..., which belong to line `line`.
    /// `at_once`: pieces that are asked for before the first of them is waited for; the way from memory is
    /// nearly all of the time that it takes.
    template <int at_once>
    __device__ Joined join(const Pieces& pieces, int line, int item) const {
        const int row = item / row_items;
        const int count = pieces.count();
        Joined joined;
        for (int first = 0; first < count; first += at_once) {
            State states[at_once];
            float4 sums[at_once];
#pragma unroll
            for (int i = 0; i < at_once; ++i) {
                const int piece = index(pieces, line, min(first + i, count - 1));
                states[i] = load_state(piece, row);
                sums[i] = load_sums(piece, item);
            }
            const float max = joined.state().max;
#pragma unroll
            for (int i = 0; i < at_once; ++i) joined.include(states[i]);
            joined.shrink(max);
#pragma unroll
            for (int i = 0; i < at_once; ++i) {
                if (first + i < count) joined.add(states[i], sums[i]);
            }
        }
        return joined;
    }

  private:
    static constexpr uint64 ready = 0xffa57e3c7fb91d2eull;

    __device__ static int index(const Pieces& pieces, int line, int i) {
        return ((pieces.first + i) * lines + line) * 2 + (i == 0 ? 1 : 0);
    }
    __device__ float4 load_sums(int piece, int item) const {
        const Packet<float, 4> sums =
            load_packet<float, 4>(sums_ + (static_cast<int64>(piece) * items + item) * 4);
        return {sums.elements[0], sums.elements[1], sums.elements[2], sums.elements[3]};
    }
    __device__ State load_state(int piece, int row) const {
        const Packet<float, 2> state =
            load_packet<float, 2>(reinterpret_cast<const float*>(states_ + piece * block_rows + row));
        return {state.elements[0], state.elements[1]};
    }

    float* sums_;
    State* states_;
    uint64* flags_;
};

/// Sums of a fragment over the warps of the block.
__device__ inline Joined join_warps(const Shared& shared, int item) {
    const int row = item / row_items;
    Joined joined;
#pragma unroll
    for (int warp = 0; warp < warps; ++warp) joined.include(shared.states[warp][row]);
#pragma unroll
    for (int warp = 0; warp < warps; ++warp)
        joined.add(shared.states[warp][row],
                   *reinterpret_cast<const float4*>(&shared.sums[warp][row][item % row_items * 4]));
    return joined;
}

#if __CUDA_ARCH__ >= 900
/// By one thread, before the block's barrier: what the inbox will receive.
__device__ inline void open_inbox(Shared& shared) {
    const int owned = (items - static_cast<int>(cluster_rank()) + cluster - 1) / cluster;
    const uint32 full = shared_address(&shared.inbox.full);
    barrier_init(full, 1);
    fence_barrier_init();
    barrier_arrive_expecting(full, owned * cluster * (sizeof(float4) + sizeof(State)));
}

/// Hands sums over to the block that owns them; after all blocks of the cluster have opened their inboxes.
__device__ inline void send(const Shared& shared, int item, const Joined& joined) {
    const int rank = static_cast<int>(cluster_rank());
    const int place = item / cluster;
    const int owner = item % cluster;
    const uint32 full = remote_address(shared_address(&shared.inbox.full), owner);
    store_remote_4(remote_address(shared_address(&shared.inbox.sums[rank][place]), owner), joined.sums(),
                   full);
    store_remote_2(remote_address(shared_address(&shared.inbox.states[rank][place]), owner),
                   {joined.state().max, joined.state().sum}, full);
}

/// Adds what the inbox received.
__device__ inline void join_inbox(const Tensors& tensors, const Shared& shared, const Fragment& fragment) {
    for (int place = threadIdx.x; place < inbox_items; place += compute_threads) {
        const int item = place * cluster + static_cast<int>(cluster_rank());
        if (item >= items) break;
        barrier_wait(shared_address(&shared.inbox.full), 0);
        Joined joined;
#pragma unroll
        for (int rank = 0; rank < cluster; ++rank) joined.include(shared.inbox.states[rank][place]);
#pragma unroll
        for (int rank = 0; rank < cluster; ++rank)
            joined.add(shared.inbox.states[rank][place], shared.inbox.sums[rank][place]);
        joined.store(tensors, fragment.sequence, fragment.list, item);
    }
    // Nobody leaves while others may still write here: the threads above know that nobody does.
    sync_compute_warps();
}

/// After every warp has written its sums and states to shared memory; all computing warps, whose threads come
/// first in the block.
__device__ inline void join_cluster(const Tensors& tensors, const Shared& shared, const Fragment& fragment) {
    sync_compute_warps();
    for (int item = threadIdx.x; item < items; item += compute_threads)
        send(shared, item, join_warps(shared, item));
    join_inbox(tensors, shared, fragment);
}
#endif

/// The same without a cluster.
__device__ inline void join_block(const Tensors& tensors, const Shared& shared, const Fragment& fragment) {
    sync_compute_warps();
    const Workspace workspace(tensors, static_cast<int>(gridDim.x));
    const int piece = static_cast<int>(blockIdx.x) * 2 + (fragment.begins ? 1 : 0);
    for (int item = threadIdx.x; item < items; item += compute_threads) {
        const Joined joined = join_warps(shared, item);
        if (fragment.whole())
            joined.store(tensors, fragment.sequence, fragment.list, item);
        else
            workspace.leave(piece, item, joined);
    }
    sync_compute_warps();  // before the next fragment's sums
    if (join_way == Join::last_block && threadIdx.x == 0 && !fragment.whole()) workspace.raise(piece);
}

/// Results of sequences without tokens, which have no units: each block looks after some of them. By all
/// threads that compute, while the first tokens are on their way.
__device__ inline void store_empty(const Tensors& tensors) {
    if constexpr (!skips_empty) return;
    const int batch = static_cast<int>(tensors.batch);
    for (int sequence = static_cast<int>(blockIdx.x); sequence < batch;
         sequence += static_cast<int>(gridDim.x)) {
        if (tensors.length(sequence) != 0) continue;
        for (int i = threadIdx.x; i < lists * items; i += compute_threads)
            Joined().store(tensors, sequence, i / items, i % items);
    }
}

/// After a block's last fragment, last_block; thread 0 has left `ended`.
__device__ inline void join_ended(const Tensors& tensors, const Shared& shared) {
    sync_compute_warps();
    const Ended ended = shared.ended;
    if (ended.pieces.count() < 2) return;
    const Workspace workspace(tensors, static_cast<int>(gridDim.x));
    const int line = static_cast<int>(blockIdx.x) % lines;
    workspace.await(ended.pieces, line);
    sync_compute_warps();
    // Those of a list where one sequence has all multiprocessors for its eight, as far as registers last.
    constexpr int many_pieces = 18;
    constexpr int at_once = compute_threads * Tuned::blocks_per_sm <= 256 ? many_pieces : many_pieces / 2;
    for (int item = threadIdx.x; item < items; item += compute_threads)
        workspace.join<at_once>(ended.pieces, line, item).store(tensors, ended.sequence, ended.list, item);
}

}  // namespace hone::attention_decode
