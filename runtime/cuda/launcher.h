// Loads images and launches plans. LoadedPlan is immutable after construction and safe to launch from many
// threads; launch() makes no allocation, takes no lock and is allowed under stream capture.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "kernel_templates/plan.h"
#include "runtime/cuda/driver.h"

namespace hone::runtime {

/// An image in the current context with the kernels of one plan resolved, in the plan's order.
class LoadedPlan {
  public:
    /// Loads the cubin, resolves the kernels that `plan` names and raises their dynamic shared memory and
    /// cluster limits. Throws CudaError naming kernel and cause.
    LoadedPlan(const Driver& driver, std::span<const std::byte> cubin, const Plan& plan);

    [[nodiscard]] CUfunction function(int launch) const {
        return functions_[static_cast<std::size_t>(launch)];
    }

  private:
    Module module_;
    std::array<CUfunction, max_launches> functions_{};
};

/// Enqueues all launches of the plan. Returns the first failure; later launches are then left out.
[[nodiscard]] CUresult launch(const Driver& driver, const LoadedPlan& loaded, const Plan& plan,
                              const Call& call, CUstream stream) noexcept;

}  // namespace hone::runtime
