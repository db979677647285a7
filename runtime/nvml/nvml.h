// NVML through dlopen, with prototypes of our own: clocks, throttling, tenants, power and energy of one GPU.
// Everything is optional: without NVML (or where it refuses a query) the answer is empty and tuning goes on,
// saying so once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/system/shared_library.h"

namespace hone::runtime {

struct ClockState {
    int sm_mhz = 0;
    int memory_mhz = 0;
    std::uint64_t event_reasons = 0;  ///< NVML clocks event reasons bit mask

    /// Hardware or software thermal slowdown, hardware slowdown or power brake: a disturbed sample. The
    /// software power cap is normal under load and not counted.
    [[nodiscard]] bool throttled() const;
};

class NvmlDevice {
  public:
    /// The device with this PCI bus id ("00000000:1b:00.0"); nullptr when NVML is missing or does not know
    /// it.
    [[nodiscard]] static std::shared_ptr<const NvmlDevice> open(const std::string& pci_bus_id);
    virtual ~NvmlDevice() = default;

    [[nodiscard]] virtual std::optional<ClockState> clocks() const = 0;
    [[nodiscard]] virtual std::optional<int> max_memory_mhz() const = 0;
    [[nodiscard]] virtual std::optional<int> max_sm_mhz() const = 0;
    /// Processes with a compute context on this GPU other than `own` ones.
    [[nodiscard]] virtual std::vector<std::int64_t> foreign_processes(
        const std::vector<std::int64_t>& own) const = 0;
    [[nodiscard]] virtual std::optional<double> energy_mj() const = 0;  ///< since driver load
    [[nodiscard]] virtual std::optional<double> power_w() const = 0;
    [[nodiscard]] virtual std::optional<int> temperature_c() const = 0;
};

/// A GPU as NVML lists it: without opening the driver, which takes a quarter of a second for each.
struct ListedGpu {
    std::string uuid;        ///< "GPU-8c6ff5f4-..."
    std::string name;        ///< "NVIDIA H200"
    bool is_parted = false;  ///< by MIG: the driver shows a part of it
};

/// All that this process may use, by their place on the bus, whatever CUDA_VISIBLE_DEVICES hides; empty where
/// NVML is missing or does not answer for one of them.
[[nodiscard]] std::vector<ListedGpu> listed_gpus();

/// Whether NVML is there and starts.
[[nodiscard]] bool has_nvml();

/// "580.159.04", empty when NVML is missing.
[[nodiscard]] std::string nvml_driver_version();

}  // namespace hone::runtime
