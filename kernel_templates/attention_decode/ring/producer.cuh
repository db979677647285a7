// The producers of variant ring (kernel.cu): the copy engine, or warps with cp.async.
#pragma once

#include "attention_decode/ring/ring.cuh"
#include "device/level_2_rows.cuh"

namespace hone::attention_decode::ring {

/// Entries of a page table row, 64 of them in the registers of a warp: those from a position on, and the
/// next.
class PageWindow {
  public:
    /// From `page` on; entries past `last` are not read.
    __device__ void open(const int* table, int page, int last) {
        table_ = table;
        first_ = page;
        last_ = last;
        near_ = load(page);
        far_ = load(page + 32);
    }
    /// All lanes ask for the same page, the one they asked for last or the next.
    __device__ int at(int page) {
        if (page - first_ >= 32) {
            first_ += 32;
            near_ = far_;
            far_ = load(first_ + 32);
        }
        return __shfl_sync(0xffffffffu, near_, page - first_);
    }

  private:
    __device__ int load(int page) const {
        return table_[min(page + static_cast<int>(threadIdx.x % 32), last_)];
    }

    const int* table_;
    int first_;
    int last_;
    int near_;
    int far_;
};

/// One unit of K and V by the copy engine; all lanes of the warp, one of them issues.
class BoxProducer {
  public:
    __device__ BoxProducer(const Tensors& tensors, const TensorMap& k_map, const TensorMap& v_map)
        : tensors_(tensors), k_map_(k_map), v_map_(v_map) {
        prefetch_map(k_map);
        prefetch_map(v_map);
    }

    __device__ void begin(const Fragment& fragment, int) {
        visible_first_ = max(tensors_.visible(fragment.length).first, fragment.first_token);
        if constexpr (paged)
            window_.open(tensors_.page_table + fragment.sequence * tensors_.page_table_stride,
                         visible_first_ / page_size, (fragment.length - 1) / page_size);
    }

    __device__ void copy(Memory& memory, const Fragment& fragment, int number, int token) {
        const Stage stage(number);
        barrier_wait(shared_address(&memory.empty[stage.index]), stage.parity ^ 1);
        __syncwarp();  // no lane looks at the barrier any more when one of them fills the stage
        constexpr int boxes = unit / box_tokens;
        int outer[boxes];
        int inner[boxes];
        int present = 0;
#pragma unroll
        for (int box = 0; box < boxes; ++box) {
            const int first = token + box * box_tokens;
            const bool exists = first < fragment.length && first + box_tokens > visible_first_;
            present += exists;
            outer[box] = exists ? fragment.sequence : -1;
            inner[box] = first;
            if constexpr (paged) {
                inner[box] = first % page_size;
                const int page = max(min(first, fragment.length - 1), visible_first_) / page_size;
                const int place = window_.at(page);
                if (exists) outer[box] = place;
            }
        }
        if (threadIdx.x % 32 == 0) {
            issue(memory, k_map_, 0, stage.index, kv_head_of(fragment.list), outer, inner, present);
            issue(memory, v_map_, 1, stage.index, kv_head_of(fragment.list), outer, inner, present);
        }
        __syncwarp();
    }

  private:
    template <int boxes>
    __device__ static void issue(Memory& memory, const TensorMap& map, int operand, int stage, int head,
                                 const int (&outer)[boxes], const int (&inner)[boxes], int present) {
        const uint32 full = shared_address(&memory.full[operand][stage]);
        const uint32 to = shared_address(memory.ring[stage][operand]);
        barrier_arrive_expecting(full, present * panels * box_tokens * 128);
#pragma unroll
        for (int box = 0; box < boxes; ++box) {
            if (outer[box] < 0) continue;
#pragma unroll
            for (int panel = 0; panel < panels; ++panel)
                load_box<L2Hint::evict_first>(
                    to + panel * panel_bytes + box * box_tokens * 128, map,
                    Coordinates{panel_columns * panel, inner[box], head, outer[box]}, full);
        }
    }

    const Tensors& tensors_;
    const TensorMap& k_map_;
    const TensorMap& v_map_;
    PageWindow window_;
    int visible_first_;
};

/// One unit of K and V by the lanes of a warp, 16 bytes each at a time: lane i knows where tokens i and i +
/// 32 of the unit stand.
class LaneProducer {
  public:
    __device__ LaneProducer(const Tensors& tensors, const TensorMap&, const TensorMap&) : tensors_(tensors) {}

    __device__ void begin(const Fragment& fragment, int token) {
        visible_first_ = max(tensors_.visible(fragment.length).first, fragment.first_token);
        look_up(fragment, token);
    }

    __device__ void copy(Memory& memory, const Fragment& fragment, int number, int token) {
        const Stage stage(number);
        int64 offsets[token_words];
#pragma unroll
        for (int i = 0; i < token_words; ++i) offsets[i] = offset_of(fragment, token, i);
        look_up(fragment, token + producers * unit);
        barrier_wait(shared_address(&memory.empty[stage.index]), stage.parity ^ 1);
        copy_operand(memory, tensors_.k_cache, 0, stage.index, offsets);
        copy_operand(memory, tensors_.v_cache, 1, stage.index, offsets);
    }

  private:
    static constexpr int token_words = (unit + 31) / 32;

    __device__ int visible_token(const Fragment& fragment, int token, int i) const {
        const int lane = threadIdx.x % (unit < 32 ? unit : 32);
        return max(visible_first_, min(token + 32 * i + lane, fragment.length - 1));
    }
    /// Asks for the pages of the unit at `token`.
    __device__ void look_up(const Fragment& fragment, int token) {
        if constexpr (paged) {
#pragma unroll
            for (int i = 0; i < token_words; ++i)
                pages_[i] = tensors_.page_of(fragment.sequence, visible_token(fragment, token, i));
        }
    }
    __device__ int64 offset_of(const Fragment& fragment, int token, int i) const {
        const int visible = visible_token(fragment, token, i);
        const int head = kv_head_of(fragment.list);
        if constexpr (!paged)
            return tensors_.cache_offset(fragment.sequence, head) + visible * tensors_.cache_token_stride;
        return tensors_.cache_offset(pages_[i], head) + visible % page_size * tensors_.cache_token_stride;
    }

    __device__ static void copy_operand(Memory& memory, const CacheElement* from, int operand, int stage,
                                        const int64 (&offsets)[token_words]) {
        constexpr int row_chunks = 8 * panels;
        const int lane = threadIdx.x % 32;
        const uint32 to = shared_address(memory.ring[stage][operand]);
#pragma unroll
        for (int first = 0; first < unit * row_chunks; first += 32) {
            const int token = (first + lane) / row_chunks;
            const int chunk = (first + lane) % row_chunks;
            const int64 offset = __shfl_sync(0xffffffffu, offsets[first / (32 * row_chunks)], token % 32);
            copy_chunk_async_or_zero(to + offset_in_operand(token, chunk),
                                     from + offset + chunk_columns * chunk, chunk_columns * chunk < head_dim);
        }
        barrier_arrive_after_copies(shared_address(&memory.full[operand][stage]));
    }

    const Tensors& tensors_;
    int pages_[token_words];
    int visible_first_;
};

using Producer = Conditional<copy_engine, BoxProducer, LaneProducer>::type;

static_assert(Tuned::ahead == 0 || (!has_lengths && !paged),
              "lengths and pages are known when the call ahead has ended");
/// Which tokens a block reads is known before the call ahead has ended: its first ones are asked of level 2
/// then. The successor, which will do the same, is released when all that this block reads is under way. By
/// all producers, a token each.
__device__ inline void ask_ahead(const Tensors& tensors) {
    const Fragment fragment = Schedule(tensors).next();
    if (!fragment.present) return;
    const int token = fragment.first_token + static_cast<int>(threadIdx.x) - compute_threads;
    const int end = min(fragment.length, fragment.first_token + fragment.units * unit);
    if (token < tensors.visible(fragment.length).first || token >= end) return;
    const int64 offset = tensors.cache_offset(fragment.sequence, kv_head_of(fragment.list)) +
                         token * tensors.cache_token_stride;
    constexpr int row_bytes = head_dim * static_cast<int>(sizeof(CacheElement));
    prefetch_row_level_2(tensors.k_cache + offset, row_bytes);
    prefetch_row_level_2(tensors.v_cache + offset, row_bytes);
}

__device__ inline void produce(const Tensors& tensors, Memory& memory, const TensorMap& k_map,
                               const TensorMap& v_map) {
    const int warp = (threadIdx.x - compute_threads) / 32;
    Producer producer(tensors, k_map, v_map);
    Schedule schedule(tensors);
    int number = 0;
    for (Fragment fragment = schedule.next(); fragment.present; fragment = schedule.next()) {
        const int units = units_read(fragment);
        int index = (warp - number % producers + producers) % producers;
        if (index < units) producer.begin(fragment, fragment.first_token + index * unit);
#pragma unroll 1
        for (; index < units; index += producers)
            producer.copy(memory, fragment, number + index, fragment.first_token + index * unit);
        number += units;
    }
    if constexpr (Tuned::ahead != 0) release_successor();
}

}  // namespace hone::attention_decode::ring
