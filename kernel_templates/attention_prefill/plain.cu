// Attention prefill, variant plain: plain.cuh says how.
#include "attention_prefill/plain.cuh"

extern "C" __global__ void __launch_bounds__(hone::attention_prefill::cuda_cores::threads)
    attention_prefill_plain(HONE_ATTENTION_PREFILL_PARAMETERS, int section) {
    extern __shared__ __align__(16) hone::uint8 memory[];
    hone::attention_prefill::cuda_cores::run(HONE_ATTENTION_PREFILL_CALL, section,
                                        reinterpret_cast<float*>(memory));
}
