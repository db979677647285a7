// Device memory for the examples, so that they need no CUDA toolkit: a program of yours uses cudaMalloc and
// cudaMemcpy instead. Takes the driver that is loaded already; works in the current context.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace examples {

/// A function of the CUDA driver. HONE_CUDA_LIBRARY names another library, as for Hone itself.
template <class Signature>
Signature* driver_function(const char* name) {
    const char* other = std::getenv("HONE_CUDA_LIBRARY");
    void* library = dlopen(other != nullptr ? other : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void* function = library != nullptr ? dlsym(library, name) : nullptr;
    if (function == nullptr) throw std::runtime_error(std::string("the CUDA driver has no ") + name);
    return reinterpret_cast<Signature*>(function);
}

inline void check(int result, const char* what) {
    if (result != 0) throw std::runtime_error(std::string(what) + ": CUDA error " + std::to_string(result));
}

/// An array on the device.
template <class T>
class DeviceArray {
  public:
    explicit DeviceArray(std::size_t count) : count_(count) {
        static const auto allocate = driver_function<int(unsigned long long*, std::size_t)>("cuMemAlloc_v2");
        if (count > 0) check(allocate(&address_, count * sizeof(T)), "cuMemAlloc");
    }
    explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
        static const auto copy =
            driver_function<int(unsigned long long, const void*, std::size_t)>("cuMemcpyHtoD_v2");
        check(copy(address_, values.data(), values.size() * sizeof(T)), "cuMemcpyHtoD");
    }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;
    ~DeviceArray() {
        static const auto release = driver_function<int(unsigned long long)>("cuMemFree_v2");
        if (address_ != 0) release(address_);
    }

    /// nullptr for an array without elements.
    [[nodiscard]] T* get() const { return reinterpret_cast<T*>(address_); }

    /// Waits for the default stream, then copies.
    [[nodiscard]] std::vector<T> to_host() const {
        static const auto copy =
            driver_function<int(void*, unsigned long long, std::size_t)>("cuMemcpyDtoH_v2");
        std::vector<T> values(count_);
        check(copy(values.data(), address_, count_ * sizeof(T)), "cuMemcpyDtoH");
        return values;
    }

  private:
    unsigned long long address_ = 0;
    std::size_t count_ = 0;
};

/// Bytes for a workspace; workspace_bytes() of a prepared operator says how many.
inline DeviceArray<std::byte> workspace(long long bytes) {
    return DeviceArray<std::byte>(static_cast<std::size_t>(bytes));
}

}  // namespace examples
