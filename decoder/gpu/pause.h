// What a loop that waits for memory to change does between two looks: leaves the core to its other thread.
#pragma once

namespace hone::decoder {

inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace hone::decoder
