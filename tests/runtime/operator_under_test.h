// Operators that are prepared on the fake machine, addresses that nobody follows, and launches that do
// nothing at all: what is left of run() is Hone's own work.
#pragma once

#include <cstdint>
#include <memory>

#include "hone/hone.h"
#include "runtime/dispatch/dispatcher.h"
#include "runtime/operators/entry.h"
#include "tests/support/fake_machine.h"

namespace hone::test {

inline CUresult launch_nothing(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                               unsigned, CUstream, void**, void**) {
    return CUDA_SUCCESS;
}
inline CUresult launch_nothing_extended(const CUlaunchConfig*, CUfunction, void**, void**) {
    return CUDA_SUCCESS;
}

/// The fake driver with launches that return at once.
[[nodiscard]] inline std::shared_ptr<const runtime::Driver> driver_without_launches() {
    const auto driver = std::const_pointer_cast<runtime::Driver>(runtime::Driver::load());
    driver->cuLaunchKernel = launch_nothing;
    driver->cuLaunchKernelEx = launch_nothing_extended;
    return driver;
}

template <class Description>
[[nodiscard]] auto prepare(runtime::Dispatcher& dispatcher, const Description& description,
                           bool checking = false) {
    return runtime::prepare_with({dispatcher, checking ? &dispatcher.session() : nullptr}, description);
}

template <class T = void>
[[nodiscard]] T* address(std::uint64_t mebibyte) {
    return reinterpret_cast<T*>(mebibyte << 20);
}

/// Addresses that are aligned well and never touched.
[[nodiscard]] inline RmsNormArgs untouched_args() {
    return {.x = reinterpret_cast<void*>(0x10000),
            .residual = reinterpret_cast<void*>(0x20000),
            .weight = reinterpret_cast<void*>(0x30000),
            .out = reinterpret_cast<void*>(0x40000),
            .sum = reinterpret_cast<void*>(0x50000),
            .scale = reinterpret_cast<float*>(0x60000)};
}

}  // namespace hone::test
