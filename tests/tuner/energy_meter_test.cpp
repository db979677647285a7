// Power and energy of a candidate that runs without pause, on an NVML that is made up or fake.
#include "tuner/gpu/energy_meter.h"

#include <doctest/doctest.h>

#include "tests/tuner/fake_gpu.h"

using namespace hone;
using namespace hone::tuner;
using namespace hone::test;
using cache::TrialStatus;
using std::chrono::milliseconds;

namespace {

/// A GPU that says what it is told to.
struct MadeUpNvml final : runtime::NvmlDevice {
    std::optional<double> energy;
    std::optional<double> power;

    std::optional<runtime::ClockState> clocks() const override { return std::nullopt; }
    std::optional<int> max_memory_mhz() const override { return std::nullopt; }
    std::optional<int> max_sm_mhz() const override { return std::nullopt; }
    std::vector<std::int64_t> foreign_processes(const std::vector<std::int64_t>&) const override {
        return {};
    }
    std::optional<double> energy_mj() const override { return energy; }
    std::optional<double> power_w() const override { return power; }
    std::optional<int> temperature_c() const override { return std::nullopt; }
};

constexpr Clock::time_point start{std::chrono::hours(1)};

/// Sustains the first candidate of a fake GPU's problem.
Sustained sustained(const std::string& script, milliseconds duration = milliseconds(200)) {
    Bench bench(script);
    REQUIRE(bench.session.measurer->begin_problem(bench.problem).detail == "");
    const ImageSource::Result image = bench.session.images->get(bench.problem, bench.candidates[0]);
    REQUIRE(image.status == TrialStatus::ok);
    return bench.session.measurer->sustain({bench.candidates[0], &image.image}, duration);
}

}  // namespace

TEST_CASE("power is what a counter rose by between its first and its last move, however coarse it is") {
    MadeUpNvml nvml;
    nvml.power = 999;
    PowerReadings readings(nvml);
    for (int ms = 3; ms <= 1050; ms += 5) {  // moves every 100 ms, so that the ends are cut off
        nvml.energy = 5e9 + 420.0 * (ms / 100 * 100);
        readings.look(start + milliseconds(ms));
    }
    REQUIRE(readings.counted());
    CHECK(readings.watts() == doctest::Approx(420).epsilon(0.02));
}

TEST_CASE("power is the mean of what NVML says where the counter is missing or stands still") {
    MadeUpNvml nvml;
    PowerReadings readings(nvml);
    readings.look(start);
    CHECK_FALSE(readings.watts().has_value());
    nvml.energy = 1e6;
    nvml.power = 300;
    readings.look(start + milliseconds(10));
    nvml.power = 400;
    readings.look(start + milliseconds(20));
    nvml.energy = 1.1e6;  // one move says nothing
    nvml.power = 500;
    readings.look(start + milliseconds(30));
    CHECK_FALSE(readings.counted());
    CHECK(readings.watts() == doctest::Approx(400));
}

TEST_CASE("a candidate that runs without pause has a time, a power and an energy that fit each other") {
    const Sustained found = sustained("nvml:power_mw=500000");
    CHECK(found.verdict.status == TrialStatus::ok);
    CHECK(found.verdict.detail == "");
    CHECK(found.counted);
    CHECK(found.power_w == doctest::Approx(500).epsilon(0.1));
    CHECK(found.seconds >= 0.2);
    CHECK(found.us * static_cast<double>(found.calls) == doctest::Approx(found.seconds * 1e6));
    CHECK(found.energy_mj() * static_cast<double>(found.calls) ==
          doctest::Approx(found.power_w * found.seconds * 1e3));
}

TEST_CASE("without a counter power is sampled, and without both a candidate has only its time") {
    const Sustained sampled = sustained("nvml:refuse=nvmlDeviceGetTotalEnergyConsumption");
    CHECK_FALSE(sampled.counted);
    CHECK(sampled.power_w == doctest::Approx(350));
    const Sustained none =
        sustained("nvml:refuse=nvmlDeviceGetTotalEnergyConsumption;nvml:refuse=nvmlDeviceGetPowerUsage");
    CHECK(none.power_w == 0);
    CHECK(none.us > 0);
    CHECK(none.verdict.detail == "NVML said neither energy nor power");
    CHECK(sustained("nvml:none").verdict.detail == "NVML does not know this GPU");
}

TEST_CASE("a disturbance is said, and a candidate that kills its worker has a verdict") {
    CHECK(sustained("nvml:throttle=0x40").verdict.detail == "measured while the GPU was throttled");
    const Sustained dead = sustained("launch:match=" + words_of(ranked_candidate(0)) + ":fail=700");
    CHECK(dead.verdict.status == TrialStatus::crashed);
    CHECK(dead.power_w == 0);
}
