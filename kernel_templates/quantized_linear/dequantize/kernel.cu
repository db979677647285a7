// Quantized linear, variant dequantize (sm_90a): packed weights, many tokens. A launch in front writes the
// numbers that codes stand for into the workspace, as rows of 16-bit elements (numbers.cuh); linear's
// tensor-core product (linear/wgmma/product.cuh) multiplies those as any weights.
#include "linear/wgmma/geometry.cuh"

namespace hone::linear::gemm {
inline constexpr Operands operands{};
}

#include "linear/wgmma/product.cuh"
#include "quantized_linear/dequantize/numbers.cuh"

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
    quantized_linear_dequantized(HONE_PARAMETERS(quantized_linear_dequantized)) {
    const auto a = HONE_ARGUMENTS(quantized_linear_dequantized);
    using namespace hone::linear::gemm;
    const Maps maps{a.x_map, a.x_rest_map, a.weight_map, a.up_map, a.result_map};
    run(maps, {a.bias, a.residual, a.out, a.workspace, a.tokens, a.residual_stride, a.out_stride},
        hone::quantized_linear::unpacked::WrittenWeights(maps), ElementProduct());
}

namespace hone::linear::normalize {
inline constexpr int vector = 8;
}

#include "linear/normalize.cuh"
