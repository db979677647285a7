// RoPE and append, variant packets: all heads of a token at once, in packets that hold both partners of every
// rotation.
//
// Data's way: global -> registers -> global, every element read and written once. A head is cut into packets
// of `vector` elements; a lane owns two of them, such that it has both partners: half split, elements i and
// i + rotary_dim / 2; interleaved, neighbours. Columns from rotary_dim on pass unchanged. `lanes` lanes, a
// power of two, make up a head, whose norm is summed by shuffles among them; a thread holds `heads_a_thread`
// heads of one token, asks for all of them at once, and needs its part of the angles once. No barriers. q may
// be rotated in place: nobody else reads what a lane writes.
#include "device/sync.cuh"
#include "rope_kv_append/tensors.cuh"

namespace hone::rope_kv_append::packets {

inline constexpr int threads = static_cast<int>(Tuned::threads);
inline constexpr int vector = static_cast<int>(Tuned::vector);
inline constexpr int heads_a_thread = static_cast<int>(Tuned::heads_a_thread);
inline constexpr LoadHint load_hint = static_cast<LoadHint>(Tuned::load_hint);
inline constexpr bool early_weights = has_norm && Tuned::early_weights != 0;

__device__ constexpr int power_of_two_from(int n) {
    int power = 1;
    while (power < n) power *= 2;
    return power;
}
/// Pairs of packets in a head, those that rotate first.
inline constexpr int pairs = head_dim / (2 * vector);
inline constexpr int rotary_pairs = rotary_dim / (2 * vector);
inline constexpr int lanes = power_of_two_from(pairs);
inline constexpr int groups = threads / lanes;
inline constexpr int block_heads = groups * heads_a_thread;
inline constexpr int token_blocks = (all_heads + block_heads - 1) / block_heads;
static_assert(head_dim % (2 * vector) == 0 && rotary_dim % (2 * vector) == 0, "pairs of whole packets");
static_assert(rotary_dim <= head_dim && lanes <= 32 && threads % 32 == 0, "a head is within a warp");
static_assert(!interleaved || vector % 2 == 0, "neighbours share a packet");

using Words = Packet<Element, vector>;

/// First columns of the two packets of a lane.
struct Columns {
    int first;
    int second;

    __device__ explicit Columns(int pair) {
        const bool rotates = pair < rotary_pairs;
        const int rest = rotary_dim + (pair - rotary_pairs) * 2 * vector;
        first = rotates ? pair * vector : rest;
        second = rotates ? rotary_dim / 2 + pair * vector : rest + vector;
    }
};

/// Two packets as they lie in memory.
struct PacketPair {
    Words first;
    Words second;

    template <LoadHint hint = LoadHint::normal>
    __device__ void load(const Element* from, const Columns& columns) {
        first = load_packet<Element, vector, hint>(from + columns.first);
        second = load_packet<Element, vector, hint>(from + columns.second);
    }
};

/// The same as numbers.
struct Values {
    float first[vector];
    float second[vector];

    __device__ explicit Values(const PacketPair& words) {
        unpack(words.first, first);
        unpack(words.second, second);
    }

    template <class T>
    __device__ void store(T* to, const Columns& columns) const {
        store_packet(to + columns.first, pack<T>(first));
        store_packet(to + columns.second, pack<T>(second));
    }

    __device__ void multiply(float factor) {
#pragma unroll
        for (int i = 0; i < vector; ++i) {
            first[i] *= factor;
            second[i] *= factor;
        }
    }
    /// By a norm's weights.
    __device__ void multiply(const Values& weights) {
#pragma unroll
        for (int i = 0; i < vector; ++i) {
            first[i] *= counted(weights.first[i]);
            second[i] *= counted(weights.second[i]);
        }
    }

    /// 1 / sqrt(mean(x^2) + epsilon) of a head: all lanes of the warp together; those that own no part of it
    /// add nothing.
    __device__ float norm_factor(bool owns, float epsilon) const {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < vector; ++i) sum += first[i] * first[i] + second[i] * second[i];
        if (!owns) sum = 0.0f;
#pragma unroll
        for (int distance = 1; distance < lanes; distance *= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, distance);
        return rsqrtf(sum * (1.0f / head_dim) + epsilon);
    }
};

/// The angles of a lane: half split, one for each element of the first packet; interleaved, one for every two
/// elements of both.
struct Angles {
    float cos[vector];
    float sin[vector];

    /// The angles of a row of the table that exists, and of a pair that rotates.
    __device__ void load(const Tensors& tensors, int64 row, int pair) {
        constexpr int part = interleaved ? vector / 2 : vector;
        constexpr int width = part < 4 ? part : 4;
#pragma unroll
        for (int i = 0; i < vector; i += width) {
            const int64 at = row * (rotary_dim / 2) + i / part * (rotary_dim / 4) + pair * part + i % part;
            const auto some_cos = load_packet<float, width>(tensors.cos + at);
            const auto some_sin = load_packet<float, width>(tensors.sin + at);
#pragma unroll
            for (int j = 0; j < width; ++j) {
                cos[i + j] = some_cos.elements[j];
                sin[i + j] = some_sin.elements[j];
            }
        }
    }

    __device__ void rotate(Values& values) const {
        if constexpr (interleaved) {
            rotate_neighbours(values.first, 0);
            rotate_neighbours(values.second, vector / 2);
        } else {
#pragma unroll
            for (int i = 0; i < vector; ++i) turn(values.first[i], values.second[i], i);
        }
    }

  private:
    __device__ void rotate_neighbours(float (&values)[vector], int angle) const {
#pragma unroll
        for (int i = 0; i + 1 < vector; i += 2) turn(values[i], values[i + 1], angle + i / 2);
    }
    __device__ void turn(float& x, float& y, int angle) const {
        const float turned = x * cos[angle] - y * sin[angle];
        y = y * cos[angle] + x * sin[angle];
        x = turned;
    }
};

__device__ inline void run(const Tensors& tensors) {
    const int token = static_cast<int>(blockIdx.x) / token_blocks;
    const int first_head =
        static_cast<int>(blockIdx.x) % token_blocks * block_heads + static_cast<int>(threadIdx.x) / lanes;
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    const bool owns = lane < pairs;
    const Columns columns(owns ? lane : 0);

    PacketPair q_weights;
    PacketPair k_weights;
    if constexpr (early_weights) {
        q_weights.load(tensors.q_weight, columns);
        k_weights.load(tensors.k_weight, columns);
    }
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }

    // Ask for everything: absent heads repeat the last, absent tokens take the first row of the table.
    PacketPair held[heads_a_thread];
#pragma unroll
    for (int i = 0; i < heads_a_thread; ++i) {
        const Head head(min(first_head + i * groups, all_heads - 1));
        held[i].template load<load_hint>(head.source(tensors, token), columns);
    }
    const Place place(tensors, token);
    Angles angles;
    if constexpr (rotary_dim != 0)
        angles.load(tensors, place.exists ? place.position : 0, min(lane, rotary_pairs - 1));

        // Turn and hand on.
#pragma unroll
    for (int i = 0; i < heads_a_thread; ++i) {
        const bool exists = owns && place.exists && first_head + i * groups < all_heads;
        const Head head(min(first_head + i * groups, all_heads - 1));
        Values values(held[i]);
        if constexpr (has_norm) {
            const float factor = values.norm_factor(owns, tensors.epsilon);
            PacketPair weights;
            if constexpr (early_weights)
                weights = head.is_q ? q_weights : k_weights;
            else
                weights.load(head.norm_weight(tensors), columns);
            if (!head.is_v) {
                values.multiply(factor);
                values.multiply(Values(weights));
            }
        }
        if (lane < rotary_pairs && !head.is_v) angles.rotate(values);
        if (!exists) continue;
        if (head.is_q) {
            values.store(
                tensors.q_out + token * tensors.q_out_token_stride + head.index * tensors.q_out_head_stride,
                columns);
        } else if (place.offset >= 0) {
            if constexpr (quantized) values.multiply(1.0f / head.scale(tensors));
            Cached* cache = head.is_v ? tensors.v_cache : tensors.k_cache;
            values.store(cache + place.offset + head.index * tensors.cache_head_stride, columns);
        }
    }
}

}  // namespace hone::rope_kv_append::packets

extern "C" __global__ void __launch_bounds__(hone::rope_kv_append::packets::threads)
    rope_kv_append_packets(HONE_PARAMETERS(rope_kv_append_packets)) {
    const hone::rope_kv_append::Tensors tensors{HONE_ARGUMENTS(rope_kv_append_packets)};
    hone::rope_kv_append::packets::run(tensors);
}
