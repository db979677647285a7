// The units of variant wgmma_w16's products (product.cuh): what a warpgroup has of one, from codes in the
// ring to products under way, two pairs of steps each.
#pragma once

#include "device/wgmma_left.cuh"
#include "linear/wgmma/consumer.cuh"
#include "quantized_linear/wgmma_w16/fragments.cuh"

namespace hone::quantized_linear::w16 {

/// Stages whose products have no pause between them; 0: none have.
inline constexpr int together = form.together;
/// Whether warpgroups that share a tile issue their units in turns.
inline constexpr bool in_turns = form.turns && gemm::consumers > 1 && !gemm::ping_pong;
static_assert(gemm::stages >= form.held() + 2, "the next ones come while these are worked on");

/// The named barrier at which a warpgroup waits for its turn, and the one before gives it; 1 to 5 are those
/// of writers and of ping-pong. The first turn is given before the first tile, the last one taken behind the
/// last, so that none is open in the end.
__device__ inline int turn_of(int warpgroup) { return 8 + warpgroup; }
__device__ inline void begin_turns(int warpgroup) {
    if (in_turns && warpgroup + 1 == gemm::consumers) named_barrier_arrive<256>(turn_of(0));
}
__device__ inline void end_turns(int warpgroup) {
    if (in_turns && warpgroup == 0) named_barrier_sync<256>(turn_of(0));
}

/// Whether that phase of a barrier is over; blocks nobody (device/mbarrier.cuh).
__device__ inline uint32 barrier_test(uint32 barrier, uint32 parity) {
    uint32 done;
    asm volatile(
        "{\n.reg .pred done;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
    return done;
}

/// As gemm::release_stage, without a branch; by lanes whose `lane` is 0.
__device__ inline void release_beside_products(uint32 shared, int stage, uint32 lane) {
    asm volatile(
        "{\n.reg .pred leads;\nsetp.eq.u32 leads, %1, 0;\n"
        "@leads mbarrier.arrive.shared::cta.b64 _, [%0];\n}" ::"r"(gemm::empty_barrier(shared, stage)),
        "r"(lane)
        : "memory");
}

/// A store that never happens, of something that `count` steps' fragments from `step` on are needed for:
/// ptxas moves no store across the wait for products, as it would move the widening. Two stores would be
/// jumped over, by a branch.
template <int count>
__device__ inline void pin(uint32 shared, const Fragments& fragments, int step) {
    uint32 all = 0;
#pragma unroll
    for (int i = 0; i < 4 * count; ++i) all |= fragments.words[step + i / 4][i % 4];
    asm volatile(
        "{\n.reg .pred never;\nsetp.eq.u32 never, %0, 0;\n@never st.shared.u32 [%0], %1;\n}" ::"r"(shared),
        "r"(all)
        : "memory");
}

/// The sums of a tile's first `columns` columns.
template <int columns>
__device__ inline float (&first_of(float (&sums)[gemm::tile_n / 2]))[columns / 2] {
    return reinterpret_cast<float(&)[columns / 2]>(sums);
}

/// Fragments of `count` steps from `step` on.
template <int count>
__device__ inline void widen(const Codes& codes, int step, Fragments& to) {
#pragma unroll
    for (int i = step; i < step + count; ++i) codes.widen(i, to);
#pragma unroll
    for (int i = step; i < step + count; ++i) fence_fragments(to.words[i]);
}

/// What a warpgroup's units of a tile have in common.
template <int columns>
class Units {
  public:
    __device__ Units(uint32 shared, int warpgroup, gemm::Sums& sums, const RowFactors& factors)
        : places_(shared, gemm::block_row(warpgroup, 0) / block_rows),
          right_((shared >> 4) + static_cast<uint32>(panel_descriptor(gemm::geometry.right_at()))),
          sums_(sums),
          factors_(factors) {}

    /// Codes of the warpgroup's block b of rows.
    __device__ Codes codes_of(int stage, int b) const {
        const int block = (gemm::block_row(0, b) - gemm::block_row(0, 0)) / block_rows;
        return Codes(places_, stage, block, factors_.zeros(b));
    }

    /// The codes of block b alone, those of the i-th of code_stages stages; and what belongs to some.
    __device__ void load_words(Codes& to, int stage, int i, int b) const {
        to.load_words(places_, stage, i, (gemm::block_row(0, b) - gemm::block_row(0, 0)) / block_rows);
    }
    __device__ void load_rows(Codes& to, int stage, int b) const {
        to.load_rows(places_, stage, (gemm::block_row(0, b) - gemm::block_row(0, 0)) / block_rows,
                     factors_.zeros(b));
    }

    /// The products of `count` steps from `step` on with a stage of x, added to the sums of block b. Behind
    /// each it calls issued(step).
    template <int count>
    __device__ void issue(Fragments& fragments, int step, int stage, int b) {
        issue<count>(fragments, step, stage, b, [](int) {});
    }
    template <int count, class Issued>
    __device__ void issue(Fragments& fragments, int step, int stage, int b, Issued issued) {
        const uint32 right = right_ + stage * (gemm::geometry.right_bytes() >> 4);
#pragma unroll
        for (int i = step; i < step + count; ++i) fence_fragments(fragments.words[i]);
        wgmma_fence();
#pragma unroll
        for (int i = step; i < step + count; ++i) {
            WgmmaLeft<Element, columns, false>::multiply(first_of<columns>(sums_[b]), fragments.words[i],
                                                         descriptor(right + (i * 32 >> 4)), 1);
            issued(i);
        }
        wgmma_commit();
    }

    /// The sums are whole when the products are over.
    __device__ void fence_sums() {
#pragma unroll
        for (int b = 0; b < gemm::row_blocks; ++b) fence_accumulators(sums_[b]);
    }

  private:
    /// A panel's descriptor, whose low word alone says where it stands.
    __device__ static uint64 descriptor(uint32 low) { return panel_descriptor(0) & ~0xffffffffull | low; }

    ThreadPlaces places_;
    uint32 right_;  ///< low word of the descriptor of x in the ring's first stage
    gemm::Sums& sums_;
    const RowFactors& factors_;
};

}  // namespace hone::quantized_linear::w16
