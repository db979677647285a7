// The producer of variant ring (kernel.cu): one thread.
#pragma once

#include "device/bulk.cuh"
#include "quantized_linear/ring/block.cuh"

namespace hone::quantized_linear::ring {

class Producer {
  public:
    __device__ Producer(const Tensors& tensors, const TensorMap& x_map, Memory memory,
                        const Schedule& schedule)
        : tensors_(tensors), x_map_(x_map), memory_(memory), schedule_(schedule) {}

    /// Weights do not depend on the kernel before: they fill the ring while that one ends. Where x passes
    /// through the ring only half of it: the copy engine takes requests in order, and x of the first step would
    /// wait for all of them.
    __device__ void run() {
        prefetch_map(x_map_);
        int number = 0;
        int step = 0;
        const auto advance = [&] {
            if (++step < schedule_.steps) return;
            step = 0;
            ++number;
        };
        constexpr int early = x_streams ? (stages + 1) / 2 : stages;
        for (int stage = 0; stage < early && number < schedule_.tile_count; ++stage, advance())
            fill(number, step, stage);
        wait_for_predecessor();
        fence_async_proxy_global();
        if constexpr (x_streams) {
            for (int index = 0; index < min(early, schedule_.steps * schedule_.tile_count); ++index)
                load_x(index % schedule_.steps, memory_.stage(index), memory_.full(index));
        } else {
            keep_x();
        }
        RingPosition<stages> ring;
        // The first round of stages is empty.
        for (ring.advance(early); number < schedule_.tile_count; ring.advance(), advance()) {
            barrier_wait(memory_.empty(ring.stage), ring.parity ^ 1);
            fill(number, step, ring.stage);
            if constexpr (x_streams) load_x(step, memory_.stage(ring.stage), memory_.full(ring.stage));
        }
    }

  private:
    /// Codes, scales and zero points of a step's units for all rows of the tile: each block of 64 rows has
    /// them side by side. x that passes through the ring is announced with them.
    __device__ void fill(int number, int step, int stage) const {
        const int units = schedule_.units(step);
        const int unit = schedule_.first_unit + step * geometry.stage_units();
        const int tile = schedule_.tile(number);
        const uint32 barrier = memory_.full(stage);
        const uint32 to = memory_.stage(stage);
        barrier_arrive_expecting(barrier, units * (geometry.unit_bytes() + geometry.unit_x_bytes()));
#pragma unroll
        for (int block = 0; block < geometry.tile_blocks(); ++block) {
            constexpr int product_blocks = geometry.tile_blocks() / products;
            const Weight& weight = tensors_.weight_of(block / product_blocks);
            // Behind the last block there is nothing: results of rows that do not exist are not stored.
            const int64 row = min(tile * product_blocks + block % product_blocks, all_blocks - 1);
            copy(to + geometry.codes_at() + block * geometry.row_code_bytes(), weight.codes,
                 row * units_a_row + unit, units, geometry.unit_blocks() * geometry.block_bytes(), barrier);
            if constexpr (has_groups)
                copy(to + geometry.scales_at() + block * geometry.row_scale_bytes(), weight.scales,
                     row * units_a_row + unit, units, geometry.unit_scale_bytes(), barrier);
            if constexpr (geometry.zeros)
                copy(to + geometry.zeros_at() + block * geometry.row_zero_bytes(), weight.zeros,
                     row * units_a_row + unit, units, geometry.unit_zero_bytes(), barrier);
        }
    }

    /// `units` units of `bytes` each, from number `unit` of the whole weight on.
    __device__ static void copy(uint32 to, const void* from, int64 unit, int units, int bytes,
                                uint32 barrier) {
        load_bytes<L2Hint::evict_first>(to, static_cast<const uint8*>(from) + unit * bytes, units * bytes,
                                        barrier);
    }

    /// The boxes of x that a step takes.
    __device__ void load_x(int step, uint32 to, uint32 barrier) const {
        const int boxes = schedule_.units(step) * geometry.unit_blocks();
        const int first = (schedule_.first_unit + step * geometry.stage_units()) * geometry.unit_columns();
        for (int box = 0; box < boxes; ++box)
            load_box<L2Hint::evict_last>(to + box * geometry.box_bytes(), x_map_, first + box * block_columns,
                                         0, barrier);
    }
    /// x of all steps, once for all tiles.
    __device__ void keep_x() const {
        for (int step = 0; step < schedule_.steps; ++step) {
            const uint32 barrier = memory_.x_full(step);
            barrier_arrive_expecting(barrier,
                                     schedule_.units(step) * geometry.unit_blocks() * geometry.box_bytes());
            load_x(step, memory_.x(step, 0), barrier);
        }
    }

    static constexpr int all_blocks = static_cast<int>(whole_blocks(out));
    static constexpr int units_a_row = geometry.units();

    const Tensors& tensors_;
    const TensorMap& x_map_;
    Memory memory_;
    const Schedule& schedule_;
};

}  // namespace hone::quantized_linear::ring
