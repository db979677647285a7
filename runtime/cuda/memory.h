// Device memory: DeviceBuffer owns it, DeviceSpan views it. Both count elements of T. Used by the tuner, the
// decoder and tests; the dispatcher never allocates. The Driver and its context must outlive a buffer.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "runtime/cuda/driver.h"
#include "runtime/system/unique_handle.h"

namespace hone::runtime {

/// `count` elements at a device address; not owned.
template <class T>
struct DeviceSpan {
    CUdeviceptr address = 0;
    std::size_t count = 0;

    [[nodiscard]] std::size_t bytes() const { return count * sizeof(T); }
    /// For kernel arguments; never dereferenced on the host.
    [[nodiscard]] T* data() const { return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address)); }
    [[nodiscard]] DeviceSpan subspan(std::size_t offset, std::size_t length) const {
        return {address + offset * sizeof(T), length};
    }
};

struct DeviceMemoryTraits {
    using Handle = CUdeviceptr;
    static constexpr Handle none = 0;
    const Driver* driver = nullptr;
    void destroy(Handle handle) const noexcept { driver->give_back(&Driver::cuMemFree, handle); }
};

template <class T>
class DeviceBuffer {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    DeviceBuffer() = default;
    /// Not initialized. Throws CudaError; out of memory is CUDA_ERROR_OUT_OF_MEMORY. No elements: no memory,
    /// address 0.
    DeviceBuffer(const Driver& driver, std::size_t count) : count_(count) {
        if (count == 0) return;
        CUdeviceptr address = 0;
        check(driver, driver.cuMemAlloc(&address, count * sizeof(T)),
              fmt::format("allocating {} bytes", count * sizeof(T)));
        memory_ = UniqueHandle<DeviceMemoryTraits>(address, {&driver});
    }

    [[nodiscard]] DeviceSpan<T> span() const { return {memory_.get(), count_}; }
    [[nodiscard]] CUdeviceptr address() const { return memory_.get(); }
    [[nodiscard]] T* data() const { return span().data(); }
    [[nodiscard]] std::size_t size() const { return count_; }
    [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }

  private:
    UniqueHandle<DeviceMemoryTraits> memory_;
    std::size_t count_ = 0;
};

struct HostMemoryTraits {
    using Handle = void*;
    static constexpr Handle none = nullptr;
    const Driver* driver = nullptr;
    void destroy(Handle handle) const noexcept { driver->give_back(&Driver::cuMemFreeHost, handle); }
};

/// Host memory that copies to and from the GPU reach without a detour, and beside other work.
template <class T>
class PinnedBuffer {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    PinnedBuffer() = default;
    /// Not initialized. Throws CudaError. No elements: no memory.
    PinnedBuffer(const Driver& driver, std::size_t count) : count_(count) {
        if (count == 0) return;
        void* memory = nullptr;
        check(driver, driver.cuMemAllocHost(&memory, count * sizeof(T)),
              fmt::format("allocating {} pinned bytes", count * sizeof(T)));
        memory_ = UniqueHandle<HostMemoryTraits>(memory, {&driver});
    }

    [[nodiscard]] std::span<T> span() const { return {static_cast<T*>(memory_.get()), count_}; }
    [[nodiscard]] T* data() const { return static_cast<T*>(memory_.get()); }
    [[nodiscard]] std::size_t size() const { return count_; }

  private:
    UniqueHandle<HostMemoryTraits> memory_;
    std::size_t count_ = 0;
};

/// Both wait until the copy is done, and throw CudaError; the sizes must agree.
template <class T>
void upload(const Driver& driver, DeviceSpan<T> to, std::type_identity_t<std::span<const T>> from) {
    if (from.size() != to.count) {
        check(driver, CUDA_ERROR_INVALID_VALUE,
              fmt::format("copying {} elements to {}", from.size(), to.count));
    }
    if (to.count == 0) return;
    const std::string what = fmt::format("copying {} bytes to the GPU", to.bytes());
    check(driver, driver.cuMemcpyHtoD(to.address, from.data(), to.bytes()), what);
    // From pageable memory it returns once the bytes are staged (CUDA driver API, synchronization behaviour),
    // and streams that do not wait for the default one may read before they have arrived.
    check(driver, driver.cuStreamSynchronize(nullptr), what);
}

template <class T>
[[nodiscard]] std::vector<T> download(const Driver& driver, DeviceSpan<T> from) {
    std::vector<T> to(from.count);
    if (from.count == 0) return to;
    check(driver, driver.cuMemcpyDtoH(to.data(), from.address, from.bytes()),
          fmt::format("copying {} bytes from the GPU", from.bytes()));
    return to;
}

}  // namespace hone::runtime
