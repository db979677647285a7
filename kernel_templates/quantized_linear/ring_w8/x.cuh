// x of variant ring_w8 (kernel.cu) where it stays in shared memory, and its scales: by the warps that
// multiply. Codes of 16-bit numbers are made in the float32 steps of quantize.cuh.
//
// A warp takes units of 128 columns of up to 8 tokens: two lanes have the halves of a chunk of 16 columns,
// pairs of lanes the tokens side by side, as chunks stand in shared memory. (Of one token a unit has 256.)
#pragma once

#include "device/warpgroup.cuh"
#include "quantized_linear/ring_w8/block.cuh"

namespace hone::quantized_linear::ring_w8 {

/// Among the warps that multiply.
__device__ inline void meet_consumers() { named_barrier_sync<geometry.consumer_threads()>(1); }

inline constexpr int last_column = geometry.columns();

/// Codes that stand in global memory.
__device__ inline void copy_codes(const Tensors& tensors, Memory memory) {
    const auto* const x = reinterpret_cast<const uint8*>(tensors.x);
    const int last_token = static_cast<int>(tensors.tokens) - 1;
#pragma unroll 4
    for (int i = threadIdx.x; i < geometry.x_chunks(); i += geometry.consumer_threads()) {
        const int token = i % tokens;
        const int column = i / tokens * RingW8Geometry::chunk;
        uint4 codes = load_word<LoadHint::normal, 16>(x + min(token, last_token) * tensors.x_stride +
                                                      (column < in ? column : 0));
        if (column >= in) codes = {0, 0, 0, 0};
        *reinterpret_cast<uint4*>(memory.x_chunk(token, column / RingW8Geometry::chunk)) = codes;
    }
}

/// Their scales of blocks; those of tokens are the finishers' to read.
__device__ inline void copy_scales(const Tensors& tensors, Memory memory) {
    const int last_token = static_cast<int>(tensors.tokens) - 1;
    for (int i = threadIdx.x; i < geometry.scale_words(); i += geometry.consumer_threads()) {
        const int token = min(i % geometry.n(), last_token);
        const int panel = min(i / geometry.n(), groups - 1);
        memory.scales()[i] = tensors.x_scales[token * tensors.x_scale_stride + panel];
    }
}

/// Makes codes of up to 8 tokens, from token `first` on.
class CodeMaker {
  public:
    static constexpr int taken = tokens < 8 ? tokens : 8;

    __device__ CodeMaker(const Tensors& tensors, Memory memory, int first)
        : memory_(memory),
          token_(first + lane() / 2 % taken),
          row_(reinterpret_cast<const Element*>(tensors.x) +
               min(token_, static_cast<int>(tensors.tokens) - 1) * tensors.x_stride) {}

    /// Reads x; the token's largest magnitude meets those of the other warps.
    __device__ void measure() {
#pragma unroll
        for (int p = 0; p < held; ++p) kept_[p] = load(p);
        float largest = 0.0f;
        for_each([&](const PacketType& packet, int) { largest = fmaxf(largest, largest_of(packet)); });
        largest = over_lanes<32>(largest);
        if (lane() < 2 * taken && lane() % 2 == 0)
            atomicMax(memory_.largest() + token_, __float_as_uint(largest));
    }
    /// Behind the barrier that follows: the codes, and the scale of the token.
    __device__ void finish() const {
        const float scale = quantize::scale_of(__uint_as_float(memory_.largest()[token_]));
        if (threadIdx.x < 2 * taken && lane() % 2 == 0) memory_.scales()[token_] = scale;
        for_each([&](const PacketType& packet, int p) { store(packet, p, 1.0f / scale); });
    }
    /// Codes with a scale for each 128 columns.
    __device__ void make_blocks() const {
#pragma unroll 2
        for (int turn = 0; turn < turns; ++turn) {
            PacketType packets[each];
            float largest = 0.0f;
#pragma unroll
            for (int i = 0; i < each; ++i) packets[i] = load(turn * each + i);
#pragma unroll
            for (int i = 0; i < each; ++i) largest = fmaxf(largest, largest_of(packets[i]));
            const float scale = quantize::scale_of(over_lanes<block_lanes>(largest));
            const int column = column_of(turn * each);
            if (column < last_column && column % scaled_block == 0)
                memory_.scales()[column / scaled_block * geometry.n() + token_] = scale;
#pragma unroll
            for (int i = 0; i < each; ++i) store(packets[i], turn * each + i, 1.0f / scale);
        }
    }

  private:
    using PacketType = Packet<Element, quantize::vector>;
    static_assert(quantize::vector == 8, "two packets are a chunk");
    /// Packets of a lane in a unit, and the unit's columns.
    static constexpr int each = taken == 1 ? 1 : taken / 2;
    static constexpr int unit_columns = taken == 1 ? 256 : 128;
    /// Lanes that share a token's 128 columns.
    static constexpr int block_lanes = taken == 1 ? 16 : 32;
    static constexpr int warps = 4 * consumers;
    static constexpr int turns = (last_column + warps * unit_columns - 1) / (warps * unit_columns);
    static constexpr int packets = turns * each;
    /// Packets that a lane keeps, as registers allow; the others are read again for their codes.
    static constexpr int most_held = consumers > 2 || tokens > 8 ? 6 : 16;
    static constexpr int held = packets < most_held ? packets : most_held;

    __device__ static int lane() { return threadIdx.x % 32; }
    __device__ static int column_of(int packet) {
        const int unit = packet / each * warps + static_cast<int>(threadIdx.x) / 32;
        return unit * unit_columns + packet % each * (16 / taken * RingW8Geometry::chunk) +
               lane() / 2 / taken * RingW8Geometry::chunk + lane() % 2 * quantize::vector;
    }
    __device__ PacketType load(int packet) const {
        const int column = column_of(packet);
        PacketType elements = load_packet<Element, quantize::vector>(row_ + (column < in ? column : 0));
        if (column >= in) elements = {};
        return elements;
    }
    __device__ static float largest_of(const PacketType& packet) {
        float values[quantize::vector];
        unpack(packet, values);
        return quantize::largest_of(values);
    }
    /// The largest of the lanes that have this one's token, among `width` neighbours.
    template <int width>
    __device__ static float over_lanes(float value) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
#pragma unroll
        for (int distance = 2 * taken; distance < width; distance *= 2)
            value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
        return value;
    }
    __device__ void store(const PacketType& packet, int p, float factor) const {
        const int column = column_of(p);
        if (column >= last_column) return;
        float values[quantize::vector];
        unpack(packet, values);
#pragma unroll
        for (int i = 0; i < quantize::vector; ++i) values[i] *= factor;
        const auto codes = pack<Code>(values);
        uint2 words;
        memcpy(&words, &codes, 8);
        *reinterpret_cast<uint2*>(memory_.x_chunk(token_, column / RingW8Geometry::chunk) +
                                  column % RingW8Geometry::chunk) = words;
    }
    template <class Visit>
    __device__ void for_each(Visit visit) const {
#pragma unroll
        for (int p = 0; p < held; ++p) visit(kept_[p], p);
#pragma unroll 4
        for (int p = held; p < packets; ++p) visit(load(p), p);
    }

    Memory memory_;
    int token_;
    const Element* row_;
    PacketType kept_[held];
};

__device__ inline void make_codes(const Tensors& tensors, Memory memory) {
    CodeMaker first(tensors, memory, 0);
    CodeMaker second(tensors, memory, tokens > 8 ? 8 : 0);
    if constexpr (has_blocks) {
        first.make_blocks();
        if constexpr (tokens > 8) second.make_blocks();
    } else {
        first.measure();
        if constexpr (tokens > 8) second.measure();
        meet_consumers();
        first.finish();
        if constexpr (tokens > 8) second.finish();
    }
}

/// By all warps that multiply; behind the wait for the kernel before.
__device__ inline void stage_x(const Tensors& tensors, Memory memory) {
    if constexpr (makes_codes) {
        make_codes(tensors, memory);
    } else {
        if constexpr (!x_streams) copy_codes(tensors, memory);
        if constexpr (has_blocks) copy_scales(tensors, memory);
    }
    fence_async_proxy();
    meet_consumers();
}

}  // namespace hone::quantized_linear::ring_w8
