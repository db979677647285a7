// What run() costs. First against a driver whose launches return at once: the look-up itself, per call, p50
// and p99. Then, on a machine with a GPU, against a bare cuLaunchKernelEx of the same kernel in the same
// process, interleaved.
//
// - Both: `build/release/bench/dispatch_bench`.
// - The look-up alone, without a GPU: the same with
// HONE_CUDA_LIBRARY=$PWD/build/release/tests/libfake_cuda.so.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "hone/hone.h"
#include "kernel_templates/norm/declaration.h"
#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/entry.h"
#include "runtime/system/environment.h"

namespace {

using namespace hone;
using Clock = std::chrono::steady_clock;

constexpr int calls_per_sample = 16;  // one reading of the clock takes about as long as one call
constexpr int samples = 20'000;
constexpr RmsNorm problem{.hidden = 4096, .max_rows = 8192, .residual = true};

struct Percentiles {
    double p50 = 0;
    double p99 = 0;
};

Percentiles percentiles(std::vector<double> values) {
    std::ranges::sort(values);
    return {values[values.size() / 2], values[values.size() * 99 / 100]};
}

double ns_between(Clock::time_point start, Clock::time_point end) {
    return std::chrono::duration<double, std::nano>(end - start).count();
}

/// The clock's own cost, so that single calls can be timed too.
double clock_ns() {
    std::vector<double> gaps;
    for (int i = 0; i < samples; ++i) {
        const auto start = Clock::now();
        gaps.push_back(ns_between(start, Clock::now()));
    }
    return percentiles(gaps).p50;
}

/// Nanoseconds a call, over `count` calls at a time; `call` gets a running number.
template <class Call>
Percentiles time_calls(int count, double overhead_ns, Call&& call) {
    std::vector<double> times;
    times.reserve(samples);
    for (int i = 0; i < samples; ++i) {
        const auto start = Clock::now();
        for (int j = 0; j < count; ++j) call(i * count + j);
        times.push_back(std::max(0.0, ns_between(start, Clock::now()) - overhead_ns) / count);
    }
    return percentiles(times);
}

CUresult launch_nothing(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        CUstream, void**, void**) {
    return CUDA_SUCCESS;
}
CUresult launch_nothing_extended(const CUlaunchConfig*, CUfunction, void**, void**) { return CUDA_SUCCESS; }

RmsNormKernel prepare(runtime::Dispatcher& dispatcher) {
    return runtime::prepare_with({dispatcher}, problem);
}

void expect(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "error: %s\n", what);
    std::exit(1);
}

RmsNormArgs fake_args() {
    const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
    return {.x = at(1 << 20),
            .residual = at(2 << 20),
            .weight = at(3 << 20),
            .out = at(4 << 20),
            .sum = at(5 << 20)};
}

void look_up() {
    const auto driver = std::const_pointer_cast<runtime::Driver>(runtime::Driver::load());
    driver->cuLaunchKernel = launch_nothing;
    driver->cuLaunchKernelEx = launch_nothing_extended;
    runtime::Dispatcher dispatcher({.use_cache = false}, driver);
    const RmsNormKernel kernel = prepare(dispatcher);
    const RmsNormArgs args = fake_args();

    std::uint64_t failures = 0;
    const auto run = [&](int i) {
        const std::int64_t rows = (std::int64_t{i} * 7919) % problem.max_rows + 1;
        failures += kernel.run(nullptr, args, rows) != Status::ok;
    };
    const double overhead = clock_ns();
    const Percentiles many = time_calls(calls_per_sample, overhead, run);
    const Percentiles single = time_calls(1, overhead, run);
    expect(failures == 0, "a run failed");
    std::printf("look-up in run(), no-op launch, rows at random, %zu buckets\n",
                kernel.reports().front().buckets.size());
    std::printf("  %d calls a sample: p50 %6.1f ns   p99 %6.1f ns\n", calls_per_sample, many.p50, many.p99);
    std::printf("  1 call a sample:   p50 %6.1f ns   p99 %6.1f ns   (clock: %.1f ns, taken off)\n",
                single.p50, single.p99, overhead);
}

/// Device memory of `bytes`; lives as long as the process.
void* device_memory(const runtime::Driver& driver, std::size_t bytes) {
    CUdeviceptr address = 0;
    runtime::check(driver, driver.cuMemAlloc(&address, bytes), "device memory");
    return reinterpret_cast<void*>(address);
}

/// One launch as run() handed it to the driver: what a program without Hone would keep and call again.
struct RecordedLaunch {
    CUfunction function = nullptr;
    CUlaunchConfig config{};
    std::vector<CUlaunchAttribute> attributes;
    std::array<std::uint64_t, std::size(norm::call_args)> values{};
    std::array<void*, std::size(norm::call_args)> parameters{};
};
RecordedLaunch recorded;

CUresult record_extended(const CUlaunchConfig* config, CUfunction function, void** parameters, void**) {
    recorded.function = function;
    recorded.config = *config;
    recorded.attributes.assign(config->attrs, config->attrs + config->numAttrs);
    recorded.config.attrs = recorded.attributes.data();
    for (std::size_t i = 0; i < recorded.values.size(); ++i) {
        std::memcpy(&recorded.values[i], parameters[i], norm::call_args[i].bytes());
        recorded.parameters[i] = &recorded.values[i];
    }
    return CUDA_SUCCESS;
}

CUresult record(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters,
                void** extra) {
    CUlaunchConfig config{};
    config.gridDimX = grid_x;
    config.gridDimY = grid_y;
    config.gridDimZ = grid_z;
    config.blockDimX = block_x;
    config.blockDimY = block_y;
    config.blockDimZ = block_z;
    config.sharedMemBytes = shared_bytes;
    config.hStream = stream;
    return record_extended(&config, function, parameters, extra);
}

RmsNormArgs device_args(const runtime::Driver& driver, std::int64_t rows) {
    const auto bytes = static_cast<std::size_t>(rows * problem.hidden * 2);
    return {.x = device_memory(driver, bytes),
            .residual = device_memory(driver, bytes),
            .weight = device_memory(driver, bytes),
            .out = device_memory(driver, bytes),
            .sum = device_memory(driver, bytes)};
}

/// Nanoseconds of one `call`, median over batches short enough for the launch queue; the stream is empty
/// before each.
template <class Call>
double batch_ns(const runtime::Driver& driver, CUstream stream, Call&& call) {
    constexpr int batch = 64;
    runtime::check(driver, driver.cuStreamSynchronize(stream), "stream");
    const auto start = Clock::now();
    for (int i = 0; i < batch; ++i) call();
    return ns_between(start, Clock::now()) / batch;
}

void against_bare_launch() {
    constexpr std::int64_t rows = 16;
    const auto driver = std::const_pointer_cast<runtime::Driver>(runtime::Driver::load());
    runtime::Dispatcher dispatcher({}, driver);
    const RmsNormKernel kernel = prepare(dispatcher);
    const RmsNormArgs args = device_args(*driver, rows);
    CUstream stream = nullptr;
    runtime::check(*driver, driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "stream");

    const auto real_launch = std::exchange(driver->cuLaunchKernel, record);
    const auto real_extended = std::exchange(driver->cuLaunchKernelEx, record_extended);
    expect(kernel.run(stream, args, rows) == Status::ok, "the recorded run failed");
    driver->cuLaunchKernel = real_launch;
    driver->cuLaunchKernelEx = real_extended;

    std::uint64_t failures = 0;
    std::vector<double> bare;
    std::vector<double> run;
    for (int i = 0; i < 2000; ++i) {
        bare.push_back(batch_ns(*driver, stream, [&] {
            failures += driver->cuLaunchKernelEx(&recorded.config, recorded.function,
                                                 recorded.parameters.data(), nullptr) != CUDA_SUCCESS;
        }));
        run.push_back(
            batch_ns(*driver, stream, [&] { failures += kernel.run(stream, args, rows) != Status::ok; }));
    }
    runtime::check(*driver, driver->cuStreamSynchronize(stream), "stream");
    expect(failures == 0, "a launch failed");
    const double bare_ns = percentiles(bare).p50;
    const double run_ns = percentiles(run).p50;
    std::printf("on %s, %lld rows, %s\n", dispatcher.session().traits().name.c_str(),
                static_cast<long long>(rows), kernel.reports().front().buckets[4].candidate.c_str());
    std::printf("  bare cuLaunchKernelEx: %7.1f ns\n  run():                 %7.1f ns   (%+.1f %%)\n",
                bare_ns, run_ns, 100.0 * (run_ns / bare_ns - 1.0));
}

}  // namespace

int main() {
    try {
        runtime::guarded("dispatch_bench", [] {
            look_up();
            if (runtime::read_environment().cuda_library.empty()) {
                against_bare_launch();
            } else {
                std::puts("HONE_CUDA_LIBRARY is set: not compared with a real launch");
            }
        });
    } catch (const Error& error) {
        std::fprintf(stderr, "error: %s\n%s\n", error.what(), error.hint().c_str());
        return error.kind() == ErrorKind::no_gpu ? 3 : 1;
    }
}
