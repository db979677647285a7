#include "tuner/measure/offline_measurer.h"

#include <algorithm>

#include "tuner/errors.h"

namespace hone::tuner {
namespace {

DeviceInfo representative(Arch arch) {
    std::optional<DeviceTraits> traits = representative_device(arch);
    if (!traits)
        throw ConfigError("arch: " + to_string(arch) + " is not an architecture that Hone compiles for");
    cache::GpuKey gpu{.name = traits->name,
                      .compute_major = traits->compute_major,
                      .compute_minor = traits->compute_minor,
                      .sm_count = traits->sm_count,
                      .memory_clock_mhz = 0,
                      .mig_profile = {}};
    return {.traits = std::move(*traits), .gpu = std::move(gpu), .toolchain = {}};
}

/// Share of an SM's threads that registers and shared memory leave room for; 1: all of them.
double occupancy(const DeviceTraits& traits, const Launch& launch, const cache::Resources& resources) {
    const double threads = static_cast<double>(launch.block.x) * launch.block.y * launch.block.z;
    double blocks = traits.max_threads_per_sm / threads;
    if (resources.registers > 0)
        blocks = std::min(blocks, traits.registers_per_sm / (resources.registers * threads));
    const double shared = static_cast<double>(resources.shared_bytes) + launch.shared_bytes;
    if (shared > 0) blocks = std::min(blocks, static_cast<double>(traits.shared_bytes_per_sm) / shared);
    return std::clamp(blocks * threads / traits.max_threads_per_sm, 0.01, 1.0);
}

}  // namespace

OfflineMeasurer::OfflineMeasurer(Arch arch, std::string nvrtc_version) : info_(representative(arch)) {
    info_.toolchain.nvrtc = std::move(nvrtc_version);
}

std::optional<double> OfflineMeasurer::least_us(const Problem& problem, const Candidate& candidate) const {
    return hone::predicted_us(problem, candidate, info_.traits);
}

Verdict OfflineMeasurer::begin_problem(const Problem& problem) {
    problem_ = problem;
    return {};
}

Verdict OfflineMeasurer::verify(const CandidateImage&) { return {}; }

/// Memory-bound kernels reach the memory's speed from about a quarter of the threads on (Little's law at 16
/// bytes in flight a thread); below that the time grows as the occupancy falls.
double OfflineMeasurer::predicted_us(const CandidateImage& candidate) const {
    constexpr double enough_occupancy = 0.25;
    const double us = *least_us(problem_, candidate.candidate);
    if (candidate.image == nullptr) return us;
    const Plan plan = candidate.candidate.variant->plan(problem_, candidate.candidate.config, info_.traits);
    double lowest = 1.0;
    for (int i = 0; i < plan.launch_count; ++i) {
        const Launch& launch = plan.launches[static_cast<std::size_t>(i)];
        lowest = std::min(lowest, occupancy(info_.traits, launch, candidate.image->resources));
    }
    return us * std::max(1.0, enough_occupancy / lowest);
}

Samples OfflineMeasurer::time(const CandidateImage& candidate, int replays) {
    return {.verdict = {},
            .us = std::vector<double>(static_cast<std::size_t>(replays), predicted_us(candidate))};
}

std::vector<Samples> OfflineMeasurer::interleave(const std::vector<CandidateImage>& candidates, int rounds) {
    std::vector<Samples> samples;
    for (const CandidateImage& candidate : candidates) samples.push_back(time(candidate, rounds));
    return samples;
}

void OfflineMeasurer::end_problem() {}

}  // namespace hone::tuner
