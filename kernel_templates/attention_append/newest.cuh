// The newest token of each sequence: a query that still has to be rotated, and a key and a value that are not
// in the cache. With g = lane / 4 and t = lane % 4:
//
// - Every compute warp rotates the queries that it holds as operands: a lane has columns 8 i + 2 t of row g,
//   and so both partners of every rotation (rotary_dim is a multiple of 16). Norms are summed by the four
//   lanes of a row.
// - The warp that takes a sequence's last unit has the key and the value, of which lane i holds columns 8 i
//   to 8 i + 7. It puts them into the unit in shared memory, over whatever the cache had there; and the block
//   of the first rows of a key-value head writes them to the cache, which nobody reads them from in this
//   launch: other blocks of the same head put their own copy over the row.
//
// Nothing but q, k and v comes from the kernel in front: the table, the norms' weights, lengths, pages and
// older keys and values are read before it has ended. See attention_append/README.md for who may write those.
#pragma once

#include "attention_append/turned.cuh"
#include "attention_decode/ring/ring.cuh"
#include "device/packet.cuh"

namespace hone::attention_decode::ring {

static_assert(rotary_dim % 16 == 0 && rotary_dim <= head_dim, "both partners are columns of one lane");
static_assert(head_dim % 8 == 0 && !fp8_cache, "whole packets of 16-bit elements");

/// (x, y) turned by an angle.
__device__ inline void turn(float& x, float& y, float cos, float sin) {
    const float turned = x * cos - y * sin;
    y = y * cos + x * sin;
    x = turned;
}

class Arriving {
  public:
    static constexpr bool arrives = true;

    __device__ explicit Arriving(const Tensors& tensors) : tensors_(tensors) {}

    /// What is known before the predecessor has ended.
    __device__ void look_up(const Fragment& fragment) {
        const int units = units_read(fragment);
        has_key_ = fragment.present && fragment.ends && units > 0 &&
                   (units - 1) % warps == static_cast<int>(threadIdx.x) / 32;
        if (!fragment.present) return;
        position_ = max(fragment.length - 1, 0);
        if constexpr (rotary_dim > 0) look_up_angles();
        if constexpr (has_norm) {
#pragma unroll
            for (int i = 0; i < pairs; ++i)
                q_weights_[i] = load_word<LoadHint::normal, 4>(tensors_.q_weight + 8 * i + 2 * (lane() % 4));
        }
        if (!has_key_) return;
        const int head = kv_head_of(fragment.list);
        if constexpr (paged)
            offset_ = tensors_.cache_offset(tensors_.page_of(fragment.sequence, position_), head) +
                      position_ % page_size * tensors_.cache_token_stride;
        else
            offset_ =
                tensors_.cache_offset(fragment.sequence, head) + position_ * tensors_.cache_token_stride;
    }

    /// Asks for the key and the value.
    __device__ void ask(const Fragment& fragment) {
        if (!has_key_ || !is_chunk()) return;
        const int head = kv_head_of(fragment.list);
        const Element* k =
            tensors_.k + fragment.sequence * tensors_.k_batch_stride + head * tensors_.k_head_stride;
        const Element* v =
            tensors_.v + fragment.sequence * tensors_.v_batch_stride + head * tensors_.v_head_stride;
        key_ = load_packet<Element, 8>(k + 8 * lane());
        partner_ = load_packet<Element, 8>(k + 8 * partner());
        value_ = load_packet<Element, 8>(v + 8 * lane());
    }

    /// The key is made of what ask() asked for, and the cache gets both.
    __device__ void arrive(const Fragment& fragment) {
        if (!has_key_) return;
        finish_key();
        if (!is_chunk() || first_row_of(fragment.list) != 0) return;
        // Kernels take the cache as constant but for this row.
        store_packet(const_cast<Element*>(tensors_.k_cache) + offset_ + 8 * lane(), key_);
        store_packet(const_cast<Element*>(tensors_.v_cache) + offset_ + 8 * lane(), value_);
    }

    /// Norm and rotation of queries as operands.
    __device__ void turn(uint32 (&words)[row_blocks][column_blocks][2]) const {
        if constexpr (!has_norm && rotary_dim == 0) return;
#pragma unroll
        for (int n = 0; n < row_blocks; ++n) {
            float x[pairs][2];
#pragma unroll
            for (int i = 0; i < pairs; ++i) unpack_word(words[n][i / 2][i % 2], x[i]);
            if constexpr (has_norm) normalize(x);
            if constexpr (interleaved) {
#pragma unroll
                for (int i = 0; i < rotary_dim / 8; ++i) ring::turn(x[i][0], x[i][1], cos_[i], sin_[i]);
            } else {
                constexpr int half = rotary_dim / 16;
#pragma unroll
                for (int i = 0; i < 2 * half; ++i)
                    ring::turn(x[i / 2][i % 2], x[half + i / 2][i % 2], cos_[i], sin_[i]);
            }
#pragma unroll
            for (int i = 0; i < pairs; ++i) words[n][i / 2][i % 2] = pack_pair(Element{}, x[i][0], x[i][1]);
        }
    }

    /// Into the unit that begins with `token`, where it has the newest one. By all lanes of the warp, which
    /// alone reads the unit.
    __device__ void put_key(unsigned char* operand, int token) const { put(operand, token, key_); }
    __device__ void put_value(unsigned char* operand, int token) const { put(operand, token, value_); }

  private:
    using Chunk = Packet<Element, 8>;
    static constexpr int pairs = head_dim / 8;  ///< of columns that a lane has of a query
    static constexpr int angles = rotary_dim / 8;

    __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
    __device__ static bool is_chunk() { return lane() < head_dim / 8; }
    /// The chunk that holds the partners of this lane's; its own where nothing rotates.
    __device__ static int partner() {
        constexpr int half = interleaved ? 0 : rotary_dim / 16;
        return lane() < half ? lane() + half : lane() < 2 * half ? lane() - half : lane();
    }

    __device__ void look_up_angles() {
        const int64 row =
            static_cast<int64>(min(position_, static_cast<int>(tensors_.positions) - 1)) * (rotary_dim / 2);
        constexpr int width = interleaved ? 1 : 2;
        const int t = lane() % 4;
#pragma unroll
        for (int i = 0; i < angles; i += width) {
            const int64 at = row + 4 * i + width * t;
            const auto cos = load_packet<float, width>(tensors_.cos + at);
            const auto sin = load_packet<float, width>(tensors_.sin + at);
#pragma unroll
            for (int j = 0; j < width; ++j) {
                cos_[i + j] = cos.elements[j];
                sin_[i + j] = sin.elements[j];
            }
        }
        if (!has_key_ || lane() >= rotary_dim / 8) return;
        constexpr int count = interleaved ? 4 : 8;
        const int64 at = row + count * min(lane(), partner());
#pragma unroll
        for (int i = 0; i < count; i += 4) {
            const auto cos = load_packet<float, 4>(tensors_.cos + at + i);
            const auto sin = load_packet<float, 4>(tensors_.sin + at + i);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                key_cos_[i + j] = cos.elements[j];
                key_sin_[i + j] = sin.elements[j];
            }
        }
    }

    __device__ static void unpack_word(uint32 word, float (&x)[2]) {
        x[0] = to_float(Element{static_cast<uint16>(word)});
        x[1] = to_float(Element{static_cast<uint16>(word >> 16)});
    }

    __device__ float factor_of(float sum) const { return rsqrtf(sum * (1.0f / head_dim) + tensors_.epsilon); }
    __device__ void normalize(float (&x)[pairs][2]) const {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < pairs; ++i) sum += x[i][0] * x[i][0] + x[i][1] * x[i][1];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        const float factor = factor_of(sum);
#pragma unroll
        for (int i = 0; i < pairs; ++i) {
            float weights[2];
            unpack_word(q_weights_[i], weights);
            x[i][0] = x[i][0] * factor * counted(weights[0]);
            x[i][1] = x[i][1] * factor * counted(weights[1]);
        }
    }

    /// All lanes.
    __device__ void finish_key() {
        if constexpr (!has_norm && rotary_dim == 0) return;
        float own[8];
        float other[8];
        unpack(key_, own);
        unpack(partner_, other);
        if constexpr (has_norm) {
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < 8; ++i) sum += own[i] * own[i];
            if (!is_chunk()) sum = 0.0f;
#pragma unroll
            for (int distance = 1; distance < 32; distance *= 2)
                sum += __shfl_xor_sync(0xffffffffu, sum, distance);
            const float factor = factor_of(sum);
            if (is_chunk()) {
                scale(own, factor, lane());
                scale(other, factor, partner());
            }
        }
        if (lane() < rotary_dim / 8) {
            if constexpr (interleaved) {
#pragma unroll
                for (int i = 0; i < 4; ++i) ring::turn(own[2 * i], own[2 * i + 1], key_cos_[i], key_sin_[i]);
            } else {
                // Of the first half x, of the second y: y cos + x sin.
                const float sign = lane() < partner() ? -1.0f : 1.0f;
#pragma unroll
                for (int i = 0; i < 8; ++i) own[i] = own[i] * key_cos_[i] + other[i] * (sign * key_sin_[i]);
            }
        }
        key_ = pack<Element>(own);
    }
    __device__ void scale(float (&x)[8], float factor, int chunk) const {
        float weights[8];
        unpack(load_packet<Element, 8>(tensors_.k_weight + 8 * chunk), weights);
#pragma unroll
        for (int i = 0; i < 8; ++i) x[i] = x[i] * factor * counted(weights[i]);
    }

    __device__ void put(unsigned char* operand, int token, const Chunk& chunk) const {
        if (!has_key_ || position_ < token || position_ >= token + unit) return;
        if (is_chunk()) {
            *reinterpret_cast<Chunk*>(operand + offset_in_operand(position_ - token, lane())) = chunk;
            // The stage may be the copy engine's next.
            if constexpr (copy_engine) fence_async_proxy();
        }
        __syncwarp();
    }

    const Tensors& tensors_;
    int position_ = 0;
    bool has_key_ = false;  ///< of the fragment's newest token
    int64 offset_ = 0;      ///< in the cache
    float cos_[angles > 0 ? angles : 1];
    float sin_[angles > 0 ? angles : 1];
    float key_cos_[8];
    float key_sin_[8];
    uint32 q_weights_[pairs];
    Chunk key_;
    Chunk partner_;
    Chunk value_;
};

}  // namespace hone::attention_decode::ring
