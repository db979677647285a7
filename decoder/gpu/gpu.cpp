#include "decoder/gpu/gpu.h"

#include <fmt/format.h>

#include "decoder/error.h"
#include "decoder/gpu/pause.h"

namespace hone::decoder {

/// What has ended is no hang, however late this process, which may have been stopped itself, looks.
void Gpu::wait(CUstream stream) const {
    const auto end = std::chrono::steady_clock::now() + longest_step_;
    while (!done(stream)) {
        if (std::chrono::steady_clock::now() >= end && !done(stream)) hang();
        pause();
    }
}

void Gpu::hang() const {
    hangs_ = true;
    throw EngineFailure(
        fmt::format("the GPU has not ended a step within {} s: it hangs (`dmesg | grep Xid` and `nvidia-smi "
                    "-q` may say why)",
                    std::chrono::duration<double>(longest_step_).count()));
}

}  // namespace hone::decoder
