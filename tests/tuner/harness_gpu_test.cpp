// The measuring harness on a real GPU: what index arguments are filled with, and how infinities compare.
#include "tuner/gpu/harness.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/compile/compiler.h"
#include "runtime/cuda/memory.h"
#include "tuner/gpu/device_context.h"

using namespace hone;
using namespace hone::tuner;

namespace {

struct RealHarness {
    DeviceContext device{0};
    runtime::CompiledImage image = runtime::compile(
        *runtime::Nvrtc::load(),
        {.source = "harness/harness.cu", .constants = "", .arch = device.info().traits.arch()});
    Harness harness{device.driver(), image.cubin, device.stream(), device.info().traits.sm_count};

    void finish() const { device.finish(Clock::now() + std::chrono::seconds(10)); }

    /// 1000 indices.
    [[nodiscard]] std::vector<std::int32_t> filled(Fill fill, double scale, double offset) const {
        const Argument argument{.name = "indices",
                                .dtype = index_dtype,
                                .shape = {1, 1, 1000, 1},
                                .fill = fill,
                                .fill_scale = scale,
                                .fill_offset = offset};
        const runtime::DeviceBuffer<std::int32_t> buffer(device.driver(), 1000);
        harness.fill(buffer.address(), argument, 7);
        finish();
        return runtime::download(device.driver(), buffer.span());
    }

    [[nodiscard]] CompareSlots compared(const std::vector<float>& out,
                                        const std::vector<float>& wanted) const {
        const runtime::DeviceBuffer<float> a(device.driver(), out.size());
        const runtime::DeviceBuffer<float> b(device.driver(), wanted.size());
        const runtime::DeviceBuffer<CompareSlots> slots(device.driver(), 1);
        runtime::upload(device.driver(), a.span(), out);
        runtime::upload(device.driver(), b.span(), wanted);
        runtime::upload(device.driver(), slots.span(), std::vector<CompareSlots>(1));
        const Argument argument{.name = "lse", .shape = {1, 1, static_cast<std::int64_t>(out.size()), 1}};
        harness.compare(a.address(), b.address(), argument, {1e-3, 1e-3, 1e-3}, slots.address());
        finish();
        return runtime::download(device.driver(), slots.span())[0];
    }
};

}  // namespace

TEST_CASE("lengths, starts and page tables are filled with constants, ramps and permutations") {
    const RealHarness gpu;
    const std::vector<std::int32_t> lengths = gpu.filled(Fill::constant, 3, 4096);
    CHECK(std::ranges::count(lengths, 4096) == 1000);
    const std::vector<std::int32_t> starts = gpu.filled(Fill::ramp, -512, 700'000);
    for (std::int32_t i = 0; i < 1000; ++i) CHECK(starts[static_cast<std::size_t>(i)] == 700'000 - 512 * i);
    std::vector<std::int32_t> pages = gpu.filled(Fill::permutation, 1, 0);
    CHECK_FALSE(std::ranges::is_sorted(pages));
    std::ranges::sort(pages);
    for (std::int32_t i = 0; i < 1000; ++i) CHECK(pages[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("an uneven ramp never falls, and its steps differ as numbers of rows do that are put at random") {
    const RealHarness gpu;
    for (const double step : {0.25, 1.0, 3.0, 64.0, 1000.0}) {
        const std::vector<std::int32_t> starts = gpu.filled(Fill::uneven_ramp, step, 1);
        CHECK(starts.front() == 0);
        CHECK(starts.back() == std::lrint(step * 999));
        CHECK(std::ranges::is_sorted(starts));
        double squares = 0;
        for (std::size_t i = 1; i < starts.size(); ++i) {
            const double off = starts[i] - starts[i - 1] - step;
            squares += off * off / 999;
        }
        CHECK(squares == doctest::Approx(step).epsilon(0.2));
    }
    // A token's rows go to different places.
    for (const int together : {2, 8, 32}) {
        const std::vector<std::int32_t> starts = gpu.filled(Fill::uneven_ramp, together / 999.0, together);
        CHECK(starts.back() == together);
        for (std::size_t i = 1; i < starts.size(); ++i) {
            const std::int32_t step = starts[i] - starts[i - 1];
            CHECK((step == 0 || step == 1));
        }
    }
}

TEST_CASE("an infinity has to stand where the reference has the same one") {
    const RealHarness gpu;
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const CompareSlots same = gpu.compared({-infinity, 1.0f, infinity}, {-infinity, 1.0f, infinity});
    CHECK(same.non_finite == 0);
    CHECK(same.beyond == 0);
    CHECK(same.ref2 == doctest::Approx(1.0));
    CHECK(gpu.compared({0.0f, 1.0f}, {-infinity, 1.0f}).non_finite == 1);
    CHECK(gpu.compared({infinity, 1.0f}, {-infinity, 1.0f}).non_finite == 1);
    CHECK(gpu.compared({-infinity, 1.0f}, {-1.0f, 1.0f}).first_bad == 2);
}
