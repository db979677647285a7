#include <cuda.h>

#include <mutex>

#include "tests/fake_driver/cuda/entry_point.h"

using namespace hone::fake;

extern "C" {

CUresult cuInit(unsigned int) {
    const std::lock_guard lock(mutex);
    machine().reset_if_script_changed();
    if (const Rule* rule = machine().script.setting("driver", "init"))
        return static_cast<CUresult>(rule->number("init"));
    return machine().devices.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
    const std::lock_guard lock(mutex);
    const Rule* rule = machine().script.setting("driver", "version");
    *version = rule == nullptr ? 13000 : static_cast<int>(rule->number("version"));
    return CUDA_SUCCESS;
}

}  // extern "C"
