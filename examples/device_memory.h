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

/// An array of floats on the device.
class DeviceArray {
  public:
    explicit DeviceArray(std::size_t count) : count_(count) {
        static const auto allocate = driver_function<int(unsigned long long*, std::size_t)>("cuMemAlloc_v2");
        check(allocate(&address_, count * sizeof(float)), "cuMemAlloc");
    }
    explicit DeviceArray(const std::vector<float>& values) : DeviceArray(values.size()) {
        static const auto copy =
            driver_function<int(unsigned long long, const void*, std::size_t)>("cuMemcpyHtoD_v2");
        check(copy(address_, values.data(), values.size() * sizeof(float)), "cuMemcpyHtoD");
    }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;
    ~DeviceArray() {
        static const auto release = driver_function<int(unsigned long long)>("cuMemFree_v2");
        release(address_);
    }

    [[nodiscard]] float* get() const { return reinterpret_cast<float*>(address_); }

    /// Waits for the default stream, then copies.
    [[nodiscard]] std::vector<float> to_host() const {
        static const auto copy =
            driver_function<int(void*, unsigned long long, std::size_t)>("cuMemcpyDtoH_v2");
        std::vector<float> values(count_);
        check(copy(values.data(), address_, count_ * sizeof(float)), "cuMemcpyDtoH");
        return values;
    }

  private:
    unsigned long long address_ = 0;
    std::size_t count_ = 0;
};

}  // namespace examples
