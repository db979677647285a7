// attention_prefill, variant wgmma_tf32: wgmma_tf32.cuh says how.
#include "attention_prefill/wgmma_tf32.cuh"

extern "C" __global__ void __launch_bounds__(hone::attention_prefill::tf32::geometry.threads(), 1)
    attention_prefill_wgmma_tf32(HONE_ATTENTION_PREFILL_PARAMETERS) {
    hone::attention_prefill::tf32::run(HONE_ATTENTION_PREFILL_CALL);
}
