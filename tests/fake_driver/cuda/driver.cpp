#include <cuda.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/fake_driver/cuda/entry_point.h"

using namespace hone::fake;

extern "C" {

CUresult cuInit(unsigned int) {
    const std::lock_guard lock(mutex);
    machine().reset_if_script_changed();
    static bool slept = false;
    const Rule* slow = machine().script.setting("driver", "init_us");
    const Rule* slow_by_gpus = machine().script.setting("driver", "init_us_a_gpu");
    std::chrono::microseconds time{slow == nullptr ? 0 : slow->number("init_us")};
    if (slow_by_gpus != nullptr)
        time += std::chrono::microseconds(slow_by_gpus->number("init_us_a_gpu")) * machine().devices.size();
    if (time.count() > 0 && !std::exchange(slept, true)) std::this_thread::sleep_for(time);
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
