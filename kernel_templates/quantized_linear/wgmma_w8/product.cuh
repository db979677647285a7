// Products of 8-bit codes (kernel.cu): what linear/wgmma/product.cuh's consumers do with the stages of the
// ring.
#pragma once

#include "device/wgmma_8bit.cuh"
#include "linear/wgmma/consumer.cuh"
#include "quantized_linear/wgmma_w8/scales.cuh"

namespace hone::quantized_linear::w8 {

/// Steps of the ring whose products the tensor cores add up themselves; 0: all.
inline constexpr int part_steps = static_cast<int>(Tuned::promote) * wgmma_codes / gemm::operands.columns;
static_assert(!has_blocks || part_steps == 1, "blocks have a scale a step");
static_assert(format == Format::fp8 || part_steps == 0, "integer sums are exact");
static_assert(gemm::row_blocks == 1 || gemm::stages > part_steps, "a part stays until all rows have had it");
static_assert(!has_blocks || gemm::swapped || scaled_block % gemm::result_columns == 0,
              "the columns of a tile share a scale");

class CodeProduct {
  public:
    __device__ explicit CodeProduct(const Scales& scales) : scales_(scales) {}

    /// As ElementProduct::multiply.
    template <class LastIssued>
    __device__ void multiply(uint32 shared, int warpgroup, const gemm::Work& tile, gemm::Ring& ring,
                             gemm::Sums& sums, LastIssued last_issued) const {
        TileScales scales;
        const auto last = [&] {
            last_issued();
            if constexpr (!has_blocks) scales.load(scales_, tile, warpgroup, 0);
        };
        if constexpr (part_steps > 0) {
            multiply_parts(shared, warpgroup, tile, ring, sums, last);
        } else {
            multiply_whole(shared, warpgroup, tile.k_count, ring, sums, last);
        }
        if constexpr (!has_blocks) {
#pragma unroll
            for (int b = 0; b < gemm::row_blocks; ++b)
                scales.for_each(b, [&](int i, float scale) { sums[b][i] *= scale; });
        }
    }

  private:
    using Hardware = Conditional<format == Format::fp8, float, int>::type;
    /// Sums of a block of 64 rows.
    using Accumulators = Hardware[gemm::tile_n / 2];

    /// A stage is free again when the products of the next one have been issued.
    template <class LastIssued>
    __device__ static void multiply_whole(uint32 shared, int warpgroup, int k_count, gemm::Ring& ring,
                                          gemm::Sums& sums, LastIssued last_issued) {
        // Integer sums stand where floats will: copied to registers of their own, ptxas spills both.
        auto& parts = reinterpret_cast<Accumulators(&)[gemm::row_blocks]>(sums);
#pragma unroll
        for (int b = 0; b < gemm::row_blocks; ++b) fence_accumulators(parts[b]);
        int previous = 0;
        for (int k = 0; k < k_count; ++k) {
            barrier_wait(gemm::full_barrier(shared, ring.stage), ring.parity);
            wgmma_fence();
#pragma unroll
            for (int step = 0; step < gemm::operands.columns / wgmma_codes; ++step) {
#pragma unroll
                for (int b = 0; b < gemm::row_blocks; ++b)
                    multiply_step(shared, warpgroup, parts[b], ring.stage, b, step, k | step);
            }
            wgmma_commit();
            wgmma_wait<1>();
            if (k > 0) gemm::release_stage(shared, previous);
            previous = ring.stage;
            ring.advance();
        }
        last_issued();
        wgmma_wait<0>();
#pragma unroll
        for (int b = 0; b < gemm::row_blocks; ++b) fence_accumulators(parts[b]);
        gemm::release_stage(shared, previous);
        if constexpr (format == Format::w8a8) convert(sums);
    }
    __device__ static void convert(gemm::Sums& sums) {
#pragma unroll
        for (int b = 0; b < gemm::row_blocks; ++b) {
#pragma unroll
            for (int i = 0; i < gemm::tile_n / 2; ++i)
                sums[b][i] = static_cast<float>(__float_as_int(sums[b][i]));
        }
    }

    /// Sums of some steps at a time come from the tensor cores and are added up in float32, one block of rows
    /// after the other; other warpgroups multiply meanwhile.
    template <class LastIssued>
    __device__ void multiply_parts(uint32 shared, int warpgroup, const gemm::Work& tile, gemm::Ring& ring,
                                   gemm::Sums& sums, LastIssued last_issued) const {
#pragma unroll
        for (int b = 0; b < gemm::row_blocks; ++b) {
#pragma unroll
            for (int i = 0; i < gemm::tile_n / 2; ++i) sums[b][i] = 0.0f;
        }
        for (int k = 0; k < tile.k_count; k += part_steps) {
            const int count = min(part_steps, tile.k_count - k);
            TileScales scales;
            if constexpr (has_blocks) scales.load(scales_, tile, warpgroup, tile.first_k + k);
            const gemm::Ring first = ring;
#pragma unroll
            for (int b = 0; b < gemm::row_blocks; ++b) {
                const bool is_last = b == gemm::row_blocks - 1;
                Accumulators part;
                ring = first;
                multiply_part(shared, warpgroup, part, b, count, ring);
                if (is_last && k + part_steps >= tile.k_count) last_issued();
                wgmma_wait<0>();
                fence_accumulators(part);
                if (is_last) gemm::release_stage(shared, (ring.stage == 0 ? gemm::stages : ring.stage) - 1);
                add(sums[b], part, scales, b);
            }
        }
    }
    /// Issues the products of `count` steps for the block of rows b; the last block gives the steps back but
    /// for the last one.
    __device__ static void multiply_part(uint32 shared, int warpgroup, Accumulators& part, int b, int count,
                                         gemm::Ring& ring) {
        fence_accumulators(part);
        int previous = 0;
        for (int k = 0; k < count; ++k) {
            barrier_wait(gemm::full_barrier(shared, ring.stage), ring.parity);
            wgmma_fence();
#pragma unroll
            for (int step = 0; step < gemm::operands.columns / wgmma_codes; ++step)
                multiply_step(shared, warpgroup, part, ring.stage, b, step, k | step);
            wgmma_commit();
            if (part_steps > 1 && b == gemm::row_blocks - 1) {
                wgmma_wait<1>();
                if (k > 0) gemm::release_stage(shared, previous);
            }
            previous = ring.stage;
            ring.advance();
        }
    }
    __device__ static void add(float (&sums)[gemm::tile_n / 2], const Accumulators& part,
                               const TileScales& scales, int b) {
        if constexpr (has_blocks) {
            scales.for_each(b, [&](int i, float scale) { sums[i] = fmaf(part[i], scale, sums[i]); });
        } else {
#pragma unroll
            for (int i = 0; i < gemm::tile_n / 2; ++i) sums[i] += part[i];
        }
    }

    __device__ static void multiply_step(uint32 shared, int warpgroup, Accumulators& sums, int stage, int b,
                                         int step, int accumulate) {
        constexpr auto g = gemm::geometry;
        const uint64 left = panel_descriptor(shared + g.left_at() + stage * g.left_bytes());
        const uint64 right = panel_descriptor(shared + g.right_at() + stage * g.right_bytes());
        const uint32 row = gemm::block_row(warpgroup, b) * panel_pitch;
        const uint32 column = step * wgmma_codes;
        WgmmaCodes<Code, gemm::tile_n>::multiply(sums, advance_descriptor(left, row + column),
                                                 advance_descriptor(right, column), accumulate);
    }

    const Scales& scales_;
};

}  // namespace hone::quantized_linear::w8
