// The consumers of variant wgmma (kernel.cu): warpgroups that multiply, each 64 queries of the tile.
#pragma once

#include "attention_prefill/wgmma/producer.cuh"
#include "attention_prefill/wgmma/queries.cuh"
#include "attention_prefill/wgmma/softmax.cuh"
#include "attention_prefill/wgmma/writer.cuh"
#include "device/hand_back.cuh"
#include "device/warpgroup.cuh"
#include "device/wgmma_8bit.cuh"
#include "device/wgmma_left.cuh"

namespace hone::attention_prefill::warpgroup {

/// Instructions of a product of queries with keys, and of one of weights with values.
inline constexpr int score_steps = (head_dim + 15) / 16;
inline constexpr int value_steps = tile_n / 16;

/// A place in a ring. Late maxima: also the low word of the descriptor of the operand there, so that the next
/// one is in a register before a turn comes.
template <int bytes>
struct OperandRing : Ring {
    uint32 low = 0;

    __device__ void advance() {
        Ring::advance();
        if constexpr (late_maxima)
            low += stage == 0 ? -static_cast<uint32>((stages - 1) * (bytes >> 4)) : bytes >> 4;
    }
};

/// Blocks [begin, end).
struct WholeBlocks {
    int begin;
    int end;

    __device__ bool contain(int block) const { return block < end && (!windowed || block >= begin); }
};

class Consumer {
  public:
    __device__ Consumer(Layout layout, const Call& call, int warpgroup)
        : layout_(layout), call_(call), softmax_(call), warpgroup_(warpgroup) {
        if constexpr (late_maxima) {
            keys_.low = static_cast<uint32>(panel_descriptor(layout.key(0)));
            values_.low = static_cast<uint32>(transposed_descriptor(layout.value(0), geometry.panel_bytes()));
        }
    }

    __device__ void run() {
        Tile tile = await_queries();
        if (packed && !tile.exists()) return;
        if (ping_pong && warpgroup_ == consumers - 1) pass_turn();
        Scores scores;
        Sums sums;
        fence_accumulators(scores);
        fence_accumulators(sums);
        take_queries();
        await_stage(layout_.full_key(keys_.stage), keys_.parity);
        wgmma_fence();
        multiply_keys(scores);
        wgmma_commit();
        while (tile.exists()) tile = attend(scores, sums, tile);
        wgmma_wait<0>();
        fence_accumulators(scores);
    }

  private:
    /// One tile. The scores of its first block are on their way; so are those of the next tile's at the end.
    /// Returns the next one.
    __device__ Tile attend(Scores& scores, Sums& sums, const Tile& tile) {
        const int row = tile.row + warpgroup_ * block_rows + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
        softmax_.start(call_, tile.head(), query_scale_);
        wgmma_wait<0>();
        fence_accumulators(scores);
        release_keys(tile.blocks() == 1);
        cap(scores, tile);
        const WholeBlocks whole = whole_blocks(tile);
        if (!whole.contain(tile.last)) hide(scores, tile, row, tile.last, values_);
        softmax_.begin(scores);
        await_values(values_);
        uint32 weights[tile_n / 4];
        round_weights(scores, weights);
        for (int block = tile.last - 1; block >= tile.first; --block) {
            await_stage(layout_.full_key(keys_.stage), keys_.parity);
            await_turn();
            wgmma_fence();
            multiply_keys(scores);
            wgmma_commit();
            if constexpr (late_maxima) {
                const Foreseen foreseen = foresee(whole.contain(block));
                multiply_values(sums, weights, block < tile.last - 1);
                wgmma_commit();
                pass_turn();
                wgmma_wait<1>();
                fence_accumulators(scores);
                weigh(scores, weights, sums, foreseen, tile, row, block);
            } else {
                multiply_values(sums, weights, block < tile.last - 1);
                wgmma_commit();
                pass_turn();
                wgmma_wait<1>();
                fence_accumulators(scores);
                release_keys(block == tile.first);
                cap(scores, tile);
                if (!whole.contain(block)) hide(scores, tile, row, block, next_values());
                float factors[2];
                const bool grew = softmax_.next(scores, factors);
                await_values(next_values());
                wgmma_wait<0>();
                fence_accumulators(sums);
                fence_fragments(weights);
                release_values();
                round_weights(scores, weights);
                if (grew) rescale(sums, factors);
            }
        }
        return finish(scores, sums, weights, tile, row);
    }

    /// The last block's values; behind them the next tile's first keys, under way while the results are
    /// stored. After the last tile that is a product of what stands there, for nobody: a product in a branch
    /// would make the compiler wait for it at the branch's end.
    __device__ Tile finish(Scores& scores, Sums& sums, uint32 (&weights)[tile_n / 4], const Tile& tile,
                           int row) {
        // There is room for queries in registers since the last product with keys has ended.
        Tile next;
        if constexpr (query_in_registers) {
            next = await_queries();
            take_queries();
        }
        await_turn();
        wgmma_fence();
        multiply_values(sums, weights, tile.blocks() > 1);
        wgmma_commit();
        if constexpr (!query_in_registers) next = await_queries();
        const bool more = next.exists();
        if (more) await_stage(layout_.full_key(keys_.stage), keys_.parity);
        if constexpr (!query_in_registers) take_queries();
        wgmma_fence();
        multiply_keys(scores);
        wgmma_commit();
        if (more || warpgroup_ != consumers - 1) pass_turn();
        float inverse[2], lse[2];
        softmax_.finish(call_, tile.head(), inverse, lse);
        if constexpr (fp8_cache) {
            inverse[0] *= call_.value_scale(tile.head());
            inverse[1] *= call_.value_scale(tile.head());
        }
        wgmma_wait<1>();
        fence_accumulators(sums);
        fence_fragments(weights);
        release_values();
        store_rows(call_, tile, row, sums, inverse, lse);
        return next;
    }

    /// The tile whose queries are there.
    __device__ Tile await_queries() const {
        barrier_wait(layout_.full_query(warpgroup_, queries_.stage), queries_.parity);
        return load_tile(layout_.tile(warpgroup_, queries_.stage), call_);
    }

    /// Ping-pong: warpgroup w multiplies when w - 1 has issued its products, so that its softmax runs beside
    /// theirs.
    __device__ void await_turn() {
        if constexpr (ping_pong) named_barrier_sync<256>(1 + warpgroup_);
    }
    /// By the thread's number, as the compiler does not keep for long what is the same in a whole warp and
    /// easily computed: it would come between a warpgroup's last product and the other's first.
    __device__ void pass_turn() {
        const int own = static_cast<int>(threadIdx.x) / 128 - geometry.producers();
        if constexpr (ping_pong) named_barrier_arrive<256>(1 + (own + 1) % consumers);
    }

    /// Brings queries to where products expect them.
    __device__ void take_queries() {
        if constexpr (converts_queries) {
            const uint32 stage = layout_.query(warpgroup_, queries_.stage);
            query_scale_ = keys_stay_codes ? split_queries(stage) : convert_queries(stage);
            if constexpr (query_in_registers) {
                __syncwarp();
            } else {
                named_barrier_sync<128>(1 + consumers + warpgroup_);
            }
        }
        if constexpr (query_in_registers) {
            load_query_fragments();
            release_loaded_queries();
        }
    }
    /// This warp's 16 rows: lanes 0 to 15 name its rows at the step's first 8 columns, 16 to 31 at the
    /// next 8.
    __device__ void load_query_fragments() {
        const int lane = threadIdx.x % 32;
        const int row = threadIdx.x / 32 % 4 * 16 + lane % 16;
#pragma unroll
        for (int step = 0; step < score_steps; ++step) {
            const uint32 panel =
                layout_.query(warpgroup_, queries_.stage) + step / 4 * block_rows * row_bytes;
            load_matrices(fragments_[step],
                          panel + swizzled_offset<panel_width>(row, step % 4 * 2 + lane / 16));
        }
    }
    /// The compiler (NVRTC 13.0) lets products read registers whose loads nothing has waited for; arithmetic
    /// on them does wait. Exclusive or with a zero that it cannot know to be one.
    __device__ void release_loaded_queries() {
        const uint32 zero = static_cast<uint32>(call_.q_len >> 31);
        uint32 loaded = 0;
#pragma unroll
        for (int step = 0; step < score_steps; ++step) {
#pragma unroll
            for (int i = 0; i < 4; ++i) fragments_[step][i] ^= zero;
            loaded |= fragments_[step][3];
        }
        const uint32 full = layout_.full_query(warpgroup_, queries_.stage);
        if (threadIdx.x % 32 == 0) barrier_arrive_behind(Layout::empty(full), loaded);
        queries_.advance();
    }

    __device__ uint64 key_descriptor() const {
        if constexpr (late_maxima)
            return panel_descriptor(0) >> 32 << 32 | keys_.low;
        else
            return panel_descriptor(layout_.key(keys_.stage));
    }
    __device__ uint64 value_descriptor() const {
        if constexpr (late_maxima)
            return transposed_descriptor(0, 0) >> 32 << 32 | values_.low;
        else
            return transposed_descriptor(layout_.value(values_.stage), geometry.panel_bytes());
    }
    __device__ void multiply_keys(Scores& scores) {
        const uint64 keys = key_descriptor();
        const uint64 queries = panel_descriptor(layout_.query(warpgroup_, queries_.stage));
#pragma unroll
        for (int step = 0; step < score_steps; ++step) {
            // Panels of second codes meet the same keys as those of first ones.
            const int panel = keys_stay_codes ? step / 4 % code_panels : step / 4;
            const uint64 right = advance_descriptor(keys, panel * geometry.panel_bytes() + step % 4 * 32);
            if constexpr (keys_stay_codes) {
                const uint32 left = step / 4 * block_rows * row_bytes + step % 4 * 32;
                WgmmaCodes<fp8, tile_n>::multiply(scores, advance_descriptor(queries, left), right, step);
            } else if constexpr (query_in_registers) {
                WgmmaLeft<Operand, tile_n, false>::multiply(scores, fragments_[step], right, step);
            } else {
                const uint32 left = step / 4 * block_rows * row_bytes + step % 4 * 32;
                Wgmma<Operand, tile_n>::multiply(scores, advance_descriptor(queries, left), right, step);
            }
        }
    }
    __device__ void multiply_values(Sums& sums, uint32 (&weights)[tile_n / 4], int accumulate) {
        const uint64 values = value_descriptor();
#pragma unroll
        for (int step = 0; step < value_steps; ++step)
            WgmmaLeft<Operand, head_dim, true>::multiply(sums, weights + 4 * step,
                                                         advance_descriptor(values, step * 16 * row_bytes),
                                                         step == 0 ? accumulate : 1);
    }

    /// This warp's scores once more, by itself and from what still stands in shared memory: the others need
    /// not know. Fragments are those of the warpgroup's products (device/mma.cuh).
    __device__ void multiply_keys_again(Scores& scores) {
        const int lane = threadIdx.x % 32;
        const int row = threadIdx.x / 32 % 4 * 16 + lane % 16;
        const uint32 queries = layout_.query(warpgroup_, queries_.stage);
        const uint32 keys = layout_.key(keys_.stage);
        MmaSums sums[tile_n / 8] = {};
        const auto multiply = [&](int step, const uint32(&a)[4]) {
#pragma unroll
            for (int pair = 0; pair < tile_n / 16; ++pair) {
                const int key = 16 * pair + lane / 16 * 8 + lane % 8;
                uint32 b[4];
                load_matrices(b, keys + step / 4 * geometry.panel_bytes() +
                                     swizzled_offset<panel_width>(key, step % 4 * 2 + lane / 8 % 2));
                multiply_16<Operand>(sums[2 * pair], a[0], a[1], a[2], a[3], b[0], b[1]);
                multiply_16<Operand>(sums[2 * pair + 1], a[0], a[1], a[2], a[3], b[2], b[3]);
            }
        };
        if constexpr (query_in_registers) {
#pragma unroll
            for (int step = 0; step < score_steps; ++step) multiply(step, fragments_[step]);
        } else {
#pragma unroll 1
            for (int step = 0; step < score_steps; ++step) {
                uint32 a[4];
                load_matrices(a, queries + step / 4 * block_rows * row_bytes +
                                     swizzled_offset<panel_width>(row, step % 4 * 2 + lane / 16));
                multiply(step, a);
            }
        }
#pragma unroll
        for (int i = 0; i < tile_n / 2; ++i) scores[i] = sums[i / 4].values[i % 4];
    }
    /// Late maxima: what a block's way from its scores to its weights depends on beside the scores. It is
    /// asked while products hold the warp: behind them, each instruction delays the next products. No more
    /// than this: of a second look the compiler (NVRTC 13.0) would put addresses between the turn and the
    /// first product.
    struct Foreseen {
        bool is_whole;     ///< all rows see all of the block
        bool known;        ///< all rows of the warp have a reference
        bool values_came;  ///< the block's own
    };
    __device__ Foreseen foresee(bool is_whole) const {
        const Ring values = next_values();
        return {is_whole, softmax_.known(), has_come(layout_.full_value(values.stage), values.parity)};
    }
    /// Late maxima: a further block's scores become weights, while its keys still stand there. The product
    /// with the values before ends meanwhile, behind the first exponentials; the others hide the rounding.
    __device__ void weigh(Scores& scores, uint32 (&weights)[tile_n / 4], Sums& sums, const Foreseen& foreseen,
                          const Tile& tile, int row, int block) {
        cap(scores, tile);
        float factors[2];
        float own[2] = {0.0f, 0.0f};
        if (__builtin_expect(!foreseen.is_whole || !foreseen.known, 0)) {
            if (!foreseen.is_whole) hide(scores, tile, row, block, next_values());
            if (!foreseen.known) {
                if (!softmax_.raise(scores, factors)) factors[0] = factors[1] = 1.0f;
                softmax_.settle();
                own[0] = -minus_infinity();  // does not fit: sums of products are to be multiplied
            }
        }
        // The compiler (NVRTC 13.0) would wait for the product in front of all exponentials, but for a branch
        // between them: what stands in it is over at once.
        constexpr int first_part = tile_n / 4;
        softmax_.weigh<0, first_part>(scores, own);
        if (!foreseen.known) {
            await_stage(layout_.full_key(keys_.stage), keys_.parity);
            softmax_.hold(call_);
        }
        wgmma_wait<0>();
        fence_accumulators(sums);
        fence_fragments(weights);
        softmax_.weigh<first_part, tile_n / 2>(scores, own);
        round_weights(scores, weights);
        release_values();
        if (__builtin_expect(softmax_.fit(own), 1)) {
            softmax_.count(own);
        } else {
            if (foreseen.known) {
                if (!softmax_.lower(scores, own, factors)) {
                    multiply_keys_again(scores);
                    cap(scores, tile);
                    if (!foreseen.is_whole) Visible(tile.sequence, row, block * tile_n).mask(scores);
                    if (!softmax_.next(scores, factors)) factors[0] = factors[1] = 1.0f;
                }
                round_weights(scores, weights);
            } else {
                softmax_.count(scores);
            }
            rescale(sums, factors);
            softmax_.settle();
        }
        release_keys(block == tile.first);
        if (!foreseen.values_came) await_values(values_);
    }

    /// Between a softmax and the wait for the product beside it, where the compiler would move exponentials
    /// behind the latter. Any wait for a barrier keeps most of them in front; a look at the barrier whose
    /// time limit, which matters to nobody, depends on their sum keeps all. What the look finds decides
    /// nothing: else threads might differ behind it, and descriptors would no longer stand in uniform
    /// registers.
    __device__ void await_values(const Ring& ring) {
        const uint32 full = layout_.full_value(ring.stage);
        if constexpr (softmax_first) look_at(full, ring.parity, 10'000'000 + softmax_.finished());
        await_stage(full, ring.parity);
    }
    /// Keys or values: what threads have copied by cp.async is shown to the tensor cores.
    __device__ static void await_stage(uint32 full, uint32 parity) {
        barrier_wait(full, parity);
        if constexpr (by_rows && !fp8_cache) fence_async_proxy();
    }
    /// Whether they are there already; what threads have copied is always waited for, and then shown.
    __device__ static bool has_come(uint32 full, uint32 parity) {
        if constexpr (by_rows) return false;
        uint32 done;
        asm volatile(
            "{\n.reg .pred done;\n"
            "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
            "selp.u32 %0, 1, 0, done;\n}"
            : "=r"(done)
            : "r"(full), "r"(parity)
            : "memory");
        return done != 0;
    }
    __device__ static void look_at(uint32 barrier, uint32 parity, uint32 limit_ns) {
        asm volatile(
            "{\n.reg .pred done;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1, %2;\n}" ::"r"(barrier),
            "r"(parity), "r"(limit_ns)
            : "memory");
    }
    __device__ void cap(Scores& scores, const Tile& tile) {
        if constexpr (has_softcap)
            cap_scores(scores,
                       __fdividef(2 * log2_e * query_scale_ * call_.score_scale(tile.head()), call_.softcap));
    }
    /// The blocks that all rows of the warpgroup see whole.
    __device__ WholeBlocks whole_blocks(const Tile& tile) const {
        const int first_row = tile.row + warpgroup_ * block_rows;
        const Sequence& sequence = tile.sequence;
        return {(sequence.begin(first_row + block_rows - 1) + tile_n - 1) / tile_n,
                sequence.end(first_row) / tile_n};
    }
    /// Scores that a row does not see become -infinity, so that their weights are 0. What stands among the
    /// values behind a sequence's end, in its last page, too, or before its first key may be infinite or NaN:
    /// all consumers clear such rows of the stage, each before its own products.
    __device__ void hide(Scores& scores, const Tile& tile, int row, int block, const Ring& values) {
        Visible(tile.sequence, row, block * tile_n).mask(scores);
        if constexpr (!by_rows && (windowed || paged || lengths != Lengths::none)) {
            const int begin = tile.sequence.first_key() - block * tile_n;
            const int end = tile.sequence.kv_len - block * tile_n;
            if (begin <= 0 && end >= tile_n) return;
            await_stage(layout_.full_value(values.stage), values.parity);
            const uint32 stage = layout_.value(values.stage);
            for (int i = threadIdx.x % 128; i < geometry.stage_bytes() / 16; i += 128) {
                const int key = i / (row_bytes / 16) % tile_n;
                if (key < begin || key >= end) store_shared(stage + i * 16, uint4{});
            }
            fence_async_proxy();
            named_barrier_sync<128>(1 + consumers + warpgroup_);
        }
    }
    __device__ static void round_weights(const Scores& scores, uint32 (&weights)[tile_n / 4]) {
#pragma unroll
        for (int i = 0; i < tile_n / 4; ++i)
            weights[i] = pack_pair(Operand{}, scores[2 * i], scores[2 * i + 1]);
    }
    __device__ static void rescale(Sums& sums, const float (&factors)[2]) {
#pragma unroll
        for (int i = 0; i < head_dim / 2; ++i) sums[i] *= factors[i / 2 % 2];
    }

    /// This warp has read what `full` announced.
    __device__ static void release(uint32 full) {
        if (threadIdx.x % 32 == 0) barrier_arrive(Layout::empty(full));
    }
    __device__ void release_keys(bool and_queries) {
        release(layout_.full_key(keys_.stage));
        keys_.advance();
        if (!query_in_registers && and_queries) {
            release(layout_.full_query(warpgroup_, queries_.stage));
            queries_.advance();
        }
    }
    __device__ void release_values() {
        release(layout_.full_value(values_.stage));
        values_.advance();
    }
    /// Where the values behind those of the present product stand.
    __device__ Ring next_values() const {
        Ring ring = values_;
        ring.advance();
        return ring;
    }

    Layout layout_;
    const Call& call_;
    Softmax softmax_;
    int warpgroup_;
    float query_scale_ = 1.0f;  ///< of the queries taken last
    QueryRing queries_;
    OperandRing<geometry.key_stage_bytes()> keys_;
    OperandRing<geometry.stage_bytes()> values_;
    uint32 fragments_[query_in_registers ? score_steps : 1][4];
};

}  // namespace hone::attention_prefill::warpgroup
