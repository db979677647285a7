// Embedding, variant plain: a block copies a token's row element by element, for sizes and strides that fit
// no packets.
#include "embedding/tensors.cuh"

namespace hone::embedding::plain {

inline constexpr int threads = static_cast<int>(Tuned::threads);

__device__ inline Element made(const Tensors& tensors, const Source& source, int column) {
    if (!source.exists) return {};
    if constexpr (!has_scale && !has_positions) return source.row[column];
    const float value = tensors.scaled(to_float(source.row[column]));
    if constexpr (has_positions)
        return from_float<Element>(__fadd_rn(value, to_float(source.position[column])));
    return from_float<Element>(value);
}

__device__ inline void run(const Tensors& tensors) {
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    const int64 token = blockIdx.x;
    const Source source = tensors.source(token);
    Element* out = tensors.out + token * tensors.out_stride;
    for (int column = threadIdx.x; column < hidden; column += threads)
        out[column] = made(tensors, source, column);
}

}  // namespace hone::embedding::plain

extern "C" __global__ void __launch_bounds__(hone::embedding::plain::threads)
    embedding_plain(HONE_PARAMETERS(embedding_plain)) {
    const hone::embedding::Tensors tensors{HONE_ARGUMENTS(embedding_plain)};
    hone::embedding::plain::run(tensors);
}
