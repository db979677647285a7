// The finishing warps of variant ring (kernel.cu): they add up what their block's inbox received, in the
// order of the sources, and turn it into results while the compute warps are at the next tiles.
#pragma once

#include "quantized_linear/ring/inbox.cuh"

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
        if constexpr (has_cluster) cluster_wait();
        const int owned = geometry.owned(schedule_.rank);
        if constexpr (linear::takes_squares()) share_factors(tensors_);
        for (int number = 0; number < schedule_.tile_count; ++number) {
            // What results need besides is asked for before their sums are there.
            Results results(*this, number, warp_);
            const Inbox inbox(memory_, number);
            inbox.wait_full();
            const bool is_followed = number + 2 < schedule_.tile_count;
            if (is_followed && warp_ == 0 && lane_ == 0) inbox.open(schedule_.rank);
            for (int place = warp_; place < owned; place += finishers) {
                if constexpr (linear::gives_squares()) {
                    // What is asked for has come before a warp ends: nothing behind its last place.
                    if (place + finishers >= owned) {
                        finish(results, inbox, place);
                        break;
                    }
                }
                const Results next(*this, number, place + finishers);
                finish(results, inbox, place);
                results = next;
            }
            // Without a tile that follows nobody waits for it, and who does not wait may have left.
            if (is_followed) inbox.tell_read();
        }
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
                    scales[product][i] = sum_factor(tensors.weight_of(product), real);
                if constexpr (linear::gives_squares()) next_weights[i] = to_float(tensors.norm_weight[real]);
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
            if constexpr (linear::takes_squares()) {
#pragma unroll
                for (int j = 0; j < 2; ++j)
                    factors[j] =
                        __uint_as_float(load_shared(finisher.memory_.factor(static_cast<int>(token) + j)));
            }
        }

        /// The result of row i and token j.
        __device__ float result(float (&sums)[products], int i, int j) const {
            if constexpr (linear::takes_squares()) {
#pragma unroll
                for (int product = 0; product < products; ++product) sums[product] *= factors[j];
            }
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
        float factors[2];  ///< behind a norm, of the tokens
        float biases[2];
        float residuals[2][2];
        float next_weights[2];  ///< in front of a norm: its weight
    };

    __device__ void finish(const Results& results, const Inbox& inbox, int place) const {
        float4 sums[products];
#pragma unroll
        for (int product = 0; product < products; ++product) sums[product] = add_up(inbox, place, product);
        Packet<Element, 2> values[2];  // of a token, both rows
        Given given;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                float both[products];
#pragma unroll
                for (int product = 0; product < products; ++product)
                    both[product] = (&sums[product].x)[2 * i + j];
                const float value = results.result(both, i, j);
                values[j].elements[i] = from_float<Element>(value);
                if constexpr (linear::gives_squares()) given.add(results, i, j, value);
            }
        }
        if constexpr (has_pairs)
            store_pairs(results, values, tensors_.out, tensors_.out_stride);
        else
            store(results, values);
        if constexpr (linear::gives_squares()) give(tensors_, results, given);
    }

    /// What a lane gives a norm behind: results times its weight, and squares of its tokens.
    struct Given {
        Packet<Element, 2> scaled[2];
        float squares[2] = {0.0f, 0.0f};

        __device__ void add(const Results& results, int i, int j, float value) {
            scaled[j].elements[i] = from_float<Element>(value * results.next_weights[i]);
            squares[j] = fmaf(value, value, squares[j]);
        }
    };
    /// The rows of a fragment are a slot: every fourth lane has the same tokens.
    template <class AnyTensors>
    __device__ void give(const AnyTensors& tensors, const Results& results, const Given& given) const {
        static_assert(!linear::gives_squares() || (linear::square_columns == 16 && has_pairs));
        store_pairs(results, given.scaled, tensors.scaled, out);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            float sum = given.squares[j];
#pragma unroll
            for (int distance = 4; distance < 32; distance *= 2)
                sum += __shfl_xor_sync(0xffffffffu, sum, distance);
            if (lane_ < 4 && results.token + j < tensors.tokens && results.row < out)
                linear::store_squares(tensors, results.token + j, static_cast<int>(results.row), sum);
        }
    }

    /// All finishing warps then know them.
    template <class AnyTensors>
    __device__ void share_factors(const AnyTensors& tensors) const {
        linear::find_factors<finishers, geometry.tokens>(tensors, warp_, [this](int token, float factor) {
            asm volatile("st.shared.f32 [%0], %1;" ::"r"(memory_.factor(token)), "f"(factor) : "memory");
        });
        asm volatile("bar.sync 1, %0;" ::"n"(finishers * 32) : "memory");
    }

    __device__ static float4 add_up(const Inbox& inbox, int place, int product) {
        float4 sums{0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int source = 0; source < geometry.sources(); ++source) {
            const float4 more = inbox.sums(place, product, source);
            sums.x += more.x;
            sums.y += more.y;
            sums.z += more.z;
            sums.w += more.w;
        }
        return sums;
    }

    __device__ void store(const Results& results, const Packet<Element, 2> (&values)[2]) const {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int64 row = results.row + 8 * i;
                const int64 token = results.token + j;
                if (row < out && token < tensors_.tokens)
                    tensors_.out[token * tensors_.out_stride + row] = values[j].elements[i];
            }
        }
    }
    /// Lanes of neighbouring rows exchange: the even row's has both rows of the first token then, the odd
    /// row's those of the second.
    __device__ void store_pairs(const Results& results, const Packet<Element, 2> (&values)[2], Element* to,
                                int64 stride) const {
        const bool odd = lane_ / 4 % 2 != 0;
        uint32 words[2];
        memcpy(words, values, 8);
        const uint32 kept = odd ? words[1] : words[0];
        const uint32 taken = __shfl_xor_sync(0xffffffffu, odd ? words[0] : words[1], 4);
        const uint32 low = odd ? taken : kept;
        const uint32 high = odd ? kept : taken;
        const int64 token = results.token + (odd ? 1 : 0);
        if (token >= tensors_.tokens) return;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int64 row = results.row - (odd ? 1 : 0) + 8 * i;
            if (row < out)
                store_word<StoreHint::normal, 4>(to + token * stride + row,
                                                 __byte_perm(low, high, i == 0 ? 0x5410 : 0x7632));
        }
    }

    /// Then rows of results begin at multiples of 32 bytes.
    static constexpr bool has_pairs = out % 16 == 0;

    const Tensors& tensors_;
    Memory memory_;
    const Schedule& schedule_;
    int warp_;
    int lane_;
};

}  // namespace hone::quantized_linear::ring
