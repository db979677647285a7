// Embedding, reference: a thread computes one element, in double. The output is float32.
#include "embedding/tensors.cuh"

namespace hone::embedding::reference {

__device__ inline void run(const Tensors& tensors) {
    const int64 index = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64 token = index / hidden;
    const int column = static_cast<int>(index % hidden);
    if (token >= tensors.tokens) return;
    const Source source = tensors.source(token);
    double value = 0.0;
    if (source.exists) {
        value = to_float(source.row[column]);
        if constexpr (has_scale) value *= tensors.scale;
        if constexpr (has_positions) value += to_float(source.position[column]);
    }
    tensors.out[token * tensors.out_stride + column] = static_cast<float>(value);
}

}  // namespace hone::embedding::reference

extern "C" __global__ void __launch_bounds__(256) embedding_reference(HONE_PARAMETERS(embedding_reference)) {
    const hone::embedding::Tensors tensors{HONE_ARGUMENTS(embedding_reference)};
    hone::embedding::reference::run(tensors);
}
