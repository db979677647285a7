// The finishing warps of variant ring (ring.cu): they add up what their block's inbox received, in the order
// of the sources, and turn it into results while the compute warps are at the next tiles.
#pragma once

#include "device/stream.cuh"
#include "quantized_linear/ring.cuh"

namespace hone::quantized_linear::ring {

class Finisher {
  public:
    __device__ Finisher(const Tensors& tensors, Memory memory, const Schedule& schedule)
        : tensors_(tensors),
          memory_(memory),
          schedule_(schedule),
          warp_(threadIdx.x / 32 - compute_warps),
          lane_(threadIdx.x % 32) {}

    __device__ void run() const {
        if constexpr (cluster_k > 1) cluster_wait();
        const int owned = geometry.owned(schedule_.rank);
        for (int number = 0; number < schedule_.tile_count; ++number) {
            // What results need besides is asked for before their sums are there.
            Results results(*this, number, warp_);
            barrier_wait_cluster(memory_.inbox_full(number), inbox_parity(number));
            open_next(number);
            for (int place = warp_; place < owned; place += finishers) {
                const Results next(*this, number, place + finishers);
                finish(results, number, place);
                results = next;
            }
            __syncwarp();
            tell_read(number);
        }
    }

    /// By one thread before the kernel's first barrier, and when the inbox was full: of tile `number`.
    __device__ static void open(Memory memory, int rank, int number) {
        barrier_arrive_expecting(memory.inbox_full(number), inbox_bytes(rank));
    }

  private:
    /// Two rows and two tokens of a lane, and what their results need besides the sums; what does not exist
    /// has that of the last row or token.
    struct Results {
        __device__ Results(const Finisher& finisher, int number, int place) {
            const int result = place * cluster_k + finisher.schedule_.rank;
            token = result % token_blocks * 8 + finisher.lane_ % 4 * 2;
            row = static_cast<int64>(finisher.schedule_.tile(number)) * geometry.rows +
                  result / token_blocks * 16 + finisher.lane_ / 4;
            const Tensors& tensors = finisher.tensors_;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int64 real = min(row + 8 * i, static_cast<int64>(out - 1));
#pragma unroll
                for (int product = 0; product < products; ++product)
                    scales[product][i] = row_scale(weight_of(tensors, product), real);
                if constexpr (has_bias) biases[i] = to_float(tensors.bias[real]);
                if constexpr (has_residual) {
#pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        const int64 place = min(token + j, tensors.tokens - 1) * tensors.residual_stride;
                        residuals[i][j] =
                            to_float(load_packet<Element, 1>(tensors.residual + place + real).elements[0]);
                    }
                }
            }
        }

        /// Of row i and token j.
        __device__ float result(const float (&sums)[products], int i, int j) const {
            if constexpr (gated)
                return linear::join_gated(sums[0] * scales[0][i],
                                          sums[products - 1] * scales[products - 1][i]);
            float sum = sums[0] * scales[0][i];
            if constexpr (has_bias) sum += biases[i];
            sum = linear::activate(sum);
            if constexpr (has_residual) sum += residuals[i][j];
            return sum;
        }

        int64 token;
        int64 row;
        float scales[products][2];
        float biases[2];
        float residuals[2][2];
    };

    /// Groups have had theirs.
    __device__ static float row_scale(const Weight& weight, int64 row) {
        if constexpr (has_groups) return 1.0f;
        return to_float(weight.scales[format == Format::w8a16 ? row : scale_place(row, 0, 1)]);
    }

    __device__ void finish(const Results& results, int number, int place) const {
        float4 sums[products];
#pragma unroll
        for (int product = 0; product < products; ++product) sums[product] = add_up(number, place, product);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                float both[products];
#pragma unroll
                for (int product = 0; product < products; ++product)
                    both[product] = (&sums[product].x)[2 * i + j];
                const int64 row = results.row + 8 * i;
                const int64 token = results.token + j;
                const Element value = from_float<Element>(results.result(both, i, j));
                if (row < out && token < tensors_.tokens)
                    tensors_.result[token * tensors_.out_stride + row] = value;
            }
        }
    }

    __device__ float4 add_up(int number, int place, int product) const {
        const uint32 from = memory_.place(number, place) + (product * geometry.sources() * 32 + lane_) * 16;
        float4 sums{0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int source = 0; source < geometry.sources(); ++source) {
            const uint4 word = load_shared_16(from + source * 512);
            sums.x += __uint_as_float(word.x);
            sums.y += __uint_as_float(word.y);
            sums.z += __uint_as_float(word.z);
            sums.w += __uint_as_float(word.w);
        }
        return sums;
    }

    __device__ void open_next(int number) const {
        if (warp_ == 0 && lane_ == 0) open(memory_, schedule_.rank, number + 2);
    }
    /// To all blocks of the cluster, where someone will wait for it: nobody may have left.
    __device__ void tell_read(int number) const {
        if (number + 2 >= schedule_.tile_count || lane_ >= cluster_k) return;
        barrier_arrive_remote(remote_address(memory_.inbox_read(number), lane_));
    }

    const Tensors& tensors_;
    Memory memory_;
    const Schedule& schedule_;
    int warp_;
    int lane_;
};

}  // namespace hone::quantized_linear::ring
