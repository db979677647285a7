#include "kernel_templates/sample/row_plan.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "kernel_templates/catalog.h"
#include "kernel_templates/device/random.cuh"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/sample/numbers.cuh"
#include "kernel_templates/space.h"

using namespace hone;
using namespace hone::sample;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

Problem problem_of(const std::string& text) { return *parse_problem("sample " + text); }

std::string winner(const std::string& text, const DeviceTraits& traits) {
    return std::string(fallback(problem_of(text), traits)->variant->name);
}

}  // namespace

TEST_CASE("random bits are those of Philox4x32-10") {
    CHECK(random_bits(0, 0) == 0xe169c58d6627e8d5U);  // Random123's known answer
    CHECK(random_bits(1, 0) != random_bits(0, 1));
    CHECK(random_bits(std::uint64_t{1} << 32, 0) != random_bits(1, 0));
    CHECK(random_bits(0, std::uint64_t{1} << 32) != random_bits(0, 1));
}

TEST_CASE("a mass is the exponential to 2^-17, or to a unit, and never falls as the logit rises") {
    for (const float temperature : {0.1F, 1.0F, 3.0F, 100.0F}) {
        const Scaling scaling = Scaling::of(5.0F, temperature);
        unsigned before = 0;
        for (float x = -23.0F; x < 0; x += 5e-4F) {
            const float logit = 5.0F + x * temperature;
            const double distance = static_cast<double>(logit) - 5.0;
            const double exact = std::exp(distance / static_cast<double>(temperature)) * 0x1p31;
            const unsigned mass = mass_of(logit, scaling);
            CHECK(std::abs(mass - exact) <= exact * 0x1p-17 + 1);
            CHECK(mass >= before);
            before = mass;
        }
        CHECK(mass_of(5.0F, scaling) == 1U << 31);
    }
}

TEST_CASE("what is no number and what is far below the largest has no mass") {
    const Scaling scaling = Scaling::of(1.0F, 0.7F);
    CHECK(mass_of(std::numeric_limits<float>::quiet_NaN(), scaling) == 0);
    CHECK(mass_of(-infinity, scaling) == 0);
    CHECK(mass_of(-30.0F, scaling) == 0);
    constexpr float most = std::numeric_limits<float>::max();
    CHECK(mass_of(-most, Scaling::of(most, least_temperature)) == 0);
    CHECK(mass_of(-infinity, Scaling::of(1.0F, infinity)) == 0);
    CHECK(mass_of(0.0F, Scaling::of(1.0F, infinity)) == 1U << 31);
}

TEST_CASE("a cap sees softcap * tanh(logit / softcap), never falling by more than a rounding") {
    const auto check = [](auto capped, double cap) {
        double before = -infinity;
        for (double x = -9 * cap; x <= 9 * cap; x += cap / 1111) {
            const float logit = static_cast<float>(x);
            const double exact = cap * std::tanh(static_cast<double>(logit) / cap);
            const double seen = decltype(capped)::logit(logit);
            CHECK(std::abs(seen - exact) <= 3e-7 * std::abs(exact));
            CHECK(seen >= before - 3e-7 * cap);
            CHECK(decltype(capped)::logit(-logit) == -static_cast<float>(seen));
            before = seen;
        }
    };
    check(Seen<30>(), 30);
    check(Seen<1>(), 1);
    check(Seen<65536>(), 65536);
    CHECK(Seen<0>::logit(7.25F) == 7.25F);
    constexpr float most = std::numeric_limits<float>::max();
    CHECK(Seen<30>::logit(most) == 30.0F);
    CHECK(Seen<30>::logit(-most) == -30.0F);
    CHECK(Seen<30>::logit(1e-30F) == doctest::Approx(1e-30F));
    CHECK(Seen<30>::logit(0.0F) == 0.0F);
}

TEST_CASE("masses under a cap are those of the capped logits, at most that of the largest") {
    using Capped = Seen<30>;
    for (const float temperature : {least_temperature, 0.3F, 1.0F, 20.0F}) {
        for (const float largest : {-40.0F, 0.0F, 3.0F, 29.0F, 300.0F}) {
            const Scaling scaling = Capped::scaling(largest, temperature);
            CHECK(Capped::mass(largest, scaling) == 1U << 31);
            CHECK(Capped::mass(std::nextafter(largest, -infinity), scaling) <= 1U << 31);
            const double seen_largest = 30 * std::tanh(static_cast<double>(largest) / 30);
            for (float logit = largest - 50; logit < largest; logit += 0.37F) {
                const double seen = 30 * std::tanh(static_cast<double>(logit) / 30);
                const double exact =
                    std::exp((seen - seen_largest) / static_cast<double>(temperature)) * 0x1p31;
                const double slack = 0x1p-17 + 2e-5 / static_cast<double>(temperature);
                CHECK(std::abs(Capped::mass(logit, scaling) - exact) <= exact * std::expm1(slack) + 1);
            }
            CHECK(Capped::mass(std::numeric_limits<float>::quiet_NaN(), scaling) == 0);
            CHECK(Capped::mass(-infinity, scaling) == 0);
        }
    }
}

TEST_CASE("bin and rest are all of a mass and rise with it") {
    std::mt19937 random(3);
    std::uniform_real_distribution<float> drawn(-23.0F, 0.0F);
    const Scaling scaling = Scaling::of(0.0F, 1.0F);
    for (int i = 0; i < 20000; ++i) {
        const unsigned mass = mass_of(drawn(random), scaling);
        if (mass == 0) continue;
        const unsigned bits = Bin::bits(mass);
        const unsigned bin = Bin::of(bits);
        REQUIRE(bin < bins);
        CHECK(Bin::mass(bin, Bin::rest(bits)) == mass);
        CHECK(Bin::mass(bin, 0) <= mass);
        CHECK(Bin::mass(bin, bins - 1) >= mass);
        CHECK(mass_of_sum((group_bins + bin % group_bins) * bins + Bin::rest(bits), bin) == mass);
    }
    CHECK(Bin::of(Bin::bits(1)) == 0);
    CHECK(Bin::of(Bin::bits(1U << 31)) == bins - group_bins);
}

TEST_CASE("the least mass of a part reaches it") {
    CHECK(mass_from(0.0F) == 0);
    CHECK(mass_from(1.0F) == 1U << 31);
    CHECK(mass_from(0.25F) == 1U << 29);
    CHECK(mass_from(0x1.8p-31F) == 2);
}

TEST_CASE("a part of a mass is the least whole number that reaches it") {
    CHECK(part_of(std::uint64_t{1} << 31, 0.5F) == std::uint64_t{1} << 30);
    CHECK(part_of(3, 0.5F) == 2);
    CHECK(part_of(100, 0.0F) == 1);
    CHECK(part_of(100, -1.0F) == 1);
    CHECK(part_of(std::uint64_t{1} << 51, 0x1.fffffep-1F) ==
          (std::uint64_t{1} << 51) - (std::uint64_t{1} << 27));
}

TEST_CASE("every bf16 number from 2^-10 to 63.25 has a slot of its own, and no other number has one") {
    int inside = 0;
    for (unsigned bits = 0; bits < 1U << 16; ++bits) {
        const float value = std::bit_cast<float>(bits << 16);
        const int slot = Value::slot(bits);
        REQUIRE(slot >= 0);
        REQUIRE(slot < value_slots);
        const bool is_between = std::abs(value) >= Value::least && std::abs(value) <= Value::most;
        CHECK(Value::is_inside(slot) == is_between);
        if (!is_between) continue;
        CHECK(Value::of(slot) == value);
        ++inside;
    }
    CHECK(inside == value_slots - 4);
    CHECK(Value::slot(0) == Value::smaller);
    CHECK(Value::slot(0xff80) == value_slots - 1);  // minus infinity
}

TEST_CASE(
    "values are counted for bf16 logits with filters and no cap, and two such blocks share a "
    "multiprocessor") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    const auto counting = [&](const char* text) {
        int found = 0;
        for (const Config& config : enumerate(problem_of(text), cluster_row, h100))
            found += counts_values(values_of<RowConfig>(config)) ? 1 : 0;
        return found;
    };
    CHECK(counting("dtype=bf16 filters=yes vocabulary=128256 rows=64") > 0);
    CHECK(counting("dtype=bf16 filters=yes vocabulary=50257 rows=64") == 0);
    CHECK(counting("dtype=bf16 filters=no vocabulary=128256 rows=64") == 0);
    CHECK(counting("dtype=fp32 filters=yes vocabulary=128256 rows=64") == 0);
    CHECK(counting("dtype=bf16 filters=yes softcap=30 vocabulary=128256 rows=64") == 0);
    const SampleProblem p(problem_of("dtype=bf16 filters=yes vocabulary=128256 rows=64"));
    const RowConfig pair{.threads = 512, .cluster = 4, .vector = 8, .home = 2};
    CHECK(2 * (shared_bytes(p, pair) + 1024) <= 228 * 1024);
}

TEST_CASE("each token belongs to one lane, in the order of blocks, warps and steps") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    for (const char* text : {"dtype=bf16 vocabulary=128256 rows=1", "dtype=fp32 vocabulary=1000 rows=1"}) {
        const SampleProblem p(problem_of(text));
        for (const Config& config : enumerate(problem_of(text), cluster_row, h100)) {
            const Geometry cut = geometry(p, values_of<RowConfig>(config));
            CHECK(cut.block_tokens() == cut.warps() * cut.steps() * 32 * cut.vector);
            CHECK(std::int64_t{cut.blocks} * cut.block_tokens() >= p.vocabulary);
            CHECK(std::int64_t{cut.blocks} * cut.warps() * (cut.steps() - 1) * 32 * cut.vector <
                  p.vocabulary);
        }
    }
}

TEST_CASE(
    "rows fall back to clusters where they exist, and to a block each where not or where a row is too long") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    const DeviceTraits a100 = *representative_device({8, 0, false});
    CHECK(winner("dtype=bf16 filters=yes vocabulary=128256 rows=1", h100) == "cluster_row");
    CHECK(winner("dtype=bf16 filters=yes vocabulary=50257 rows=64", h100) == "cluster_row");
    CHECK(winner("dtype=bf16 filters=yes vocabulary=128256 rows=1", a100) == "plain");
}

TEST_CASE("defaults are what was fastest where it was measured") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    const auto chosen = [&](const char* text) {
        const auto c = values_of<RowConfig>(fallback(problem_of(text), h100)->config);
        return std::to_string(c.cluster) + "x" + std::to_string(c.threads) + " " + std::to_string(c.home);
    };
    CHECK(chosen("dtype=bf16 filters=yes vocabulary=128256 rows=1") == "16x512 0");
    CHECK(chosen("dtype=bf16 filters=yes vocabulary=128256 rows=8") == "8x512 0");
    CHECK(chosen("dtype=bf16 filters=yes vocabulary=128256 rows=64") == "2x1024 2");
    CHECK(chosen("dtype=bf16 filters=yes vocabulary=128256 rows=256") == "2x1024 2");
    CHECK(chosen("dtype=bf16 filters=no vocabulary=128256 rows=64") == "2x1024 1");
    CHECK(chosen("dtype=bf16 filters=yes vocabulary=32000 rows=1") == "8x256 0");
    CHECK(chosen("dtype=bf16 filters=yes vocabulary=32000 rows=8") == "8x256 0");
    CHECK(chosen("dtype=bf16 filters=yes vocabulary=32000 rows=256") == "2x512 1");
}

TEST_CASE("a problem without a cap does not speak of it, so that what is stored of it holds") {
    const std::string text = "dtype=bf16 filters=no log_probability=no vocabulary=32000";
    CHECK(static_text(problem_of(text + " rows=1")) == text);
    CHECK(static_text(problem_of("dtype=bf16 softcap=0 vocabulary=32000 rows=1")) == text);
    CHECK(static_text(problem_of("dtype=bf16 softcap=30 vocabulary=32000 rows=1")) ==
          "dtype=bf16 filters=no log_probability=no softcap=30 vocabulary=32000");
    std::string error;
    CHECK_FALSE(parse_problem("sample dtype=bf16 softcap=65537 vocabulary=32 rows=1", &error));
    CHECK(error.find("softcap") != std::string::npos);
}

TEST_CASE("a block that counts values is cut into parts as memory allows") {
    const auto parts = [](std::int64_t vocabulary, int blocks, int threads) {
        return value_parts({vocabulary, blocks, threads, 8}, true);
    };
    CHECK(parts(128256, 2, 1024) == 4);
    CHECK(parts(151936, 2, 1024) == 2);
    CHECK(parts(32000, 2, 512) == 2);
    CHECK(parts(128256, 4, 512) == 1);
    CHECK(parts(32000, 4, 256) == 1);
}

TEST_CASE("one row is given more blocks than many rows") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    const auto cluster = [&](const char* rows) {
        const Problem problem =
            problem_of(std::string("dtype=bf16 filters=yes vocabulary=128256 rows=") + rows);
        return values_of<RowConfig>(fallback(problem, h100)->config).cluster;
    };
    CHECK(cluster("1") > cluster("64"));
}
