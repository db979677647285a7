// Attention prefill, variant mma: mma.cuh says how.
#include "attention_prefill/mma.cuh"

extern "C" __global__ void __launch_bounds__(hone::attention_prefill::warp_mma::threads, Tuned::blocks_per_sm)
    attention_prefill_mma(HONE_ATTENTION_PREFILL_PARAMETERS, int section) {
    extern __shared__ __align__(hone::attention_prefill::warp_mma::Geometry::alignment) hone::uint8 memory[];
    hone::attention_prefill::warp_mma::run(HONE_ATTENTION_PREFILL_CALL, section, hone::shared_address(memory));
}
