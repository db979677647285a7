// The finishing warps of variant ring (kernel.cu): they add up the warpgroups' sums of a tile, in their
// order, and turn them into results while the warpgroups are at the next tile.
#pragma once

#include "linear/ring/inbox.cuh"
#include "linear/ring/stager.cuh"

namespace hone::linear::ring {

class Finisher {
  public:
    static constexpr int threads = RingGeometry::finishers * 32;

    __device__ Finisher(const Tensors& tensors, Memory memory, const Schedule& schedule)
        : tensors_(tensors),
          memory_(memory),
          schedule_(schedule),
          thread_(static_cast<int>(threadIdx.x) - geometry.consumer_threads() - 32) {}

    __device__ void run() const {
        if constexpr (has_cluster) cluster_wait();
        Stager stager(tensors_, memory_, schedule_, thread_ / 32);
        for (int number = 0; number < schedule_.count; ++number) {
            const Inbox inbox(memory_, number);
            const int first_row = schedule_.tile(number) * geometry.rows + schedule_.rank * owned_rows;
            if constexpr (folds_norm) {
                stager.stage(number);
                if (number == 0) stager.share();
            }
            if constexpr (takes_squares()) {
                if (number == 0) share_factors(tensors_);
            }
            // What results need besides is asked for before their sums are there.
            Wanted wanted[ahead];
#pragma unroll
            for (int i = 0; i < ahead; ++i)
                wanted[i].load(tensors_, memory_, first_row, thread_ + i * threads);
            inbox.wait_full();
            const bool is_followed = number + 2 < schedule_.count;
            if (is_followed && thread_ == 0) inbox.open();
#pragma unroll
            for (int i = 0; i < ahead; ++i) finish(wanted[i], inbox);
            for (int i = ahead; i < each; ++i) {
                Wanted other;
                other.load(tensors_, memory_, first_row, thread_ + i * threads);
                finish(other, inbox);
            }
            // Without a tile that follows nobody waits for it, and who does not wait may have left.
            if (is_followed) inbox.tell_read();
        }
    }

  private:
    static constexpr int owned_rows = geometry.owned_rows();
    static constexpr int results = owned_rows * tokens;
    static constexpr int each = (results + threads - 1) / threads;
    static constexpr int ahead = each < 4 ? each : 4;

    /// A result, and what it needs besides its sums; what does not exist has that of the last row or token.
    struct Wanted {
        int token;
        int place;  ///< row of those that the block owns
        int row;
        float bias;
        float residual;
        float factor;       ///< behind a norm
        float next_weight;  ///< in front of one: the norm's weight

        __device__ void load(const Tensors& tensors, Memory memory, int first_row, int index) {
            token = index / owned_rows;
            place = index % owned_rows;
            row = first_row + place;
            const int real_row = min(row, out - 1);
            if constexpr (folds_norm) factor = Stager::factor(tensors, memory, min(token, tokens - 1));
            if constexpr (takes_squares()) factor = *memory.factor(min(token, tokens - 1));
            if constexpr (gives_squares()) next_weight = to_float(tensors.norm_weight[real_row]);
            if constexpr (has_bias) bias = to_float(tensors.bias[real_row]);
            if constexpr (has_residual) {
                const int64 real_token = min(static_cast<int64>(token), tensors.tokens - 1);
                residual = to_float(load_packet<Element, 1>(tensors.residual +
                                                            real_token * tensors.residual_stride + real_row)
                                        .elements[0]);
            }
        }
    };

    __device__ void finish(const Wanted& wanted, const Inbox& inbox) const {
        const bool is_none = wanted.token >= tensors_.tokens || wanted.token >= tokens || wanted.row >= out;
        if constexpr (gives_squares()) return give(tensors_, wanted, inbox, !is_none);
        if (is_none) return;
        store(wanted, result_of(wanted, inbox));
    }
    __device__ float result_of(const Wanted& wanted, const Inbox& inbox) const {
        float sums[products];
#pragma unroll
        for (int product = 0; product < products; ++product)
            sums[product] = inbox.sum(product * owned_rows + wanted.place, wanted.token);
        if constexpr (folds_norm || takes_squares()) {
#pragma unroll
            for (int product = 0; product < products; ++product) sums[product] *= wanted.factor;
        }
        return result(wanted, sums);
    }
    __device__ void store(const Wanted& wanted, float value) const {
        tensors_.out[wanted.token * tensors_.out_stride + wanted.row] = from_float<Element>(value);
    }

    /// Neighbouring lanes, as many as a slot has columns, have the slot's results of one token.
    template <class AnyTensors>
    __device__ void give(const AnyTensors& tensors, const Wanted& wanted, const Inbox& inbox,
                         bool exists) const {
        static_assert(!gives_squares() || (owned_rows % square_columns == 0 && out % square_columns == 0),
                      "a block owns whole slots");
        const float value = exists ? result_of(wanted, inbox) : 0.0f;
        const float squares = reduce_lanes<Sum, square_columns>(value * value);
        if (!exists) return;
        store(wanted, value);
        store_scaled(tensors, wanted.token, wanted.row, value * wanted.next_weight);
        if (threadIdx.x % square_columns == 0) store_squares(tensors, wanted.token, wanted.row, squares);
    }

    /// All finishing warps then know them.
    template <class AnyTensors>
    __device__ void share_factors(const AnyTensors& tensors) const {
        find_factors<RingGeometry::finishers, tokens>(
            tensors, thread_ / 32, [this](int token, float factor) { *memory_.factor(token) = factor; });
        asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory");
    }
    __device__ static float result(const Wanted& wanted, const float (&sums)[products]) {
        if constexpr (gated) return join_gated(sums[0], sums[products - 1]);
        float sum = sums[0];
        if constexpr (has_bias) sum += wanted.bias;
        sum = activate(sum);
        if constexpr (has_residual) sum += wanted.residual;
        return sum;
    }

    const Tensors& tensors_;
    Memory memory_;
    const Schedule& schedule_;
    int thread_;
};

}  // namespace hone::linear::ring
