// Embedding, variants rows and plain: `lanes` threads copy a token's row in packets, or element by element.
//
// Data's way: the token's index -> registers -> its row, all packets of a lane under way at once -> registers
// -> out. Without scale and positions not a bit is touched; else a sum is made in float32 and rounded once.
// No barriers.
#include "embedding/tensors.cuh"

namespace hone::embedding::rows {

inline constexpr int threads = static_cast<int>(Tuned::threads);
inline constexpr int lanes = static_cast<int>(Tuned::lanes);
inline constexpr int vector = static_cast<int>(Tuned::vector);
inline constexpr int packets = (hidden + lanes * vector - 1) / (lanes * vector);
inline constexpr int ahead = packets < 8 ? packets : 8;  ///< packets under way
static_assert(hidden % vector == 0 && threads % lanes == 0, "whole packets, whole rows");

using Words = Packet<Element, vector>;

/// What `source` leaves of a packet.
__device__ inline Words made(const Tensors& tensors, const Words& words, const Words& added) {
    if constexpr (!has_scale && !has_positions) return words;
    float values[vector], addends[vector];
    unpack(words, values);
    if constexpr (has_positions) unpack(added, addends);
#pragma unroll
    for (int i = 0; i < vector; ++i) {
        values[i] = tensors.scaled(values[i]);
        if constexpr (has_positions) values[i] = __fadd_rn(values[i], addends[i]);
    }
    return pack<Element>(values);
}

__device__ inline void copy(const Tensors& tensors, const Source& source, Element* out, int lane) {
    for (int first = 0; first < packets; first += ahead) {
        Words words[ahead], added[has_positions ? ahead : 1];
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
            const int column = ((first + i) * lanes + lane) * vector;
            const int read = column < hidden ? column : 0;
            words[i] = load_packet<Element, vector>(source.row + read);
            if constexpr (has_positions) added[i] = load_packet<Element, vector>(source.position + read);
        }
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
            const int column = ((first + i) * lanes + lane) * vector;
            if (column < hidden)
                store_packet(out + column, made(tensors, words[i], added[has_positions ? i : 0]));
        }
    }
}

__device__ inline void run(const Tensors& tensors) {
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    const int64 token = static_cast<int64>(blockIdx.x) * (threads / lanes) + threadIdx.x / lanes;
    if (token >= tensors.tokens) return;
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    const Source source = tensors.source(token);
    Element* out = tensors.out + token * tensors.out_stride;
    if (source.exists) {
        copy(tensors, source, out, lane);
        return;
    }
    const Words zeros{};
    for (int column = lane * vector; column < hidden; column += lanes * vector)
        store_packet(out + column, zeros);
}

}  // namespace hone::embedding::rows

extern "C" __global__ void __launch_bounds__(hone::embedding::rows::threads)
    embedding_rows(HONE_PARAMETERS(embedding_rows)) {
    const hone::embedding::Tensors tensors{HONE_ARGUMENTS(embedding_rows)};
    hone::embedding::rows::run(tensors);
}
