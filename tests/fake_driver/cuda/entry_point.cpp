#include "tests/fake_driver/cuda/entry_point.h"

#include <unistd.h>

namespace hone::fake {

std::mutex mutex;

Machine& machine() {
    static auto* const state = new Machine;  // never destroyed: threads may hang in it
    return *state;
}

bool known_device(CUdevice device) {
    return device >= 0 && device < static_cast<int>(machine().devices.size());
}

CUstream_st& resolve(CUctx_st& context, CUstream stream) {
    return stream == nullptr ? *context.default_stream : *stream;
}

CUresult state_of(const CUctx_st& context, bool hung) {
    if (context.sticky != CUDA_SUCCESS) return context.sticky;
    return hung ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult wait(CUresult state) {
    while (state == CUDA_ERROR_NOT_READY) pause();
    return state;
}

}  // namespace hone::fake
