// Loads images and launches plans. LoadedPlan is immutable after construction and safe to launch from many
// threads; launch() makes no allocation, takes no lock and is allowed under stream capture.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernel_templates/plan.h"
#include "runtime/cuda/driver.h"

namespace hone::runtime {

/// An image in the current context with the kernels of one plan resolved, in the plan's order.
class LoadedPlan {
  public:
    /// A kernel of the plan, and where its parameters stand.
    struct Entry {
        CUfunction function = nullptr;
        /// Of parameters that are in the call: bytes behind its beginning. Their count is in steps of four,
        /// so that launch() knows how many it takes at a time. Small, since a driver's launch leaves little
        /// of a cache: this is one line of it for most kernels.
        std::uint8_t offset_count = 0;
        std::uint8_t made_count = 0;
        std::array<std::uint16_t, max_kernel_args> offsets{};
        /// Parameters that are not in the call, but among what its plan makes up.
        std::array<std::uint8_t, max_kernel_args> made{};
    };

    /// Loads the cubin, resolves the kernels that `plan` names and raises their dynamic shared memory and
    /// cluster limits. Throws CudaError naming kernel and cause.
    LoadedPlan(const Driver& driver, std::span<const std::byte> cubin, const Plan& plan);

    [[nodiscard]] const Entry& entry(int launch) const { return entries_[static_cast<std::size_t>(launch)]; }

  private:
    Module module_;
    std::array<Entry, max_launches> entries_{};
};

/// Enqueues all launches of the plan. Returns the first failure; later launches are then left out.
[[nodiscard]] CUresult launch(const Driver& driver, const LoadedPlan& loaded, const Plan& plan,
                              const Call& call, CUstream stream) noexcept;

}  // namespace hone::runtime
