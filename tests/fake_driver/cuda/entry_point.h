// What the fake driver's entry points share: the machine behind them, its lock, and the checks and waits that
// most of them begin or end with. Only the files of this folder and fake_cuda.cpp include it.
#pragma once

#include <cuda.h>

#include <mutex>

#include "tests/fake_driver/machine.h"

namespace hone::fake {

/// Held by every entry point that looks at the machine, but never while it waits for a stream.
extern std::mutex mutex;

/// The state of this library. Neither it nor the mutex is inline: the dynamic linker would share those among
/// all copies of the library that a test loads.
[[nodiscard]] Machine& machine();

[[nodiscard]] bool known_device(CUdevice device);

/// The default stream of the context for nullptr.
[[nodiscard]] CUstream_st& resolve(CUctx_st& context, CUstream stream);

/// What a query of a stream or an event of this context says: the context's error, not ready when a kernel
/// hangs.
[[nodiscard]] CUresult state_of(const CUctx_st& context, bool hung);

/// Like waiting for a kernel that never ends: only a signal ends it. Without the lock.
[[nodiscard]] CUresult wait(CUresult state);

/// Runs `work` with the current context, unless there is none or it has failed for good.
template <class Function>
CUresult in_context(Function work) {
    const std::lock_guard lock(mutex);
    CUctx_st* context = machine().current_context();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (context->sticky != CUDA_SUCCESS) return context->sticky;
    return work(*context);
}

}  // namespace hone::fake
