#include "tuner/models/call_time.h"

#include <cstdint>

#include "kernel_templates/family.h"

namespace hone::tuner {
namespace {

// Round numbers of an H200, whose recorded sweeps they were held against. How problems compare with each
// other is what counts.
constexpr std::int64_t bytes_a_ns = 4'000;
constexpr std::int64_t flops_a_ns = 500'000;
constexpr std::int64_t launch_ns = 1'200;

}  // namespace

std::chrono::nanoseconds call_time(const Problem& problem) {
    const Work work = problem.family->work(problem);
    const auto bytes = static_cast<std::int64_t>(work.bytes);
    const auto flops = static_cast<std::int64_t>(work.flops);
    return std::chrono::nanoseconds(launch_ns + bytes / bytes_a_ns + flops / flops_a_ns);
}

}  // namespace hone::tuner
