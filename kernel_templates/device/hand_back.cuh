// Giving shared memory back to whoever writes it next, behind loads from it (mbarrier, sm_90).
//
// The compiler (NVRTC 13.0) lets an arrival be issued while earlier loads of the warp are under way, and no
// barrier of the warp changes that. What threads write behind it, by stores or cp.async, comes behind those
// loads; what the copy engine writes need not (both seen on an H200): a load that comes late, while others
// keep shared memory busy, reads what has been copied meanwhile. So the arrival has to use what was loaded.
#pragma once

#include "device/mbarrier.cuh"

namespace hone {

#if __CUDA_ARCH__ >= 900
/// Arrives when all has come that `bits` are made of: some of every load whose place is given back, as the
/// compiler moves loads past each other. A barrier does not stand at address 0, but the compiler cannot know.
__device__ inline void barrier_arrive_behind(uint32 barrier, uint32 bits) {
    asm volatile(
        "{\n.reg .pred come;\n.reg .b32 all;\n"
        "or.b32 all, %0, %1;\n"
        "setp.ne.u32 come, all, 0;\n"
        "@come mbarrier.arrive.shared::cta.b64 _, [%0];\n}" ::"r"(barrier),
        "r"(bits)
        : "memory");
}
#endif

}  // namespace hone
