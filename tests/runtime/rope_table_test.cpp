#include "hone/rope_table.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace hone;

namespace {

using Kind = RopeScaling::Kind;

/// Llama 3.1's settings: head_dim 128, base 500000.
RopeScaling llama31() {
    return {.kind = Kind::llama3,
            .factor = 8,
            .original_max_position = 8192,
            .low_freq_factor = 1,
            .high_freq_factor = 4};
}

/// Llama 2 stretched from 4096 to 65536 positions.
RopeScaling yarn16() { return {.kind = Kind::yarn, .factor = 16, .original_max_position = 4096}; }

/// By wavelengths, as the definition of llama3 is written.
double llama3_frequency(double frequency, const RopeScaling& s) {
    const double wavelength = 2 * 3.14159265358979323846 / frequency;
    if (wavelength < s.original_max_position / s.high_freq_factor) return frequency;
    if (wavelength > s.original_max_position / s.low_freq_factor) return frequency / s.factor;
    const double smooth =
        (s.original_max_position / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
    return (1 - smooth) * frequency / s.factor + smooth * frequency;
}

std::string error_of(std::int64_t rotary_dim, double base, std::int64_t positions,
                     const RopeScaling& scaling = {}) {
    try {
        (void)rope_table(rotary_dim, base, positions, scaling);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::bad_argument);
        return error.what();
    }
    return "none";
}

}  // namespace

TEST_CASE("frequencies fall from 1 by the same factor from pair to pair") {
    const std::vector<double> frequencies = rope_frequencies(128, 10000);
    REQUIRE(frequencies.size() == 64);
    CHECK(frequencies[0] == 1);
    CHECK(frequencies[16] == doctest::Approx(0.1).epsilon(1e-12));
    CHECK(frequencies[32] == doctest::Approx(0.01).epsilon(1e-12));
    CHECK(frequencies[48] == doctest::Approx(0.001).epsilon(1e-12));
    for (const double frequency : rope_frequencies(8, 16, {.kind = Kind::linear, .factor = 4}))
        CHECK(frequency <= 0.25);
    CHECK(rope_frequencies(8, 16, {.kind = Kind::linear, .factor = 4})[2] == doctest::Approx(1.0 / 16));
}

TEST_CASE("a table holds the cosines of all positions, then the sines") {
    const std::vector<float> table = rope_table(4, 100, 3);  // frequencies 1 and 0.1
    REQUIRE(table.size() == 12);
    for (std::size_t position = 0; position < 3; ++position) {
        const auto p = static_cast<double>(position);
        CHECK(table[2 * position] == static_cast<float>(std::cos(p)));
        CHECK(table[2 * position + 1] == doctest::Approx(std::cos(0.1 * p)).epsilon(1e-7));
        CHECK(table[6 + 2 * position] == static_cast<float>(std::sin(p)));
        CHECK(table[6 + 2 * position + 1] == doctest::Approx(std::sin(0.1 * p)).epsilon(1e-7));
    }
    CHECK(rope_table(0, 10000, 5).empty());
}

TEST_CASE("angles of far positions are as exact as those of near ones") {
    const std::int64_t positions = 1 << 20;
    const std::vector<float> table = rope_table(2, 10000, positions);  // one pair of frequency 1
    const auto last = static_cast<std::size_t>(positions - 1);
    const long double angle = static_cast<long double>(positions - 1);
    CHECK(table[last] == doctest::Approx(static_cast<double>(std::cos(angle))).epsilon(1e-6));
    CHECK(table[static_cast<std::size_t>(positions) + last] ==
          doctest::Approx(static_cast<double>(std::sin(angle))).epsilon(1e-6));
}

TEST_CASE("the frequencies of Llama 3.1 are those of its wavelengths") {
    const std::vector<double> plain = rope_frequencies(128, 500000);
    const std::vector<double> scaled = rope_frequencies(128, 500000, llama31());
    for (std::size_t i = 0; i < plain.size(); ++i)
        CHECK(scaled[i] == doctest::Approx(llama3_frequency(plain[i], llama31())).epsilon(1e-12));
    // Wavelengths of pairs 28 and 29 lie on both sides of 8192 / 4, of 34 and 35 on both sides of 8192.
    CHECK(scaled[28] == plain[28]);
    CHECK(scaled[29] < plain[29]);
    CHECK(scaled[34] > plain[34] / 8);
    CHECK(scaled[35] == plain[35] / 8);
    CHECK(scaled[30] == doctest::Approx(0.0013718935677611381).epsilon(1e-12));
    CHECK(scaled[63] == doctest::Approx(3.068925988914511e-07).epsilon(1e-12));
}

TEST_CASE("longrope divides each pair by its factor, of short tables and of long ones") {
    const RopeScaling scaling{.kind = Kind::longrope,
                              .factor = 32,
                              .original_max_position = 4096,
                              .short_factors = {1, 1.25},
                              .long_factors = {2, 40}};
    const std::vector<double> plain = rope_frequencies(4, 10000);
    CHECK(rope_frequencies(4, 10000, scaling, 4096) == std::vector{plain[0], plain[1] / 1.25});
    CHECK(rope_frequencies(4, 10000, scaling, 4097) == std::vector{plain[0] / 2, plain[1] / 40});
    const double amplitude = std::sqrt(1 + std::log(32.0) / std::log(4096.0));
    CHECK(rope_table(4, 10000, 1, scaling)[0] == doctest::Approx(amplitude).epsilon(1e-7));
    CHECK(rope_table(4, 10000, 4097, scaling)[3] ==
          doctest::Approx(amplitude * std::cos(plain[1] / 40)).epsilon(1e-7));
    RopeScaling wrong = scaling;
    wrong.long_factors = {2};
    CHECK(error_of(4, 10000, 8, wrong).find("long_factors is 1; allowed: finite numbers 2 of them") !=
          std::string::npos);
}

TEST_CASE("YaRN keeps fast pairs, divides slow ones by the factor, and raises amplitudes") {
    const std::vector<double> plain = rope_frequencies(128, 10000);
    const std::vector<double> scaled = rope_frequencies(128, 10000, yarn16());
    // 128 ln(4096 / (2 pi n)) / (2 ln 10000) is 20.9 for 32 turns and 45.03 for one: the ramp is from 20
    // to 46.
    CHECK(scaled[20] == plain[20]);
    CHECK(scaled[21] < plain[21]);
    CHECK(scaled[33] == doctest::Approx(plain[33] * (0.5 + 0.5 / 16)).epsilon(1e-12));
    CHECK(scaled[45] > plain[45] / 16);
    CHECK(scaled[46] == doctest::Approx(plain[46] / 16).epsilon(1e-12));
    // Of gpt-oss the ramp begins and ends between pairs.
    RopeScaling exact = yarn16();
    exact.whole_ends = false;
    const double share = (33 - 20.9482) / (45.0343 - 20.9482);
    CHECK(rope_frequencies(128, 10000, exact)[33] ==
          doctest::Approx(plain[33] * (1 - share + share / 16)).epsilon(1e-4));
    CHECK(rope_table(128, 10000, 1, yarn16())[0] == doctest::Approx(0.1 * std::log(16.0) + 1).epsilon(1e-7));
    RopeScaling given = yarn16();
    given.attention_factor = 1.5;
    CHECK(rope_table(128, 10000, 1, given)[0] == 1.5F);
}

TEST_CASE("a factor of 1 changes nothing") {
    const std::vector<double> plain = rope_frequencies(64, 10000);
    for (const Kind kind : {Kind::linear, Kind::llama3, Kind::yarn}) {
        RopeScaling scaling{.kind = kind, .factor = 1, .original_max_position = 2048};
        const std::vector<double> scaled = rope_frequencies(64, 10000, scaling);
        for (std::size_t i = 0; i < plain.size(); ++i)
            CHECK(scaled[i] == doctest::Approx(plain[i]).epsilon(1e-14));
        CHECK(rope_table(64, 10000, 1, scaling)[0] == 1.0F);
    }
}

TEST_CASE("settings that mean nothing are refused by name") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(error_of(3, 10000, 1).find("rotary_dim is 3") != std::string::npos);
    CHECK(error_of(-2, 10000, 1).find("rotary_dim") != std::string::npos);
    CHECK(error_of(4, 1, 1).find("base is 1") != std::string::npos);
    CHECK(error_of(4, nan, 1).find("base") != std::string::npos);
    CHECK(error_of(4, 10000, 0).find("positions is 0") != std::string::npos);
    CHECK(error_of(128, 10000, std::int64_t{1} << 40).find("positions") != std::string::npos);
    CHECK(error_of(4, 10000, 1, {.kind = Kind::linear, .factor = 0.5}).find("factor is 0.5") !=
          std::string::npos);
    CHECK(error_of(4, 10000, 1, {.kind = Kind::llama3, .factor = 8}).find("original_max_position") !=
          std::string::npos);
    RopeScaling crossed = llama31();
    crossed.high_freq_factor = 1;
    CHECK(error_of(4, 10000, 1, crossed)
              .find("high_freq_factor is 1; allowed: finite numbers above low_freq_factor") !=
          std::string::npos);
    RopeScaling betas = yarn16();
    betas.beta_fast = nan;
    CHECK(error_of(4, 10000, 1, betas).find("beta_fast") != std::string::npos);
}
