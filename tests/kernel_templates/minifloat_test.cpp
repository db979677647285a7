#include "tests/support/minifloat.h"

#include <doctest/doctest.h>

using namespace hone::test;

TEST_CASE("every finite code of the small formats decodes to a value that rounds and encodes to itself") {
    const auto check_all = [](const MinifloatFormat& format, std::uint32_t codes) {
        for (std::uint32_t bits = 0; bits < codes; ++bits) {
            const double value = decoded(bits, format);
            if (!std::isfinite(value) || std::abs(value) > format.largest) continue;
            REQUIRE(rounded(value, format) == value);
            REQUIRE(encoded(value, format) == bits);
        }
    };
    check_all(fp16_format, 1U << 16);
    check_all(bf16_format, 1U << 16);
    check_all(fp8_format, 1U << 8);
}

TEST_CASE("known values of the small formats") {
    CHECK(decoded(0x3c00, fp16_format) == 1.0);
    CHECK(decoded(0x0001, fp16_format) == std::ldexp(1.0, -24));
    CHECK(decoded(0x3f80, bf16_format) == 1.0);
    CHECK(decoded(0x7e, fp8_format) == 448.0);
    CHECK(decoded(0x01, fp8_format) == std::ldexp(1.0, -9));
    CHECK(rounded(1.0 + std::ldexp(1.0, -8), bf16_format) == 1.0);  // a tie goes to the even neighbour
    CHECK(rounded(1e6, fp8_format) == 448.0);
    CHECK(std::isinf(rounded(1e6, fp16_format)));
}
