// Weights of the tensor-core product (product.cuh) that the launch in front writes.
#pragma once

#include "device/sync.cuh"
#include "linear/wgmma/producer.cuh"

namespace hone::linear::gemm {

/// As MatrixWeights, but none of them are there to fill the ring early with.
class WrittenWeights {
  public:
    __device__ explicit WrittenWeights(const Maps& maps) : weights_(maps) {}

    __device__ void load(uint32 shared, const Work& tile, int k, int stage) const {
        if constexpr (programmatic) {
            if (!are_written_) {
                wait_for_predecessor();
                fence_async_proxy_global();
                are_written_ = true;
            }
        }
        weights_.load(shared, tile, k, stage);
    }

  private:
    MatrixWeights weights_;
    mutable bool are_written_ = false;
};

}  // namespace hone::linear::gemm
