// Quantized linear, variant dequantize (sm_90a): packed weights, many tokens. A launch in front writes the
// numbers that codes stand for into the workspace, as rows of 16-bit elements (dequantize.cuh); linear's
// tensor-core product (linear/gemm.cuh) multiplies those as any weights.
#include "linear/gemm_geometry.cuh"

namespace hone::linear::gemm {
inline constexpr Operands operands{};
}

#include "linear/gemm.cuh"
#include "quantized_linear/dequantize.cuh"

namespace hone::quantized_linear::unpacked {

/// As linear::gemm::MatrixWeights, which the launch before writes: there are none to fill the ring early
/// with.
class WrittenWeights {
  public:
    __device__ explicit WrittenWeights(const linear::gemm::Maps& maps) : weights_(maps) {}

    __device__ void load(uint32 shared, const linear::gemm::Work& tile, int k, int stage) const {
        if constexpr (linear::gemm::programmatic) {
            if (!are_written_) {
                wait_for_predecessor();
                fence_async_proxy_global();
                are_written_ = true;
            }
        }
        weights_.load(shared, tile, k, stage);
    }

  private:
    linear::gemm::MatrixWeights weights_;
    mutable bool are_written_ = false;
};

}  // namespace hone::quantized_linear::unpacked

extern "C" __global__ void __launch_bounds__(hone::linear::gemm::threads, Tuned::blocks_per_sm)
    quantized_linear_dequantized(const __grid_constant__ hone::TensorMap x_map,
                                 const __grid_constant__ hone::TensorMap weight_map,
                                 const __grid_constant__ hone::TensorMap up_map,
                                 const __grid_constant__ hone::TensorMap result_map,
                                 const hone::linear::Element* bias, const hone::linear::Element* residual,
                                 hone::linear::Element* result, float* workspace, int tokens,
                                 long long residual_stride, long long out_stride) {
    using namespace hone::linear::gemm;
    const Maps maps{x_map, weight_map, up_map, result_map};
    run(maps, {bias, residual, result, workspace, tokens, residual_stride, out_stride},
        hone::quantized_linear::unpacked::WrittenWeights(maps), ElementProduct());
}

namespace hone::linear::normalize {
inline constexpr int vector = 8;
}

#include "linear/normalize.cuh"
