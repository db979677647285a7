// Products of variant wgmma_w16 (product.cuh) without a pause, as SteadyPass, but two stages at a time: what
// follows from the place in the ring is made once for both, and so are scales of groups that reach over both.
#pragma once

#include "quantized_linear/wgmma_w16/units.cuh"

namespace hone::quantized_linear::w16 {

/// A warpgroup's way through the stages of a tile, as PausedPass. The ring has an even number of stages, and
/// every tile, and every part of one, takes an even number of them.
template <int columns>
class PairedPass {
  public:
    __device__ PairedPass(uint32 shared, int k_count, const gemm::Ring& ring, const Units<columns>& units,
                          int warpgroup)
        : shared_(shared),
          left_(k_count),
          turn_(turn_of(warpgroup)),
          next_turn_(turn_of((warpgroup + 1) % gemm::consumers)),
          ring_(ring),
          units_(units) {}

    template <class LastIssued>
    __device__ void run(LastIssued last_issued) {
        begin();
        uint32 holds_back = 1;  // there is no stage before the first one
        for (;;) {
            follow();
            multiply<0>(holds_back);
            if constexpr (units == 4) {
                multiply<1>(0);
                multiply<2>(0);
            }
            if (multiply<units - 1>(0)) break;
            holds_back = 0;
            stage_ = next_;
        }
        last_issued();
        wgmma_wait<0>();
        for (const Fragments& fragments : fragments_) pin<steps>(shared_, fragments, 0);
        units_.fence_sums();
        gemm::release_stage(shared_, stage_ + 1);
    }

    /// The place behind the stages that are done.
    __device__ gemm::Ring behind() const { return ring_; }

  private:
    /// Units of two stages; their sets of fragments and codes take turns.
    static constexpr int units = 2 * gemm::row_blocks;
    static_assert(gemm::row_blocks <= 2);
    static_assert(!form.pairs || gemm::tiling.k_unit == 2, "stages come in pairs");
    /// The step of a unit behind which the next warpgroup may issue: until its products are there, the last
    /// one of this unit keeps the tensor cores busy.
    static constexpr int passes_turn_behind = steps - 2;

    /// Fragments of the tile's first unit, and the second one's codes.
    __device__ void begin() {
        stage_ = ring_.stage;
        barrier_wait(gemm::full_barrier(shared_, stage_), ring_.parity);
        codes_[0] = units_.codes_of(stage_, 0);
        widen<steps>(codes_[0], 0, fragments_[0]);
        if constexpr (gemm::row_blocks == 1)
            barrier_wait(gemm::full_barrier(shared_, stage_ + 1), ring_.parity);
        read<1>(stage_);
    }

    /// Where the next two stages stand. Behind the tile's last ones the second of those stands in: it is full
    /// and goes back last, and nobody uses what is made of it.
    __device__ void follow() {
        left_ -= 2;
        parity_ = ring_.parity;
        ring_.stage += 2;
        if (ring_.stage == gemm::stages) {
            ring_.stage = 0;
            ring_.parity ^= 1;
        }
        next_ = left_ > 0 ? ring_.stage : stage_ + 1;
        next_parity_ = left_ > 0 ? ring_.parity : parity_;
    }

    /// The codes of unit `unit` of two stages, of which `stage` is the first, or the second where that stands
    /// in for it.
    template <int unit>
    __device__ void read(int stage) {
        constexpr int i = unit / gemm::row_blocks;
        const int first = code_stages == 2 ? stage & ~1 : stage + i;
        units_.load_words(codes_[unit % 2], first, code_stages == 2 ? i : 0, unit % gemm::row_blocks);
    }
    /// What belongs to them. It is read as late as that: made of it between products, factors would hold
    /// these up.
    template <int unit>
    __device__ void read_rows(int stage) {
        if constexpr (!alike_scales || unit < gemm::row_blocks) {
            units_.load_rows(codes_[unit % 2], stage, unit % gemm::row_blocks);
        } else if constexpr (gemm::row_blocks == 1) {
            codes_[1].share_rows(codes_[0]);
        }
    }

    /// The products of a unit; they are under way in the end. Whether it was the tile's last one.
    template <int unit>
    __device__ bool multiply(uint32 holds_back) {
        constexpr int j = unit / gemm::row_blocks;
        constexpr int b = unit % gemm::row_blocks;
        constexpr int set = unit % 2;
        // Codes are read two units ahead.
        constexpr int ahead = (unit + 2) % units;
        constexpr bool of_next = unit + 2 >= units;
        constexpr bool opens = ahead % gemm::row_blocks == 0;
        const int from = of_next ? next_ : stage_;
        const uint32 barrier = gemm::full_barrier(shared_, from + ahead / gemm::row_blocks);
        const uint32 parity = of_next ? next_parity_ : parity_;
        const uint32 is_full = opens ? barrier_test(barrier, parity) : 1;
        if constexpr (in_turns) named_barrier_sync<256>(turn_);
        units_.template issue<steps>(fragments_[set], 0, stage_ + j, b, [&](int step) {
            if (in_turns && step == passes_turn_behind) named_barrier_arrive<256>(next_turn_);
        });
        wgmma_wait<1>();
        if constexpr (b == 0)
            release_beside_products(shared_, j == 1 ? stage_ : before(), threadIdx.x % 32 | holds_back);
        if constexpr (unit + 1 == units) {
            if (left_ == 0) return true;
        }
        if (opens && !is_full) barrier_wait(barrier, parity);
        constexpr int widened = (unit + 1) % units;
        read_rows<widened>((unit + 1 == units ? next_ : stage_) + widened / gemm::row_blocks);
        read<ahead>(from);
        widen<steps>(codes_[set ^ 1], 0, fragments_[set ^ 1]);
        return false;
    }
    /// The stage in front of stage_.
    __device__ int before() const { return (stage_ == 0 ? gemm::stages : stage_) - 1; }

    uint32 shared_;
    int left_;  ///< stages behind the two that are worked on
    int turn_;
    int next_turn_;
    int stage_ = 0;  ///< the first of the two that are worked on
    int next_ = 0;   ///< the first of those that follow
    uint32 parity_ = 0;
    uint32 next_parity_ = 0;
    gemm::Ring ring_;  ///< the place behind stage_
    Units<columns> units_;
    Codes codes_[2];
    Fragments fragments_[2];
};

}  // namespace hone::quantized_linear::w16
