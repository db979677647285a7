// Products of variant wgmma_w16 (product.cuh) without a pause (stages_together 0): those of one unit are
// always under way, across stages and the loop over them.
//
// A thread has two sets of fragments. A unit's four products are issued one behind the other from one set;
// beside them the next unit's fragments are made in the other one, of codes that have been read a unit
// before, and the codes of the one behind that are asked for. Nothing that takes time to come stands between
// two units' products then: neither codes and scales, nor the answer whether their stage is full, which is
// asked for in front of products.
//
// A stage goes back when the next one's first products have been issued and its own last ones are over.
#pragma once

#include "quantized_linear/wgmma_w16/units.cuh"

namespace hone::quantized_linear::w16 {

/// A warpgroup's way through the stages of a tile, as PausedPass.
template <int columns>
class SteadyPass {
  public:
    __device__ SteadyPass(uint32 shared, int k_count, const gemm::Ring& ring, const Units<columns>& units,
                          int /*warpgroup*/)
        : shared_(shared), k_count_(k_count), ahead_(ring), units_(units) {}

    template <class LastIssued>
    __device__ void run(LastIssued last_issued) {
        begin();
        for (;;) {
            if (multiply<0>()) break;
            if (multiply<1>()) break;
        }
        last_issued();
        wgmma_wait<0>();
        for (const Fragments& fragments : fragments_) pin<steps>(shared_, fragments, 0);
        units_.fence_sums();
        gemm::release_stage(shared_, stage_);
    }

    /// The place behind the stages that are done.
    __device__ gemm::Ring behind() const {
        gemm::Ring ring = ahead_;
        if constexpr (lead == 2) {  // one less than what has been asked for
            ring.parity ^= ring.stage == 0 ? 1 : 0;
            ring.stage = (ring.stage == 0 ? gemm::stages : ring.stage) - 1;
        }
        return ring;
    }

  private:
    /// Codes are read two units ahead: of a warpgroup's one block of rows two stages, of two blocks one.
    static constexpr int lead = 2 / gemm::row_blocks;
    static_assert(lead * gemm::row_blocks == 2, "two sets of fragments take turns");

    /// Fragments of the tile's first unit, and the second one's codes.
    __device__ void begin() {
        stage_ = ahead_.stage;
        barrier_wait(gemm::full_barrier(shared_, stage_), ahead_.parity);
        widen<steps>(units_.codes_of(stage_, 0), 0, fragments_[0]);
        ahead_.advance();
        next_ = ahead_.stage;
        if constexpr (lead == 1) {
            codes_[1] = units_.codes_of(stage_, 1);
        } else {
            const bool exists = k_count_ > 1;
            if (exists) barrier_wait(gemm::full_barrier(shared_, next_), ahead_.parity);
            codes_[1] = units_.codes_of(exists ? next_ : stage_, 0);
            ahead_.advance();
        }
    }

    /// The unit whose fragments are in that set; its products are under way in the end. Whether it was the
    /// tile's last one.
    template <int set>
    __device__ bool multiply() {
        constexpr int b = set % gemm::row_blocks;
        constexpr bool ends_stage = b + 1 == gemm::row_blocks;
        const uint32 is_full =
            b > 0 ? 1 : barrier_test(gemm::full_barrier(shared_, ahead_.stage), ahead_.parity);
        units_.template issue<steps>(fragments_[set], 0, stage_, b);
        wgmma_wait<1>();
        if (b == 0) release_beside_products(shared_, previous_, threadIdx.x % 32 | (k_ == 0 ? 1 : 0));
        if (ends_stage && k_ + 1 == k_count_) return true;
        // Behind the tile's last stage there is nothing to read: it is any codes then, and nobody uses them.
        const bool exists = k_ + lead < k_count_;
        if (exists && !is_full) barrier_wait(gemm::full_barrier(shared_, ahead_.stage), ahead_.parity);
        codes_[set] = units_.codes_of(exists ? ahead_.stage : stage_, b);
        widen<steps>(codes_[set ^ 1], 0, fragments_[set ^ 1]);
        if (ends_stage) advance();
        return false;
    }

    __device__ void advance() {
        previous_ = stage_;
        stage_ = lead == 1 ? ahead_.stage : next_;
        next_ = ahead_.stage;
        ahead_.advance();
        ++k_;
    }

    uint32 shared_;
    int k_count_;
    int k_ = 0;
    int previous_ = 0;  ///< the stage before, which goes back next
    int stage_ = 0;     ///< the k-th
    int next_ = 0;      ///< the one behind it
    gemm::Ring ahead_;  ///< the first one of which no codes have been read
    Units<columns> units_;
    Codes codes_[2];
    Fragments fragments_[2];  ///< units take turns
};

}  // namespace hone::quantized_linear::w16
