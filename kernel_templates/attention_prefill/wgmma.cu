// attention_prefill, variant wgmma: wgmma.cuh says how.
#include "attention_prefill/wgmma.cuh"

extern "C" __global__ void __launch_bounds__(hone::attention_prefill::warpgroup::geometry.threads(),
                                             Tuned::blocks_per_sm)
    attention_prefill_wgmma(HONE_ATTENTION_PREFILL_PARAMETERS, const __grid_constant__ hone::TensorMap q_map,
                            const __grid_constant__ hone::TensorMap k_map,
                            const __grid_constant__ hone::TensorMap v_map, int section_rows,
                            int section_heads, int section_count) {
    hone::attention_prefill::warpgroup::run({q_map, k_map, v_map}, HONE_ATTENTION_PREFILL_CALL,
                                            {section_rows, section_heads, section_count});
}
