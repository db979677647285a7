#include <cuda.h>

#include <mutex>

#include "tests/fake_driver/cuda/entry_point.h"

#undef cuEventElapsedTime  // the name of drivers before 570, exported beside today's

using namespace hone::fake;

namespace {

CUresult elapsed_time(float* milliseconds, CUevent start, CUevent stop) {
    const std::lock_guard lock(mutex);
    if (!start->recorded || !stop->recorded) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult state = state_of(*stop->context, start->hung || stop->hung);
    if (state == CUDA_SUCCESS) *milliseconds = static_cast<float>((stop->clock_us - start->clock_us) / 1e3);
    return state;
}

}  // namespace

extern "C" {

CUresult cuEventCreate(CUevent* event, unsigned int) {
    return in_context([&](CUctx_st& context) {
        *event = new CUevent_st{.context = &context, .recorded = false, .hung = false, .clock_us = 0};
        ++machine().live["event"];
        return CUDA_SUCCESS;
    });
}

CUresult cuEventDestroy(CUevent event) {
    const std::lock_guard lock(mutex);
    delete event;
    --machine().live["event"];
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    return in_context([&](CUctx_st& context) {
        return machine().enqueue(resolve(context, stream), [=](CUstream_st& on) {
            event->recorded = true;
            event->hung = on.hung;
            event->clock_us = on.clock_us;
            return CUDA_SUCCESS;
        });
    });
}

CUresult cuEventQuery(CUevent event) {
    const std::lock_guard lock(mutex);
    return state_of(*event->context, event->hung);
}

CUresult cuEventSynchronize(CUevent event) { return wait(cuEventQuery(event)); }

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent stop) {
    return elapsed_time(milliseconds, start, stop);
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent stop) {
    return elapsed_time(milliseconds, start, stop);
}

}  // extern "C"
