#include "kernel_templates/device_traits.h"

#include <charconv>

namespace hone {
namespace {

constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;
constexpr std::int64_t gib = 1024 * mib;

constexpr std::array<Arch, 7> archs{
    {{7, 5, false}, {8, 0, false}, {8, 6, false}, {8, 9, false}, {9, 0, true}, {10, 0, true}, {12, 0, true}}};

DeviceTraits make(std::string name, Arch arch, int sms, int threads, int blocks, std::int64_t shared_sm,
                  std::int64_t shared_block, std::int64_t l2, std::int64_t memory, double bandwidth,
                  int clock_khz) {
    return {.name = std::move(name),
            .compute_major = arch.major,
            .compute_minor = arch.minor,
            .sm_count = sms,
            .max_threads_per_sm = threads,
            .max_blocks_per_sm = blocks,
            .shared_bytes_per_sm = shared_sm,
            .max_shared_bytes_per_block = shared_block,
            .l2_bytes = l2,
            .memory_bytes = memory,
            .memory_bytes_per_s = bandwidth,
            .sm_clock_khz = clock_khz};
}

}  // namespace

std::string to_string(Arch arch) {
    return "sm_" + std::to_string(arch.major) + std::to_string(arch.minor) + (arch.specific ? "a" : "");
}

std::optional<Arch> arch_from_name(std::string_view text) {
    constexpr std::string_view prefix = "sm_";
    if (!text.starts_with(prefix)) return std::nullopt;
    text.remove_prefix(prefix.size());
    const bool specific = text.ends_with('a');
    if (specific) text.remove_suffix(1);
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number < 50 || number > 999)
        return std::nullopt;
    return Arch{number / 10, number % 10, specific};
}

Arch native_arch(int compute_major, int compute_minor) {
    return {compute_major, compute_minor, compute_major >= 9};
}

// Datasheet and CUDA programming guide figures (compute capability tables).
std::optional<DeviceTraits> representative_device(Arch arch) {
    switch (arch.major * 10 + arch.minor) {
        case 75:
            return make("Tesla T4", arch, 40, 1024, 16, 64 * kib, 64 * kib, 4 * mib, 16 * gib, 0.32e12,
                        1590000);
        case 80:
            return make("NVIDIA A100-SXM4-80GB", arch, 108, 2048, 32, 164 * kib, 163 * kib, 40 * mib,
                        80 * gib, 2.04e12, 1410000);
        case 86:
            return make("NVIDIA A10", arch, 72, 1536, 16, 100 * kib, 99 * kib, 6 * mib, 24 * gib, 0.60e12,
                        1695000);
        case 89:
            return make("NVIDIA L40S", arch, 142, 1536, 24, 100 * kib, 99 * kib, 96 * mib, 48 * gib, 0.86e12,
                        2520000);
        case 90:
            return make("NVIDIA H100 80GB HBM3", arch, 132, 2048, 32, 228 * kib, 227 * kib, 50 * mib,
                        80 * gib, 3.35e12, 1980000);
        case 100:
            return make("NVIDIA B200", arch, 148, 2048, 32, 228 * kib, 227 * kib, 126 * mib, 180 * gib,
                        8.0e12, 1965000);
        case 120:
            return make("NVIDIA GeForce RTX 5090", arch, 170, 1536, 24, 100 * kib, 99 * kib, 96 * mib,
                        32 * gib, 1.79e12, 2407000);
        default: return std::nullopt;
    }
}

std::span<const Arch> supported_archs() { return archs; }

}  // namespace hone
