#include "decoder/gpu/gpu.h"

#include <fmt/format.h>

#include <thread>

#include "decoder/error.h"
#include "decoder/gpu/pause.h"

namespace hone::decoder {
namespace {

/// Between two looks at a copy: a piece of the weights takes hundreds of microseconds.
constexpr auto nap = std::chrono::microseconds(20);

}  // namespace

/// What has ended is no hang, however late this process, which may have been stopped itself, looks.
template <class Rest>
bool Gpu::ends(CUstream stream, Rest rest) const {
    const auto end = std::chrono::steady_clock::now() + longest_step_;
    while (!done(stream)) {
        if (std::chrono::steady_clock::now() >= end && !done(stream)) return false;
        rest();
    }
    return true;
}

void Gpu::wait(CUstream stream) const {
    if (!ends(stream, pause)) hang();
}

void Gpu::wait_for_load(CUstream stream) const {
    if (!ends(stream, [] { std::this_thread::sleep_for(nap); })) hang("taken a piece of the weights");
}

void Gpu::hang(std::string_view what) const {
    driver_->leave_all();
    throw EngineFailure(
        fmt::format("the GPU has not {} within {} s: it hangs (`dmesg | grep Xid` and `nvidia-smi -q` may "
                    "say why)",
                    what, std::chrono::duration<double>(longest_step_).count()));
}

}  // namespace hone::decoder
