// The host's side of kernel_templates/harness/harness.cu: enqueues its kernels on one stream. Result slots
// are 64-bit words in zeroed device memory; zero means "all fine". Lives in the measuring worker.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "kernel_templates/family.h"
#include "runtime/cuda/driver.h"

namespace hone::tuner {

/// Slots of one compared output, in harness.cu's order.
struct CompareSlots {
    double diff2 = 0;
    double ref2 = 0;
    std::uint64_t beyond = 0;
    std::uint64_t non_finite = 0;
    std::uint64_t first_bad = 0;  ///< elements - index; 0: none
};
inline constexpr std::size_t compare_slot_count = 5;
static_assert(sizeof(CompareSlots) == compare_slot_count * sizeof(std::uint64_t));

class Harness {
  public:
    /// Throws CudaError.
    Harness(const runtime::Driver& driver, std::span<const std::byte> cubin, CUstream stream, int sm_count);

    void fill(CUdeviceptr data, const Argument& argument, std::uint64_t seed) const;
    void compare(CUdeviceptr out, CUdeviceptr reference, const Argument& argument, const Tolerance& tolerance,
                 CUdeviceptr slots) const;
    void count_differences(CUdeviceptr a, CUdeviceptr b, std::int64_t bytes, CUdeviceptr count) const;
    void count_other(CUdeviceptr data, std::int64_t bytes, std::uint8_t pattern, CUdeviceptr count) const;
    void checksum(CUdeviceptr data, std::int64_t bytes, CUdeviceptr sum) const;

  private:
    [[nodiscard]] CUfunction function(const char* name) const;
    void launch(CUfunction function, std::int64_t items, std::span<void*> arguments) const;

    const runtime::Driver& driver_;
    CUstream stream_;
    int sm_count_;
    runtime::Module module_;
    CUfunction fill_ = nullptr;
    CUfunction compare_ = nullptr;
    CUfunction count_differences_ = nullptr;
    CUfunction count_other_ = nullptr;
    CUfunction checksum_ = nullptr;
};

}  // namespace hone::tuner
