#include "tuner/gpu/harness.h"

#include <algorithm>
#include <array>

namespace hone::tuner {
namespace {

constexpr unsigned block_threads = 256;
constexpr std::int64_t blocks_per_sm = 8;

runtime::Module load_module(const runtime::Driver& driver, std::span<const std::byte> cubin) {
    CUmodule module = nullptr;
    runtime::check(driver, driver.cuModuleLoadData(&module, cubin.data()), "loading the measuring harness");
    return runtime::Module(module, {&driver});
}

}  // namespace

Harness::Harness(const runtime::Driver& driver, std::span<const std::byte> cubin, CUstream stream,
                 int sm_count)
    : driver_(driver),
      stream_(stream),
      sm_count_(std::max(1, sm_count)),
      module_(load_module(driver, cubin)) {
    fill_ = function("hone_fill");
    compare_ = function("hone_compare");
    count_differences_ = function("hone_count_differences");
    count_other_ = function("hone_count_other");
    checksum_ = function("hone_checksum");
}

CUfunction Harness::function(const char* name) const {
    CUfunction found = nullptr;
    runtime::check(driver_, driver_.cuModuleGetFunction(&found, module_.get(), name), name);
    return found;
}

void Harness::launch(CUfunction function, std::int64_t items, std::span<void*> arguments) const {
    const std::int64_t wanted = (items + block_threads - 1) / block_threads;
    const std::int64_t blocks = std::clamp<std::int64_t>(wanted, 1, blocks_per_sm * sm_count_);
    runtime::check(driver_,
                   driver_.cuLaunchKernel(function, static_cast<unsigned>(blocks), 1, 1, block_threads, 1, 1,
                                          0, stream_, arguments.data(), nullptr),
                   "launching the measuring harness");
}

void Harness::fill(CUdeviceptr data, const Argument& argument, std::uint64_t seed) const {
    auto elements = static_cast<std::uint64_t>(argument.elements());
    int dtype = static_cast<int>(argument.dtype);
    int kind = static_cast<int>(argument.fill);
    auto scale = static_cast<float>(argument.fill_scale);
    auto offset = static_cast<float>(argument.fill_offset);
    std::array<void*, 7> arguments{&data, &elements, &dtype, &kind, &scale, &offset, &seed};
    launch(fill_, argument.elements(), arguments);
}

void Harness::compare(CUdeviceptr out, CUdeviceptr reference, const Argument& argument,
                      const Tolerance& tolerance, CUdeviceptr slots) const {
    auto elements = static_cast<std::uint64_t>(argument.elements());
    int dtype = static_cast<int>(argument.dtype);
    auto max_abs = static_cast<float>(tolerance.max_abs);
    auto max_rel = static_cast<float>(tolerance.max_rel);
    std::array<void*, 7> arguments{&out, &reference, &elements, &dtype, &max_abs, &max_rel, &slots};
    launch(compare_, argument.elements(), arguments);
}

void Harness::count_differences(CUdeviceptr a, CUdeviceptr b, std::int64_t bytes, CUdeviceptr count) const {
    auto size = static_cast<std::uint64_t>(bytes);
    std::array<void*, 4> arguments{&a, &b, &size, &count};
    launch(count_differences_, bytes / 8, arguments);
}

void Harness::count_other(CUdeviceptr data, std::int64_t bytes, std::uint8_t pattern,
                          CUdeviceptr count) const {
    auto size = static_cast<std::uint64_t>(bytes);
    int value = pattern;
    std::array<void*, 4> arguments{&data, &size, &value, &count};
    launch(count_other_, bytes, arguments);
}

void Harness::checksum(CUdeviceptr data, std::int64_t bytes, CUdeviceptr sum) const {
    auto size = static_cast<std::uint64_t>(bytes);
    std::array<void*, 3> arguments{&data, &size, &sum};
    launch(checksum_, bytes / 8, arguments);
}

}  // namespace hone::tuner
