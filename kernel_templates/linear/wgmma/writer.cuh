// How a warpgroup of the tensor-core product (product.cuh) brings its sums to memory: rounded, through shared
// memory and the copy engine (staged) or from the registers directly; before that, they may be added up with
// those of other blocks (partials.cuh) or of the cluster (cluster_k).
#pragma once

#include "device/cluster_barrier.cuh"
#include "device/tma.cuh"
#include "device/warpgroup.cuh"
#include "linear/results.cuh"
#include "linear/wgmma/partials.cuh"
#include "linear/wgmma/sharing.cuh"

namespace hone::linear::gemm {

__device__ inline void meet_cluster() {
    cluster_arrive();
    cluster_wait();
}

/// Where sums of two blocks come into the ring, ended by arrivals of the other block's warps, which have read
/// it (joins_early: all but the last steps); and by the bytes of the sums that come from other blocks.
__device__ inline uint32 steps_read_barrier(uint32 shared) { return full_barrier(shared, 2 * stages); }
__device__ inline uint32 sums_barrier(uint32 shared) {
    return full_barrier(shared, 2 * stages + (geometry.has_inbox() ? 0 : 1));
}

class Writer {
  public:
    __device__ Writer(uint32 shared, const TensorMap& map, const GivenResults& results, int warpgroup)
        : shared_(shared),
          map_(map),
          results_(results),
          warpgroup_(warpgroup),
          warp_(threadIdx.x / 32 % 4),
          lane_(threadIdx.x % 32) {}

    /// Before the tile is multiplied: asks for what this thread's results need besides sums in front of a
    /// norm.
    __device__ void ask(const Work& tile, int rank) {
        if constexpr (gives_squares()) ask_for_share(results_, tile, rank);
    }

    /// The tile's results; or the part of its sums that another block adds up.
    __device__ void store(Sums& sums, const Work& tile) {
        if constexpr (tail_split) {
            const Partials partials(results_.workspace, warpgroup_, 1 + warpgroup_);
            if (tile.is_rest()) return partials.leave(sums, tile.slot);
            partials.collect(sums, tile.slot, tile.others);
        }
        if constexpr (geometry.takes_turns()) {
#pragma unroll
            for (int panel = 0; panel < geometry.panels(); ++panel) store_in_turn(sums, tile, panel);
        } else if constexpr (geometry.staged != 0) {
#pragma unroll
            for (int batch = 0; batch < geometry.panels(); batch += geometry.store_panels())
                store_batch(sums, tile, batch);
        } else {
#pragma unroll
            for (int fragment = 0; fragment < geometry.fragments(); ++fragment)
                store_fragment(sums, tile, fragment);
        }
    }

    /// This block's share of the tile, added up over the cluster. The others' parts come into the ring's
    /// memory: the block is done with it, and by the first meeting so are all others.
    __device__ void store_shared(Sums& sums, const Work& tile, int rank) {
        const uint32 mine = shared_ + (warpgroup_ * 128 + threadIdx.x % 128) * 16;
        meet_cluster();
#pragma unroll
        for (int fragment = 0; fragment < geometry.fragments(); ++fragment) {
            const int adds = fragment / geometry.share();
            if (adds == rank) continue;
            const uint32 to = remote_address(mine, adds) + slot(rank, fragment);
#pragma unroll
            for (int product = 0; product < products; ++product)
                store_remote(to + product * geometry.fragment_bytes(), fragment_of(sums, fragment, product));
        }
        meet_cluster();
#pragma unroll
        for (int fragment = 0; fragment < geometry.fragments(); ++fragment) {
            const int adds = fragment / geometry.share();
            if (adds != rank) continue;
#pragma unroll
            for (int product = 0; product < products; ++product)
                add_parts(fragment_of(sums, fragment, product), adds,
                          mine + slot(0, fragment) + product * geometry.fragment_bytes());
            store_fragment(sums, tile, fragment);
        }
    }

    /// The same with an inbox, which is free from the start on: the other blocks are known to have opened
    /// theirs when all have arrived at the cluster's barrier.
    __device__ void store_from_inbox(Sums& sums, const Work& tile, int rank) {
        cluster_wait();
        join(sums, tile, rank, geometry.inbox_at());
    }

    /// tail_pairs: half of the tile, whose sums two blocks share. The other one's parts come into the ring:
    /// all warps of the other block are told when this one's warps have read theirs.
    __device__ void store_paired(Sums& sums, const Work& tile, int rank) {
        cluster_wait();
        if (lane_ == 0) barrier_arrive_remote(remote_address(steps_read_barrier(shared_), rank ^ 1));
        __syncwarp();
        barrier_wait_cluster(steps_read_barrier(shared_), 0);
        join(sums, tile, rank, geometry.left_at());
    }

    /// joins_early: sends all sums to the same warpgroup of block `to`, which has `steps` of them.
    __device__ void send(Sums& sums, int to, int steps) const {
        const uint32 base = remote_address(shared_, to);
        const uint32 barrier = remote_address(sums_barrier(shared_), to);
        barrier_wait_cluster(steps_read_barrier(shared_), 0);
#pragma unroll
        for (int fragment = 0; fragment < geometry.fragments(); ++fragment)
            send_remote(base + sent_at(fragment, steps), fragment_of(sums, fragment, 0), barrier);
    }
    /// joins_early: adds the other block's sums to those of this one, which has `steps` of them, and stores
    /// the results. Both warpgroups have read the last steps.
    __device__ void store_joined(Sums& sums, const Work& tile, int steps) {
        barrier_wait_cluster(sums_barrier(shared_), 0);
#pragma unroll
        for (int fragment = 0; fragment < geometry.fragments(); ++fragment)
            add_local(shared_ + sent_at(fragment, steps), fragment_of(sums, fragment, 0));
        constexpr int across = geometry.panels_across();
#pragma unroll
        for (int panel = 0; panel < geometry.panels(); ++panel) {
            const int stage = (steps - 1 - panel / across) % stages;
            const uint32 to = shared_ + geometry.right_at() + stage * geometry.right_bytes() +
                              panel % across * geometry.panel_bytes();
            stage_panel(sums, tile, panel, to);
            fence_async_proxy();
            named_barrier_sync<128>(1 + warpgroup_);
            if (threadIdx.x % 128 == 0) {
                copy_panel(tile, panel, to);
                commit_stores();
            }
            __syncwarp();
        }
    }

    /// Until all of this warpgroup's copies are complete.
    __device__ void finish() {
        if (geometry.staged != 0 && threadIdx.x % 128 == 0) wait_for_stores<0>();
    }

  private:
    static constexpr int column_blocks = result_columns / 8;

    /// Sends the other blocks what they add up of these sums, adds their parts of its own share in order of
    /// rank, and stores that. Parts come behind `inbox`, asynchronously.
    __device__ void join(Sums& sums, const Work& tile, int rank, int inbox) {
        constexpr int share = geometry.joined_share();
        constexpr int part_bytes = share * products * geometry.fragment_bytes();
        const uint32 mine = shared_ + inbox + (warpgroup_ * 128 + threadIdx.x % 128) * 16;
#pragma unroll
        for (int fragment = 0; fragment < geometry.fragments(); ++fragment) {
            const int adds = fragment / share;
            if (adds == rank) continue;
            const uint32 to = remote_address(mine, adds) + (rank < adds ? rank : rank - 1) * part_bytes;
            const uint32 barrier = remote_address(sums_barrier(shared_), adds);
#pragma unroll
            for (int product = 0; product < products; ++product)
                send_remote(to + (fragment % share * products + product) * geometry.fragment_bytes(),
                            fragment_of(sums, fragment, product), barrier);
        }
        barrier_wait_cluster(sums_barrier(shared_), 0);
#pragma unroll
        for (int fragment = 0; fragment < geometry.fragments(); ++fragment) {
            const int adds = fragment / share;
            if (adds != rank) continue;
#pragma unroll
            for (int product = 0; product < products; ++product)
                add_joined(fragment_of(sums, fragment, product), adds, part_bytes,
                           mine + (fragment % share * products + product) * geometry.fragment_bytes());
            store_fragment(sums, tile, fragment);
        }
    }
    /// As add_parts, where no place is left for the block's own part.
    __device__ static void add_joined(float (&own)[4], int rank, int part_bytes, uint32 from) {
        float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int sender = 0; sender < geometry.joined_blocks(); ++sender) {
            if (sender == rank) {
#pragma unroll
                for (int i = 0; i < 4; ++i) sum[i] += own[i];
            } else {
                add_local(from + (sender < rank ? sender : sender - 1) * part_bytes, sum);
            }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) own[i] = sum[i];
    }

    /// joins_early: where this thread's sums of a fragment come, behind the base of a block of `steps` steps.
    __device__ static uint32 sent_at(int fragment, int steps) {
        const int stage = (steps - 1 - geometry.last_steps() - fragment / geometry.sent_to_stage()) % stages;
        const int place = fragment % geometry.sent_to_stage();
        const uint32 row = place < geometry.sent_left()
                               ? geometry.left_at() + stage * geometry.left_bytes()
                               : geometry.right_at() + stage * geometry.right_bytes() -
                                     geometry.sent_left() * Geometry::sent_bytes();
        return row + place * Geometry::sent_bytes() + threadIdx.x % 128 * 16;
    }
    /// Asynchronously; `barrier`, in the same block, counts the bytes.
    __device__ static void send_remote(uint32 to, const float (&v)[4], uint32 barrier) {
        asm volatile(
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, "
            "[%5];" ::"r"(to),
            "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]), "r"(barrier)
            : "memory");
    }

    /// First row of results of block b, in the tile.
    __device__ int first_row(int b) const {
        if constexpr (halves) return geometry.block(warpgroup_, b) * block_rows;
        return ((ping_pong ? 0 : warpgroup_ * result_blocks) + b) * block_rows;
    }
    /// Where the two neighbouring results (b, j, half) belong.
    __device__ Pair pair_at(const Work& tile, int b, int j, int half) const {
        const int row = tile.row + first_row(b) + 16 * warp_ + lane_ / 4 + 8 * half;
        int column = tile.column + 8 * j + lane_ % 4 * 2;
        if constexpr (halves) column += geometry.first_column(warpgroup_, b);
        return swapped ? Pair{column, row} : Pair{row, column};
    }

    __device__ static float gate_sum(const Sums& sums, int b, int j, int half, int e) {
        return sums[b][4 * j + 2 * half + e];
    }
    __device__ static float up_sum(const Sums& sums, int b, int j, int half, int e) {
        constexpr int columns = gated_columns ? tile_n / 4 : 0;
        return sums[b + (gated_rows ? result_blocks : 0)][columns + 4 * j + 2 * half + e];
    }
    __device__ uint32 packed(const Sums& sums, const Work& tile, int b, int j, int half) const {
        float first = gate_sum(sums, b, j, half, 0);
        float second = gate_sum(sums, b, j, half, 1);
        if constexpr (gated) {
            first = join_gated(first, up_sum(sums, b, j, half, 0));
            second = join_gated(second, up_sum(sums, b, j, half, 1));
        }
        if constexpr (has_epilogue) {
            const Pair at = pair_at(tile, b, j, half);
            if constexpr (swapped) {
                first = results_.finish(at.token, at.column, first);
                second = results_.finish(at.token + 1, at.column, second);
            } else {
                results_.finish_columns<whole_columns>(at, first, second);
            }
        }
        return pack_pair(Element{}, first, second);
    }

    /// One panel, in its place: the copy from there must have left it, those of the panels between may be
    /// under way.
    __device__ void store_in_turn(const Sums& sums, const Work& tile, int panel) {
        constexpr int places = geometry.store_panels();
        const uint32 to = shared_ + geometry.staging_at() + warpgroup_ * geometry.staging_bytes() +
                          panel % places * geometry.panel_bytes();
        const bool leader = threadIdx.x % 128 == 0;
        if (panel == 0 || panel >= places) {
            if (leader) {
                if (panel == 0) wait_for_store_reads<0>();
                if (panel > 0) wait_for_store_reads<places - 1>();
            }
            __syncwarp();
            named_barrier_sync<128>(1 + warpgroup_);
        }
        stage_panel(sums, tile, panel, to);
        fence_async_proxy();
        named_barrier_sync<128>(1 + warpgroup_);
        if (leader) {
            copy_panel(tile, panel, to);
            commit_stores();
        }
        __syncwarp();
    }
    /// The panels from `batch` on: the warpgroup writes them, one thread lets them be copied. Its earlier
    /// copies must have left the memory.
    __device__ void store_batch(const Sums& sums, const Work& tile, int batch) {
        const int end = min(batch + geometry.store_panels(), geometry.panels());
        const uint32 staging = shared_ + geometry.staging_at() + warpgroup_ * geometry.staging_bytes();
        const bool leader = threadIdx.x % 128 == 0;
        if (leader) wait_for_store_reads<0>();
        __syncwarp();
        named_barrier_sync<128>(1 + warpgroup_);
#pragma unroll
        for (int panel = batch; panel < end; ++panel)
            stage_panel(sums, tile, panel, staging + (panel - batch) * geometry.panel_bytes());
        fence_async_proxy();
        named_barrier_sync<128>(1 + warpgroup_);
        if (leader) {
            for (int panel = batch; panel < end; ++panel)
                copy_panel(tile, panel, staging + (panel - batch) * geometry.panel_bytes());
            commit_stores();
        }
        __syncwarp();
    }
    __device__ void copy_panel(const Work& tile, int panel, uint32 from) const {
        constexpr int across = geometry.panels_across();
        if constexpr (halves) {
            if (panel >= across * result_blocks)
                return copy_half_panel(tile, panel - across * result_blocks, from);
        }
        const int row = tile.row + first_row(panel / across);
        const int column = tile.column + geometry.panel_start(panel % across);
        store_box(map_, swapped ? row : column, swapped ? column : row, from);
    }
    /// The i-th panel of this warpgroup's half of a block.
    __device__ void copy_half_panel(const Work& tile, int i, uint32 from) const {
        const int row = tile.row + first_row(row_blocks);
        const int column =
            tile.column + geometry.first_column(warpgroup_, row_blocks) + geometry.half_start(i);
        store_box(map_, row, column, from);
    }
    __device__ void stage_panel(const Sums& sums, const Work& tile, int panel, uint32 to) {
        if constexpr (swapped) {
            constexpr int across = geometry.panels_across();
            if (halves && panel >= across * result_blocks) {
                const int first = geometry.half_start(panel - across * result_blocks);
                stage_transposed(sums, tile, result_blocks, first / 8, to);
            } else {
                stage_transposed(sums, tile, panel / across, geometry.panel_start(panel % across) / 8, to);
            }
        } else {
            stage_straight(sums, tile, panel, to);
        }
    }
    /// 64 rows x panel_width columns: a warp writes 16 rows, 16 columns at a time.
    __device__ void stage_straight(const Sums& sums, const Work& tile, int panel, uint32 to) {
        constexpr int width = geometry.panel_width();
        const int b = panel / geometry.panels_across();
        const int row = 16 * warp_ + lane_ % 16;
#pragma unroll
        for (int chunk = 0; chunk < width / 8; chunk += 2) {
            const int j = panel % geometry.panels_across() * (width / 8) + chunk;
            store_matrices(to + swizzled_offset<width>(row, chunk + lane_ / 16), packed(sums, tile, b, j, 0),
                           packed(sums, tile, b, j, 1), packed(sums, tile, b, j + 1, 0),
                           packed(sums, tile, b, j + 1, 1));
        }
    }
    /// 64 results of a panel's tokens, from those of fragment `first` on: a warp writes 16 results of every
    /// token.
    __device__ void stage_transposed(const Sums& sums, const Work& tile, int b, int first, uint32 to) {
        constexpr int count = geometry.panel_tokens() / 8;
        const int chunk = 2 * warp_ + lane_ / 8 % 2;
#pragma unroll
        for (int i = 0; i < count; i += 2) {
            const int j = first + i;
            const bool two = i + 1 < count;
            const int token = 8 * i + lane_ % 8 + (two ? lane_ / 16 * 8 : 0);
            const uint32 address = to + swizzled_offset<64>(token, chunk);
            const uint32 upper = packed(sums, tile, b, j, 0);
            const uint32 lower = packed(sums, tile, b, j, 1);
            if (two) {
                store_matrices_transposed(address, upper, lower, packed(sums, tile, b, j + 1, 0),
                                          packed(sums, tile, b, j + 1, 1));
            } else {
                store_matrices_transposed(address, upper, lower);
            }
        }
    }

    /// In front of a norm: of the share that the block of this rank adds up.
    template <class AnyResults>
    __device__ void ask_for_share(const AnyResults& results, const Work& tile, int rank) {
#pragma unroll
        for (int i = 0; i < geometry.share(); ++i) {
            const int fragment = rank * geometry.share() + i;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const Pair at = pair_at(tile, fragment / column_blocks, fragment % column_blocks, half);
                const int column = min(at.column, out - 2);
                if constexpr (has_residual)
                    asked_[i].residual[half] = results.residual_of(min(at.token, results.tokens - 1), column);
                if (half == 0) asked_[i].norm_weight = load_packet<Element, 2>(results.norm_weight + column);
            }
        }
    }

    /// In front of a norm: the 16 columns of two fragments, a slot, whose squares are in four lanes; added up
    /// as reduce_lanes() does it with one column a lane.
    template <class AnyResults>
    __device__ void give_slot(const AnyResults& results, const Sums& sums, const Work& tile,
                              int first_fragment) {
        const int b = first_fragment / column_blocks;
        const int first_j = first_fragment % column_blocks;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float squares[2][2];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const Asked& asked = asked_[(first_fragment + i) % geometry.share()];
                const Pair at = pair_at(tile, b, first_j + i, half);
                float first = gate_sum(sums, b, first_j + i, half, 0);
                float second = gate_sum(sums, b, first_j + i, half, 1);
                results.activate_columns(min(at.column, out - 2), first, second);
                if constexpr (has_residual) Results::add(asked.residual[half], first, second);
                results.template store<false>(at, pack_pair(Element{}, first, second));
                results.store_scaled_pair(at, asked.norm_weight, first, second);
                squares[i][0] = __fmul_rn(first, first);
                squares[i][1] = __fmul_rn(second, second);
            }
            const float even = reduce_lanes<Sum, 4>(squares[0][0] + squares[1][0]);
            const float odd = reduce_lanes<Sum, 4>(squares[0][1] + squares[1][1]);
            const Pair at = pair_at(tile, b, first_j, half);
            if (lane_ % 4 == 0 && at.token < results.tokens && at.column < out)
                store_squares(results, at.token, at.column, even + odd);
        }
    }

    /// 64 rows x 8 columns of results.
    __device__ void store_fragment(const Sums& sums, const Work& tile, int fragment) {
        if constexpr (gives_squares()) {
            if (fragment % 2 == 1) give_slot(results_, sums, tile, fragment - 1);
            return;
        }
        const int b = fragment / column_blocks;
        const int j = fragment % column_blocks;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const uint32 pair = packed(sums, tile, b, j, half);
            if constexpr (swapped && (cluster_k > 1 || geometry.tail_pairs)) {
                const Pair place{tile.column + 8 * j + lane_ / 4,
                                 tile.row + first_row(b) + 16 * warp_ + 8 * half + lane_ % 4 * 2};
                results_.store<false>(place, transposed(pair));
            } else {
                results_.store<swapped>(pair_at(tile, b, j, half), pair);
            }
        }
    }

    /// Of an 8 x 8 matrix that a warp holds, two elements of a row a lane, the transposed one.
    __device__ static uint32 transposed(uint32 pair) {
        uint32 result;
        asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(pair));
        return result;
    }

    __device__ static uint32 slot(int sender, int fragment) {
        return (sender * geometry.share() + fragment % geometry.share()) * products *
               geometry.fragment_bytes();
    }
    __device__ static float (&fragment_of(Sums& sums, int fragment, int product))[4] {
        const int block = fragment / column_blocks + (product == 1 && gated_rows ? result_blocks : 0);
        const int first = 4 * (fragment % column_blocks) + (product == 1 && gated_columns ? tile_n / 4 : 0);
        return *reinterpret_cast<float(*)[4]>(&sums[block][first]);
    }
    __device__ static void store_remote(uint32 to, const float (&v)[4]) {
        asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(v[0]), "f"(v[1]),
                     "f"(v[2]), "f"(v[3])
                     : "memory");
    }
    /// The cluster's parts of a fragment in order of rank, `own` being that of block `rank`; those of the
    /// others stand from `from` on.
    __device__ static void add_parts(float (&own)[4], int rank, uint32 from) {
        constexpr int pitch = geometry.share() * products * geometry.fragment_bytes();
        float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int sender = 0; sender < cluster_k; ++sender) {
            if (sender == rank) {
#pragma unroll
                for (int i = 0; i < 4; ++i) sum[i] += own[i];
            } else {
                add_local(from + sender * pitch, sum);
            }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) own[i] = sum[i];
    }
    __device__ static void add_local(uint32 from, float (&sum)[4]) {
        float v[4];
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                     : "r"(from)
                     : "memory");
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[i] += v[i];
    }

    uint32 shared_;
    const TensorMap& map_;
    const GivenResults& results_;
    int warpgroup_;
    int warp_;
    int lane_;
    Asked asked_[gives_squares() ? geometry.share() : 1];  ///< of this block's share of fragments
};

}  // namespace hone::linear::gemm
