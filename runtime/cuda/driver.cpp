#include "runtime/cuda/driver.h"

#include <array>
#include <cctype>
#include <fstream>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/nvml/nvml.h"
#include "runtime/system/environment.h"

namespace hone::runtime {
namespace {

constexpr const char* minimum_driver = "525";

std::vector<std::string> driver_candidates() {
    if (const std::string override = read_environment().cuda_library; !override.empty()) return {override};
    return {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"};
}

constexpr const char* driver_hint =
    "Install the NVIDIA driver, or start the container with GPU access (docker run --gpus all). Nothing but "
    "measuring and "
    "launching needs it.";

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue ...": the first word that is numbers with
// dots.
std::string kernel_module_version() {
    std::ifstream file("/proc/driver/nvidia/version");
    for (std::string word; file >> word;) {
        if (std::isdigit(static_cast<unsigned char>(word.front())) != 0 &&
            word.find('.') != std::string::npos &&
            word.find_first_not_of("0123456789.") == std::string::npos) {
            return word;
        }
    }
    return {};
}

// CUDA 12.8 gave one function a new name with the same signature; drivers before 570 have only the old one.
const char* older_name(const std::string& name) {
    return name == "cuEventElapsedTime_v2" ? "cuEventElapsedTime" : name.c_str();
}

std::string cuda_version(const Driver& driver) {
    int version = 0;
    if (driver.cuDriverGetVersion == nullptr || driver.cuDriverGetVersion(&version) != CUDA_SUCCESS)
        return "unknown";
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// What the failure of cuInit usually means; empty where its own text is enough.
std::string start_advice(CUresult result) {
    switch (result) {
        case CUDA_ERROR_NO_DEVICE: return " (CUDA_VISIBLE_DEVICES hides all GPUs, or there is none)";
        case CUDA_ERROR_STUB_LIBRARY:
            return " (this is the toolkit's stub of libcuda: take it out of LD_LIBRARY_PATH)";
        case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
            return " (libcuda and the loaded kernel module differ: reboot)";
        case CUDA_ERROR_SYSTEM_NOT_READY: return " (nvidia-fabricmanager is not running)";
        default: return {};
    }
}

int attribute(const Driver& driver, CUdevice device, CUdevice_attribute which) {
    int value = 0;
    check(driver, driver.cuDeviceGetAttribute(&value, which, device),
          fmt::format("attribute {} of GPU {}", static_cast<int>(which), device));
    return value;
}

CUdevice device_handle(const Driver& driver, int device) {
    CUdevice handle = 0;
    check(driver, driver.cuDeviceGet(&handle, device),
          fmt::format("GPU {} of {}", device, driver.device_count()));
    return handle;
}

std::string device_name(const Driver& driver, CUdevice device) {
    std::array<char, 256> name{};
    check(driver, driver.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device),
          fmt::format("name of GPU {}", device));
    return name.data();
}

}  // namespace

bool is_sticky(CUresult result) {
    switch (result) {
        case CUDA_ERROR_ECC_UNCORRECTABLE:
        case CUDA_ERROR_NVLINK_UNCORRECTABLE:
        case CUDA_ERROR_ILLEGAL_ADDRESS:
        case CUDA_ERROR_LAUNCH_TIMEOUT:
        case CUDA_ERROR_CONTEXT_IS_DESTROYED:
        case CUDA_ERROR_ASSERT:
        case CUDA_ERROR_HARDWARE_STACK_ERROR:
        case CUDA_ERROR_ILLEGAL_INSTRUCTION:
        case CUDA_ERROR_MISALIGNED_ADDRESS:
        case CUDA_ERROR_INVALID_ADDRESS_SPACE:
        case CUDA_ERROR_INVALID_PC:
        case CUDA_ERROR_LAUNCH_FAILED:
        case CUDA_ERROR_TENSOR_MEMORY_LEAK:
        case CUDA_ERROR_EXTERNAL_DEVICE:
        case CUDA_ERROR_UNKNOWN: return true;
        default: return false;
    }
}

bool CudaError::sticky() const { return is_sticky(result_); }

void Driver::resolve_functions() {
    std::string missing;
    // Each pointer is typed by its declaration in cuda.h; the symbol is that declaration's name after macro
    // expansion.
    const auto resolve = [&](auto& function, const std::string& name) {
        void* symbol = library_.symbol(name.c_str());
        if (symbol == nullptr) symbol = library_.symbol(older_name(name));
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
        if (symbol == nullptr && missing.empty()) missing = name;
    };
#define HONE_TEXT(x) #x
#define HONE_RESOLVE(name) resolve(name, HONE_TEXT(name));
    HONE_CUDA_FUNCTIONS(HONE_RESOLVE)
#undef HONE_RESOLVE
#undef HONE_TEXT
    if (missing.empty()) return;
    throw LibraryError(fmt::format("driver too old: version {} at {} has no {}, needs at least {}", version(),
                                   library_path(), missing, minimum_driver),
                       fmt::format("Update the NVIDIA driver to {} or later.", minimum_driver));
}

std::shared_ptr<const Driver> Driver::load() {
    const std::shared_ptr<Driver> driver(new Driver);
    driver->library_ =
        SharedLibrary::open_first("The CUDA driver (libcuda.so.1)", driver_candidates(), driver_hint);
    driver->resolve_functions();
    const CUresult result = driver->cuInit(0);
    check(*driver, result, "The CUDA driver does not start" + start_advice(result));
    return driver;
}

int Driver::device_count() const {
    int count = 0;
    check(*this, cuDeviceGetCount(&count), "number of GPUs");
    return count;
}

std::string Driver::version() const {
    // A library named by hand need not belong to this machine's kernel module.
    const bool own_library = read_environment().cuda_library.empty();
    if (const std::string version = own_library ? kernel_module_version() : std::string(); !version.empty())
        return version;
    if (const std::string version = nvml_driver_version(); !version.empty()) return version;
    return cuda_version(*this);
}

const std::string& Driver::library_path() const { return library_.path(); }

std::string describe(const Driver& driver, CUresult result) {
    const char* name = nullptr;
    const char* text = nullptr;
    if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown CUDA error";
    if (driver.cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) text = "no description";
    return fmt::format("{} ({}): {}", name, static_cast<int>(result), text);
}

void check(const Driver& driver, CUresult result, const std::string& what, std::source_location where) {
    if (result == CUDA_SUCCESS) return;
    const std::string_view path = where.file_name();
    throw CudaError(fmt::format("{}: {} [{}:{}]", what, describe(driver, result),
                                path.substr(path.rfind('/') + 1), where.line()),
                    result);
}

DeviceTraits device_traits(const Driver& driver, int device) {
    const CUdevice handle = device_handle(driver, device);
    const auto get = [&](CUdevice_attribute which) { return attribute(driver, handle, which); };
    std::size_t memory_bytes = 0;
    check(driver, driver.cuDeviceTotalMem(&memory_bytes, handle), fmt::format("memory of GPU {}", device));
    // Clock in kHz, two transfers a cycle, bus width in bits.
    const double memory_bytes_per_s = 2e3 * get(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) *
                                      get(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8.0;
    return {
        .name = device_name(driver, handle),
        .compute_major = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        .compute_minor = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        .sm_count = get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        .max_threads_per_sm = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
        .max_blocks_per_sm = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
        .registers_per_sm = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
        .shared_bytes_per_sm = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        .max_shared_bytes_per_block = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        .l2_bytes = get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
        .memory_bytes = static_cast<std::int64_t>(memory_bytes),
        .memory_bytes_per_s = memory_bytes_per_s,
        .sm_clock_khz = get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
    };
}

cache::GpuKey gpu_key(const Driver& driver, int device) {
    const CUdevice handle = device_handle(driver, device);
    std::string name = device_name(driver, handle);
    // A MIG slice carries its profile in its name: "NVIDIA H100 80GB HBM3 MIG 1g.10gb".
    std::string mig_profile;
    if (const auto at = name.find(" MIG "); at != std::string::npos) {
        mig_profile = name.substr(at + 5);
        name.erase(at);
    }
    return {
        .name = name,
        .compute_major = attribute(driver, handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        .compute_minor = attribute(driver, handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        .sm_count = attribute(driver, handle, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        .memory_clock_mhz = attribute(driver, handle, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) / 1000,
        .mig_profile = mig_profile,
    };
}

std::string pci_bus_id(const Driver& driver, int device) {
    std::array<char, 32> id{};
    check(driver,
          driver.cuDeviceGetPCIBusId(id.data(), static_cast<int>(id.size()), device_handle(driver, device)),
          fmt::format("PCI bus id of GPU {}", device));
    return id.data();
}

std::string device_uuid(const Driver& driver, int device) {
    CUuuid uuid{};
    check(driver, driver.cuDeviceGetUuid(&uuid, device_handle(driver, device)),
          fmt::format("UUID of GPU {}", device));
    std::string text = "GPU";
    for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
        if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
    }
    return text;
}

std::int64_t free_memory_bytes(const Driver& driver) {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    check(driver, driver.cuMemGetInfo(&free_bytes, &total_bytes), "free memory");
    return static_cast<std::int64_t>(free_bytes);
}

PrimaryContext::PrimaryContext(std::shared_ptr<const Driver> driver, int device)
    : driver_(std::move(driver)), device_(device) {
    const CUdevice handle = device_handle(*driver_, device);
    check(*driver_, driver_->cuCtxGetCurrent(&former_), "current context");
    CUcontext context = nullptr;
    check(*driver_, driver_->cuDevicePrimaryCtxRetain(&context, handle),
          fmt::format("primary context of GPU {}", device));
    if (const CUresult result = driver_->cuCtxSetCurrent(context); result != CUDA_SUCCESS) {
        driver_->cuDevicePrimaryCtxRelease(handle);
        check(*driver_, result, fmt::format("primary context of GPU {}", device));
    }
    context_ = context;
}

PrimaryContext::PrimaryContext(PrimaryContext&& other) noexcept
    : driver_(std::move(other.driver_)),
      context_(std::exchange(other.context_, nullptr)),
      former_(other.former_),
      device_(other.device_) {}

PrimaryContext::~PrimaryContext() {
    if (context_ == nullptr) return;
    CUcontext current = nullptr;
    if (driver_->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context_)
        driver_->cuCtxSetCurrent(former_);
    CUdevice handle = 0;
    if (driver_->cuDeviceGet(&handle, device_) == CUDA_SUCCESS) driver_->cuDevicePrimaryCtxRelease(handle);
}

CurrentContext::CurrentContext(const Driver& driver, CUcontext context) : driver_(driver) {
    check(driver, driver.cuCtxPushCurrent(context), "making a context current");
}

CurrentContext::~CurrentContext() {
    CUcontext popped = nullptr;
    driver_.cuCtxPopCurrent(&popped);
}

}  // namespace hone::runtime
