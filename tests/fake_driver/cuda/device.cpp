#include <cuda.h>

#include <cstring>
#include <mutex>

#include "tests/fake_driver/cuda/entry_point.h"

using namespace hone::fake;

extern "C" {

CUresult cuDeviceGetCount(int* count) {
    const std::lock_guard lock(mutex);
    *count = static_cast<int>(machine().devices.size());
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    const std::lock_guard lock(mutex);
    if (!known_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
    const std::lock_guard lock(mutex);
    if (!known_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    std::strncpy(name, machine().devices[static_cast<std::size_t>(device)].name.c_str(),
                 static_cast<std::size_t>(length));
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    const std::lock_guard lock(mutex);
    if (!known_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *value = machine().devices[static_cast<std::size_t>(device)].attribute(attribute);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
    const std::lock_guard lock(mutex);
    if (!known_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *bytes = static_cast<size_t>(machine().devices[static_cast<std::size_t>(device)].memory_bytes);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    const std::lock_guard lock(mutex);
    if (!known_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *uuid = uuid_of(machine().devices[static_cast<std::size_t>(device)]);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
    const std::lock_guard lock(mutex);
    if (!known_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    std::strncpy(id, machine().devices[static_cast<std::size_t>(device)].pci_bus_id.c_str(),
                 static_cast<std::size_t>(length));
    return CUDA_SUCCESS;
}

}  // extern "C"
