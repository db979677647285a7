// What a kernel's design space and launch plan may know of a GPU. Filled in by the runtime from the driver,
// or made up by tests and by offline compilation: nothing here needs a device.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hone {

/// A compile target: sm_75, sm_80, sm_90a. `specific` is the `a` suffix: chip-specific instructions, no
/// forward compatibility.
struct Arch {
    int major = 0;
    int minor = 0;
    bool specific = false;

    friend bool operator==(const Arch&, const Arch&) = default;
};

/// "sm_90a"
[[nodiscard]] std::string to_string(Arch arch);
[[nodiscard]] std::optional<Arch> arch_from_name(std::string_view text);
/// The best target for a device of this compute capability: with the `a` suffix from 9.0 on.
[[nodiscard]] Arch native_arch(int compute_major, int compute_minor);

struct DeviceTraits {
    std::string name;
    int compute_major = 0;
    int compute_minor = 0;
    int sm_count = 0;
    int max_threads_per_sm = 0;
    int max_blocks_per_sm = 0;
    int registers_per_sm = 65536;
    std::int64_t shared_bytes_per_sm = 0;
    std::int64_t max_shared_bytes_per_block = 0;  // with opt-in
    std::int64_t l2_bytes = 0;
    std::int64_t memory_bytes = 0;
    double memory_bytes_per_s = 0;  // theoretical: bus width x data rate
    int sm_clock_khz = 0;           // boost

    [[nodiscard]] bool has_clusters() const { return compute_major >= 9; }
    [[nodiscard]] bool has_programmatic_launch() const { return compute_major >= 9; }
    [[nodiscard]] bool has_async_copy() const { return compute_major >= 8; }
    [[nodiscard]] bool has_bulk_copy() const { return compute_major >= 9; }
    [[nodiscard]] Arch arch() const { return native_arch(compute_major, compute_minor); }
};

/// Datasheet traits of one representative device for each architecture Hone compiles for; what `--offline
/// --arch` and the tests without a GPU plan against. Empty when the architecture is not one of
/// `supported_archs()`.
[[nodiscard]] std::optional<DeviceTraits> representative_device(Arch arch);

/// sm_75, sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a.
[[nodiscard]] std::span<const Arch> supported_archs();

}  // namespace hone
