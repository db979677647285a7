#include "runtime/cuda/launcher.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "kernel_templates/kit/ceil_div.h"

namespace hone::runtime {
namespace {

constexpr int shared_bytes_without_opt_in = 48 * 1024;
constexpr std::uint32_t portable_cluster_blocks = 8;

std::uint64_t volume(const Dim3& extent) { return std::uint64_t{extent.x} * extent.y * extent.z; }

int attribute(const Driver& driver, CUfunction function, CUfunction_attribute which,
              const std::string& kernel) {
    int value = 0;
    check(driver, driver.cuFuncGetAttribute(&value, which, function), kernel);
    return value;
}

int device_attribute(const Driver& driver, CUdevice_attribute which, const std::string& kernel) {
    CUdevice device = 0;
    check(driver, driver.cuCtxGetDevice(&device), kernel);
    int value = 0;
    check(driver, driver.cuDeviceGetAttribute(&value, which, device), kernel);
    return value;
}

[[noreturn]] void refuse(const std::string& what) {
    throw CudaError(fmt::format("{}: CUDA_ERROR_INVALID_VALUE (1)", what), CUDA_ERROR_INVALID_VALUE);
}

// Images of a newer compiler than the driver fail with codes whose texts do not say so.
std::string image_advice(const Driver& driver, CUresult result) {
    const bool unreadable = result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
                            result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    return unreadable ? fmt::format(" (compiled for another GPU, or by a newer NVRTC than driver {} reads)",
                                    driver.version())
                      : std::string();
}

Module load_module(const Driver& driver, std::span<const std::byte> cubin, const Plan& plan) {
    CUmodule module = nullptr;
    const CUresult result = driver.cuModuleLoadData(&module, cubin.data());
    if (result != CUDA_SUCCESS) {
        check(driver, result,
              fmt::format("loading the image of kernel {}{}", plan.launches[0].kernel->name,
                          image_advice(driver, result)));
    }
    return Module(module, {&driver});
}

void check_block(const Driver& driver, CUfunction function, const Launch& launch, const std::string& kernel) {
    const auto threads = volume(launch.block);
    const int limit = attribute(driver, function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel);
    if (threads > static_cast<std::uint64_t>(limit)) {
        refuse(fmt::format("{}: {} threads per block, its image allows {}", kernel, threads, limit));
    }
}

void raise_shared_limit(const Driver& driver, CUfunction function, const Launch& launch,
                        const std::string& kernel) {
    const int fixed = attribute(driver, function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel);
    const std::int64_t total = std::int64_t{fixed} + launch.shared_bytes;
    if (total <= shared_bytes_without_opt_in) return;
    const int limit = device_attribute(driver, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, kernel);
    if (total > limit) {
        refuse(
            fmt::format("{}: {} bytes of shared memory per block ({} static, {} dynamic), this GPU allows {}",
                        kernel, total, fixed, launch.shared_bytes, limit));
    }
    // A plan may launch one kernel twice with different sizes: the limit only rises.
    const auto bytes = static_cast<int>(launch.shared_bytes);
    if (attribute(driver, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel) >= bytes) return;
    check(driver, driver.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes),
          fmt::format("{}: {} bytes of dynamic shared memory", kernel, bytes));
}

void allow_cluster(const Driver& driver, CUfunction function, const Launch& launch,
                   const std::string& kernel) {
    if (!launch.has_cluster()) return;
    if (device_attribute(driver, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, kernel) == 0) {
        refuse(fmt::format("{}: a cluster of {} blocks, this GPU has no clusters", kernel,
                           volume(launch.cluster)));
    }
    if (volume(launch.cluster) <= portable_cluster_blocks) return;
    check(driver, driver.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
          fmt::format("{}: a cluster of {} blocks", kernel, volume(launch.cluster)));
}

using Attributes = std::array<CUlaunchAttribute, 2>;

unsigned int fill_attributes(const Launch& launch, Attributes& attributes) noexcept {
    unsigned int count = 0;
    if (launch.has_cluster()) {
        CUlaunchAttribute& attribute = attributes[count++];
        attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attribute.value.clusterDim = {launch.cluster.x, launch.cluster.y, launch.cluster.z};
    }
    if (launch.programmatic) {
        CUlaunchAttribute& attribute = attributes[count++];
        attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute.value.programmaticStreamSerializationAllowed = 1;
    }
    return count;
}

using EncodedMaps = std::array<CUtensorMap, max_tensor_maps>;

CUtensorMapDataType tensor_map_type(Dtype dtype) noexcept {
    switch (dtype) {
        case Dtype::fp32: return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
        case Dtype::fp16: return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
        case Dtype::bf16: return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
        case Dtype::int8:
        case Dtype::fp8_e4m3: break;
    }
    return CU_TENSOR_MAP_DATA_TYPE_UINT8;
}

CUtensorMapSwizzle tensor_map_swizzle(int bytes) noexcept {
    switch (bytes) {
        case 32: return CU_TENSOR_MAP_SWIZZLE_32B;
        case 64: return CU_TENSOR_MAP_SWIZZLE_64B;
        case 128: return CU_TENSOR_MAP_SWIZZLE_128B;
        default: return CU_TENSOR_MAP_SWIZZLE_NONE;
    }
}

CUresult encode(const Driver& driver, const TensorMap& map, const Call& call, CUtensorMap& encoded) noexcept {
    std::array<cuuint64_t, 5> extents{};
    std::array<cuuint64_t, 4> stride_bytes{};
    std::array<cuuint32_t, 5> box{};
    constexpr std::array<cuuint32_t, 5> element_strides{1, 1, 1, 1, 1};
    const auto element_bytes = static_cast<std::uint64_t>(size_bytes(map.dtype));
    cuuint64_t bytes = element_bytes;  // of what lies below a dimension, without gaps
    for (std::size_t d = 0; d < map.rank; ++d) {
        const std::uint8_t extent = map.extent_scalars[d];
        extents[d] = extent == TensorMap::fixed ? map.extents[d] : call.scalars[extent].bits;
        box[d] = map.box[d];
        bytes *= extents[d];
        if (d + 1 == map.rank) break;
        const std::uint8_t scalar = map.stride_scalars[d];
        if (scalar != TensorMap::no_gaps) bytes = call.scalars[scalar].bits * element_bytes;
        stride_bytes[d] = bytes;
    }
    auto* const base = static_cast<std::byte*>(call.pointers[map.pointer]) + map.offset_bytes;
    return driver.cuTensorMapEncodeTiled(
        &encoded, tensor_map_type(map.dtype), map.rank, base, extents.data(), stride_bytes.data(), box.data(),
        element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, tensor_map_swizzle(map.swizzle_bytes),
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

CUresult encode_tensor_maps(const Driver& driver, const Plan& plan, const Call& call,
                            EncodedMaps& maps) noexcept {
    for (std::size_t i = 0; i < static_cast<std::size_t>(plan.tensor_map_count); ++i) {
        if (const std::uint8_t other = plan.tensor_maps[i].same_as; other != TensorMap::none) {
            maps[i] = maps[other];
            continue;
        }
        const CUresult result = encode(driver, plan.tensor_maps[i], call, maps[i]);
        if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
}

using MadeValues = std::array<std::int64_t, max_plan_values>;

void make_values(const Plan& plan, const Call& call, MadeValues& values) noexcept {
    for (std::size_t i = 0; i < static_cast<std::size_t>(plan.value_count); ++i) {
        const PlanValue& value = plan.values[i];
        values[i] = value.number;
        if (value.pointer == PlanValue::no_pointer) continue;
        const void* base = call.pointers[static_cast<std::size_t>(value.pointer)];
        values[i] += static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(base));
    }
}

// A narrow parameter is the low bytes of its eight.
static_assert(std::endian::native == std::endian::little && sizeof(Scalar) == 8 &&
              sizeof(CUtensorMap) == 128);

/// A pointer to each parameter. The driver copies from there: where a parameter lies among the others depends
/// on the architecture, whose constant bank does not begin at a multiple of a tensor map's alignment.
using Parameters = std::array<void*, max_kernel_args>;

constexpr std::size_t parameters_a_step = 4;
static_assert(max_kernel_args % parameters_a_step == 0);

bool is_in_call(KernelArg::Kind kind) {
    return kind == KernelArg::Kind::pointer || kind == KernelArg::Kind::scalar ||
           kind == KernelArg::Kind::narrow || kind == KernelArg::Kind::real;
}

std::uint16_t offset_in_call(const KernelArg& arg) {
    const bool is_pointer = arg.kind == KernelArg::Kind::pointer;
    const std::size_t first = is_pointer ? offsetof(Call, pointers) : offsetof(Call, scalars);
    return static_cast<std::uint16_t>(first + arg.index * (is_pointer ? sizeof(void*) : sizeof(Scalar)));
}

LoadedPlan::Entry entry_of(const Kernel& kernel, CUfunction function) {
    LoadedPlan::Entry entry{.function = function};
    const std::size_t count = kernel.args.size();
    for (std::size_t i = 0; i < count; ++i) {
        if (is_in_call(kernel.args[i].kind)) {
            entry.offsets[i] = offset_in_call(kernel.args[i]);
        } else {
            entry.made[entry.made_count++] = static_cast<std::uint8_t>(i);
        }
    }
    const auto steps = ceil_div(static_cast<std::int64_t>(count), parameters_a_step);
    entry.offset_count = static_cast<std::uint8_t>(steps * parameters_a_step);
    return entry;
}

void* made_parameter(const KernelArg& arg, EncodedMaps& maps, MadeValues& values) noexcept {
    if (arg.kind == KernelArg::Kind::tensor_map) return &maps[arg.index];
    return &values[arg.index];
}

void point(Parameters& parameters, const LoadedPlan::Entry& entry, const Launch& launch, const Call& call,
           EncodedMaps& maps, MadeValues& values) noexcept {
    auto* const first = reinterpret_cast<std::byte*>(const_cast<Call*>(&call));
    const std::uint16_t* const offsets = entry.offsets.data();
    void** const places = parameters.data();
    for (std::size_t i = 0; i < entry.offset_count; i += parameters_a_step) {
        places[i] = first + offsets[i];
        places[i + 1] = first + offsets[i + 1];
        places[i + 2] = first + offsets[i + 2];
        places[i + 3] = first + offsets[i + 3];
    }
    for (std::size_t i = 0; i < entry.made_count; ++i) {
        const std::size_t arg = entry.made[i];
        parameters[arg] = made_parameter(launch.kernel->args[arg], maps, values);
    }
    for (std::size_t i = 0; i < launch.substitution_count; ++i) {
        const Substitution& taken = launch.substitutions[i];
        parameters[taken.arg] = &values[taken.value];
    }
}

CUresult launch_one(const Driver& driver, CUfunction function, const Launch& launch, Parameters& parameters,
                    CUstream stream) noexcept {
    if (!launch.programmatic && !launch.has_cluster()) {
        return driver.cuLaunchKernel(function, launch.grid.x, launch.grid.y, launch.grid.z, launch.block.x,
                                     launch.block.y, launch.block.z, launch.shared_bytes, stream,
                                     parameters.data(), nullptr);
    }
    Attributes attributes;
    CUlaunchConfig config{};
    config.gridDimX = launch.grid.x;
    config.gridDimY = launch.grid.y;
    config.gridDimZ = launch.grid.z;
    config.blockDimX = launch.block.x;
    config.blockDimY = launch.block.y;
    config.blockDimZ = launch.block.z;
    config.sharedMemBytes = launch.shared_bytes;
    config.hStream = stream;
    config.attrs = attributes.data();
    config.numAttrs = fill_attributes(launch, attributes);
    return driver.cuLaunchKernelEx(&config, function, parameters.data(), nullptr);
}

void check_parameters(const Kernel& kernel) {
    if (kernel.args.size() > max_kernel_args)
        throw std::logic_error(fmt::format("kernel {} takes {} arguments; allowed: {}", kernel.name,
                                           kernel.args.size(), max_kernel_args));
}

}  // namespace

LoadedPlan::LoadedPlan(const Driver& driver, std::span<const std::byte> cubin, const Plan& plan)
    : module_(load_module(driver, cubin, plan)) {
    for (int i = 0; i < plan.launch_count; ++i) {
        const Launch& launch = plan.launches[static_cast<std::size_t>(i)];
        const std::string kernel = fmt::format("kernel {}", launch.kernel->name);
        check_parameters(*launch.kernel);
        CUfunction function = nullptr;
        check(driver, driver.cuModuleGetFunction(&function, module_.get(), launch.kernel->name), kernel);
        check_block(driver, function, launch, kernel);
        raise_shared_limit(driver, function, launch, kernel);
        allow_cluster(driver, function, launch, kernel);
        entries_[static_cast<std::size_t>(i)] = entry_of(*launch.kernel, function);
    }
}

CUresult launch(const Driver& driver, const LoadedPlan& loaded, const Plan& plan, const Call& call,
                CUstream stream) noexcept {
    EncodedMaps maps;  // the plan's, as values: others stay uninitialized
    if (const CUresult result = encode_tensor_maps(driver, plan, call, maps); result != CUDA_SUCCESS)
        return result;
    MadeValues values;
    make_values(plan, call, values);
    Parameters parameters;
    for (int i = plan.first_launch; i < plan.launch_count; ++i) {
        const Launch& launch = plan.launches[static_cast<std::size_t>(i)];
        const LoadedPlan::Entry& entry = loaded.entry(i);
        point(parameters, entry, launch, call, maps, values);
        const CUresult result = launch_one(driver, entry.function, launch, parameters, stream);
        if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
}

}  // namespace hone::runtime
