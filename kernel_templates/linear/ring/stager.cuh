// Variant ring (kernel.cu) behind a norm: the finishing warps bring x into the ring, times the norm's weight,
// and add up its squares on the way; sums are multiplied with 1 / sqrt(mean(x^2) + epsilon) at the end.
//
// Each warp takes every third step. x comes through level 1, some steps at a time, and is stored as tensor
// copies swizzle it; a warp's arrival at full[stage] says so, beside the bytes of the weights.
#pragma once

#include "device/level_2.cuh"
#include "device/reduce.cuh"
#include "device/shared_tile.cuh"
#include "device/tma.cuh"
#include "device/widen_fp8.cuh"
#include "linear/ring/block.cuh"

namespace hone::linear::ring {

class Stager {
  public:
    static constexpr int warps = RingGeometry::finishers;

    /// `warp`: of those that finish.
    __device__ Stager(const Tensors& tensors, Memory memory, const Schedule& schedule, int warp)
        : tensors_(tensors), memory_(memory), schedule_(schedule), warp_(warp), next_(warp) {}

    /// Level 2 is asked for the norm's weight, which nothing writes: stands in front of the wait for x.
    __device__ static void ask_for_norm_weight(const Tensors& tensors, int thread) {
        constexpr int line = 128 / sizeof(Element);
        for (int column = thread * line; column < in; column += warps * 32 * line)
            prefetch_level_2(tensors.norm_weight + column);
    }

    /// All steps of the block's tile `number`, each once its stage is free.
    __device__ void stage(int number) {
        const int begin = number * schedule_.steps;
        const int end = begin + schedule_.steps;
        while (next_ < end) {
            Held held[together];
#pragma unroll
            for (int i = 0; i < together; ++i) {
                if (next_ + i * warps < end) load(next_ + i * warps - begin, held[i]);
            }
#pragma unroll
            for (int i = 0; i < together; ++i) {
                if (next_ >= end) break;
                if (number == 0) add_squares(held[i]);
                store(held[i], next_);
                next_ += warps;
            }
        }
    }

    /// Behind the first tile: all finishing warps then know the squares of all tokens.
    __device__ void share() {
        constexpr int width = token_chunks < 32 ? token_chunks : 32;
#pragma unroll
        for (int k = 0; k < lane_chunks; k += weights_held) {
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < weights_held; ++i) sum += squares_[k + i];
            sum = reduce_lanes<Sum, width>(sum);
            if (lane() % width == 0 && chunk(k) < geometry.stage_chunks())
                *memory_.squares(warp_, chunk(k) / token_chunks) = sum;
        }
        asm volatile("bar.sync 1, %0;" ::"n"(warps * 32) : "memory");
    }

    /// What a token's sums are multiplied with.
    __device__ static float factor(const Tensors& tensors, Memory memory, int token) {
        float sum = 0.0f;
#pragma unroll
        for (int warp = 0; warp < warps; ++warp) sum += *memory.squares(warp, token);
        return rsqrtf(sum * (1.0f / in) + tensors.epsilon);
    }

  private:
    /// Chunks of 16 bytes of a token in a stage, and those that a lane takes of all tokens.
    static constexpr int token_chunks = geometry.stage_panels() * 8;
    static constexpr int lane_chunks = geometry.lane_chunks();
    /// Different columns among a lane's chunks.
    static constexpr int weights_held = token_chunks > 32 ? token_chunks / 32 : 1;
    /// Steps whose x is under way together.
    static constexpr int together = lane_chunks < 4 ? 4 / lane_chunks : 1;

    struct Held {
        uint4 x[lane_chunks];
        uint4 norm_weight[weights_held];
    };

    __device__ static int lane() { return threadIdx.x % 32; }
    __device__ static int chunk(int k) { return lane() + 32 * k; }

    __device__ void load(int step, Held& held) const {
        const int first = step * geometry.stage_columns;
#pragma unroll
        for (int i = 0; i < weights_held; ++i) {
            const int column = first + chunk(i) % token_chunks * 8;
            held.norm_weight[i] =
                load_word<LoadHint::normal, 16>(tensors_.norm_weight + (column < in ? column : 0));
        }
#pragma unroll
        for (int k = 0; k < lane_chunks; ++k) {
            const int column = first + chunk(k) % token_chunks * 8;
            const int64 token = min(static_cast<int64>(chunk(k) / token_chunks), tensors_.tokens - 1);
            held.x[k] = uint4{0, 0, 0, 0};
            if (column < in)
                held.x[k] = load_word<LoadHint::normal, 16>(tensors_.x + token * tensors_.x_stride + column);
        }
    }

    __device__ void add_squares(const Held& held) {
#pragma unroll
        for (int k = 0; k < lane_chunks; ++k) {
            Packet<Element, 8> packet;
            memcpy(&packet, &held.x[k], 16);
            float values[8];
            unpack(packet, values);
#pragma unroll
            for (int i = 0; i < 8; ++i) squares_[k] = fmaf(values[i], values[i], squares_[k]);
        }
    }

    /// Step number `index` of the block.
    __device__ void store(const Held& held, int index) const {
        const int stage = index % stages;
        const uint32 to = memory_.stage(stage) + geometry.stage_x_at();
        barrier_wait(memory_.empty(stage), (index / stages & 1) ^ 1);
#pragma unroll
        for (int k = 0; k < lane_chunks; ++k) {
            const int token = chunk(k) / token_chunks;
            const int panel = chunk(k) % token_chunks / 8;
            const uint4& x = held.x[k];
            const uint4& weight = held.norm_weight[k % weights_held];
            const uint4 product{
                multiply_pair(Element{}, x.x, weight.x), multiply_pair(Element{}, x.y, weight.y),
                multiply_pair(Element{}, x.z, weight.z), multiply_pair(Element{}, x.w, weight.w)};
            if (chunk(k) < geometry.stage_chunks())
                store_shared(to + panel * geometry.x_panel_bytes() +
                                 swizzled_offset<RingGeometry::panel_columns>(token, chunk(k) % 8),
                             product);
        }
        fence_async_proxy();
        __syncwarp();
        if (lane() == 0) barrier_arrive(memory_.full(stage));
    }

    const Tensors& tensors_;
    Memory memory_;
    const Schedule& schedule_;
    int warp_;
    int next_;  ///< step of the block, of all its tiles
    float squares_[lane_chunks] = {};
};

}  // namespace hone::linear::ring
