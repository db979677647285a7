#include "runtime/compile/compiler_count.h"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

namespace hone::runtime {
namespace {

constexpr std::int64_t bytes_per_compiler = 400'000'000;

std::int64_t available_memory_bytes() {
    std::ifstream info("/proc/meminfo");
    std::string name;
    std::string unit;
    std::int64_t kib = 0;
    while (info >> name >> kib) {
        if (name == "MemAvailable:") return kib * 1024;
        std::getline(info, unit);
    }
    return bytes_per_compiler;
}

}  // namespace

int compiler_count() {
    cpu_set_t set;
    const int cores = sched_getaffinity(0, sizeof set, &set) == 0
                          ? CPU_COUNT(&set)
                          : static_cast<int>(std::thread::hardware_concurrency());
    const std::int64_t by_memory = available_memory_bytes() / bytes_per_compiler;
    return std::max(1, static_cast<int>(std::min<std::int64_t>(cores, by_memory)));
}

}  // namespace hone::runtime
