// One thread of a warp, of which the compiler knows that it is one (sm_90). Of a thread that it takes for
// several, because it was told apart by its number, it repeats every copy of the copy engine in a loop over
// them and waits each time until the engine has read the operands: about 120 cycles a copy on an H100.
#pragma once

#include "device/types.cuh"

namespace hone {

#if __CUDA_ARCH__ >= 900
/// True in one thread; called by a whole warp.
__device__ inline bool elect() {
    uint32 elected;
    asm volatile(
        "{\n.reg .pred one;\n"
        "elect.sync _|one, 0xffffffff;\n"
        "selp.u32 %0, 1, 0, one;\n}"
        : "=r"(elected)
        :
        : "memory");
    return elected != 0;
}
#endif

}  // namespace hone
