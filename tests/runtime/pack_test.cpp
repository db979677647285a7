// Starts threads: the thread sanitizer runs this file, too.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "hone/quantize.h"
#include "tests/runtime/packed_reader.h"

namespace hone {
namespace {

template <class T>
std::vector<T> numbers(std::int64_t count, int modulus, unsigned seed, int least = 0) {
    std::vector<T> result(static_cast<std::size_t>(count));
    for (T& number : result) {
        seed = seed * 1664525U + 1013904223U;
        number = static_cast<T>(least + static_cast<int>(seed >> 16) % modulus);
    }
    return result;
}

std::vector<std::uint8_t> room_for(QuantFormat format, std::int64_t out, std::int64_t in) {
    return std::vector<std::uint8_t>(static_cast<std::size_t>(packed_bytes(format, out, in)), 0xAA);
}

template <class Call>
std::string error_of(const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::bad_argument);
        CHECK_FALSE(error.where().empty());
        CHECK_FALSE(error.hint().empty());
        return error.what();
    }
    return "no error";
}

std::int64_t padded(std::int64_t extent) { return (extent + 63) / 64 * 64; }

TEST_CASE("a reader of docs/formats.md finds the codes of 4 bits, and padding of value 0 around them") {
    CHECK(rc::check([] {
        const auto out = *rc::gen::inRange<std::int64_t>(1, 200);
        const auto in = *rc::gen::inRange<std::int64_t>(1, 300);
        const auto seed = *rc::gen::arbitrary<unsigned>();
        const auto codes = numbers<std::uint8_t>(out * in, 16, seed);
        const auto zeros = *rc::gen::arbitrary<bool>() ? numbers<std::uint8_t>(out, 16, seed + 1)
                                                       : std::vector<std::uint8_t>{};
        auto packed = room_for(QuantFormat::w4a16, out, in);
        pack_w4(codes, out, in, packed, zeros);
        for (std::int64_t row = 0; row < padded(out); ++row) {
            for (std::int64_t column = 0; column < padded(in); ++column) {
                int expected = 8;
                if (row < out && !zeros.empty()) expected = zeros[static_cast<std::size_t>(row)];
                if (row < out && column < in) expected = codes[static_cast<std::size_t>(row * in + column)];
                RC_ASSERT(test::read_w4(packed, row, column, in) == expected);
            }
        }
        std::vector<std::uint8_t> back(codes.size());
        unpack_w4(packed, out, in, back);
        RC_ASSERT(back == codes);
    }));
}

TEST_CASE("a reader of docs/formats.md finds the codes of 8 bits, and zeros around them") {
    CHECK(rc::check([] {
        const auto out = *rc::gen::inRange<std::int64_t>(1, 200);
        const auto in = *rc::gen::inRange<std::int64_t>(1, 300);
        const auto codes = numbers<std::int8_t>(out * in, 256, *rc::gen::arbitrary<unsigned>(), -128);
        auto packed = room_for(QuantFormat::w8a16, out, in);
        pack_w8(codes, out, in, packed);
        for (std::int64_t row = 0; row < padded(out); ++row) {
            for (std::int64_t column = 0; column < padded(in); ++column) {
                const bool there = row < out && column < in;
                const int expected = there ? codes[static_cast<std::size_t>(row * in + column)] : 0;
                RC_ASSERT(test::read_w8(packed, row, column, in) == expected);
            }
        }
        std::vector<std::int8_t> back(codes.size());
        unpack_w8(packed, out, in, back);
        RC_ASSERT(back == codes);
    }));
}

TEST_CASE("the example of docs/formats.md") {
    std::vector<std::uint8_t> codes(128 * 96);
    codes[9 * 96 + 18] = 5;
    codes[73 * 96 + 82] = 6;
    auto packed = room_for(QuantFormat::w4a16, 128, 96);
    pack_w4(codes, 128, 96, packed);
    CHECK(packed[84] == 0x50);
    CHECK(packed[6228] == 0x60);
    const std::vector<std::int8_t> signed_codes(codes.begin(), codes.end());
    auto packed_w8 = room_for(QuantFormat::w8a16, 128, 96);
    pack_w8(signed_codes, 128, 96, packed_w8);
    CHECK(packed_w8[89] == 5);
    CHECK(packed_w8[12377] == 6);
    const PackedShape shape{.out = 128, .in = 96, .group = 32, .zeros = true};
    std::vector<std::uint8_t> zeros(128 * 3);
    zeros[9 * 3 + 1] = 7;
    std::vector<std::uint8_t> stored(static_cast<std::size_t>(zero_count(shape)));
    REQUIRE(stored.size() == 2 * 4 * 64);
    pack_zeros(zeros, shape, stored);
    CHECK(stored[67] == 7);
    CHECK(stored[3 * 64] == 8);  // a group of padding
}

TEST_CASE("scales and zero points stand where docs/formats.md says, and padding is scale 0, zero point 8") {
    CHECK(rc::check([] {
        const auto group = *rc::gen::element<std::int64_t>(0, 32, 64, 128);
        const auto out = *rc::gen::inRange<std::int64_t>(1, 200);
        const auto in = *rc::gen::inRange<std::int64_t>(1, 6) * (group == 0 ? 37 : group);
        const PackedShape shape{.out = out, .in = in, .group = group, .zeros = true};
        const std::int64_t groups = row_groups(shape);
        const auto scales = numbers<std::uint16_t>(out * groups, 0x50FF, *rc::gen::arbitrary<unsigned>(), 1);
        const auto zeros = numbers<std::uint8_t>(out * groups, 16, *rc::gen::arbitrary<unsigned>());
        std::vector<std::uint16_t> stored(static_cast<std::size_t>(scale_count(shape)), 0xAAAA);
        std::vector<std::uint8_t> stored_zeros(static_cast<std::size_t>(zero_count(shape)), 0xAA);
        pack_scales(scales, shape, stored);
        pack_zeros(zeros, shape, stored_zeros);
        for (std::size_t i = 0; i < scales.size(); ++i) {
            const auto row = static_cast<std::int64_t>(i) / groups;
            const std::size_t at = test::scale_number(row, static_cast<std::int64_t>(i) % groups, shape);
            RC_ASSERT(stored[at] == scales[i]);
            RC_ASSERT(stored_zeros[at] == zeros[i]);
        }
        RC_ASSERT(std::accumulate(stored.begin(), stored.end(), 0.0) ==
                  std::accumulate(scales.begin(), scales.end(), 0.0));
        const double padding = static_cast<double>(stored.size() - scales.size());
        RC_ASSERT(std::accumulate(stored_zeros.begin(), stored_zeros.end(), 0.0) ==
                  std::accumulate(zeros.begin(), zeros.end(), 8 * padding));
        std::vector<std::uint16_t> back(scales.size());
        std::vector<std::uint8_t> back_zeros(zeros.size());
        unpack_scales(stored, shape, back);
        unpack_zeros(stored_zeros, shape, back_zeros);
        RC_ASSERT(back == scales);
        RC_ASSERT(back_zeros == zeros);
    }));
}

TEST_CASE("each code of E4M3 is what the format says, and comes back from its number") {
    for (unsigned code = 0; code < 256; ++code) {
        const auto byte = static_cast<std::uint8_t>(code);
        if (code % 128 == 127) {
            CHECK(std::isnan(decode_e4m3(byte)));
            continue;
        }
        CHECK(decode_e4m3(byte) == test::decoded(code, test::fp8_format));
        CHECK(encode_e4m3(decode_e4m3(byte)) == byte);
    }
    CHECK(encode_e4m3(1e30F) == 0x7E);
    CHECK(encode_e4m3(-std::numeric_limits<float>::infinity()) == 0xFE);
    CHECK(encode_e4m3(std::numeric_limits<float>::quiet_NaN()) % 128 == 127);
    CHECK(encode_e4m3(1e-40F) == 0);
}

TEST_CASE("numbers become the nearest code of E4M3, of two the even one") {
    CHECK(rc::check([] {
        const auto exponent = *rc::gen::inRange(-14, 11);
        const auto mantissa = *rc::gen::inRange(-4096, 4097);  // ties are among them
        const float value = std::ldexp(static_cast<float>(mantissa) / 2048.0F, exponent);
        const double nearest = test::rounded(static_cast<double>(value), test::fp8_format);
        RC_ASSERT(encode_e4m3(value) == test::encoded(nearest, test::fp8_format));
    }));
}

TEST_CASE("what cannot be packed is refused by name and place") {
    std::vector<std::uint8_t> codes(3 * 5);
    codes[7] = 16;
    auto packed = room_for(QuantFormat::w4a16, 3, 5);
    CHECK(error_of([&] { pack_w4(codes, 3, 5, packed); }) == "code [1, 2] is 16; allowed: 0 to 15");
    CHECK(error_of([&] { pack_w4(codes, 3, 6, packed); }) == "codes has 15 codes; allowed: 18");
    CHECK(error_of([&] { pack_w4(codes, 65, 6, packed); }) == "packed has 2048 bytes; allowed: 4096");
    CHECK(error_of([&] { unpack_w4(packed, 3, 6, codes); }) == "codes has 15 codes; allowed: 18");
    CHECK(error_of([&] { pack_w4(codes, 0, 5, packed); }) == "out is 0; allowed: 1 to 1048576");
    codes[7] = 0;
    const std::vector<std::uint8_t> padding{1, 2, 99};
    CHECK(error_of([&] { pack_w4(codes, 3, 5, packed, padding); }) ==
          "padding [2, 0] is 99; allowed: 0 to 15");
    const std::vector<std::int8_t> codes_w8(14);
    CHECK(error_of([&] { pack_w8(codes_w8, 3, 5, packed); }) == "packed has 2048 bytes; allowed: 4096");
}

TEST_CASE("scales and zero points that mean nothing are refused by place") {
    PackedShape shape{.out = 2, .in = 64, .group = 32, .zeros = true, .scale_dtype = Dtype::fp16};
    std::vector<std::uint16_t> scales{0x3C00, 0x0000, 0xBC00, 0x7C00};  // 1, 0, -1, infinity
    std::vector<std::uint16_t> stored(static_cast<std::size_t>(scale_count(shape)));
    CHECK(error_of([&] { pack_scales(scales, shape, stored); }) ==
          "scale [1, 1] is infinite or NaN (bits 0x7c00); allowed: finite numbers");
    shape.scale_dtype = Dtype::bf16;  // the same bits are a number, 2^121
    CHECK(error_of([&] { pack_scales(scales, shape, stored); }) ==
          "scale [1, 1] is too large, infinite or NaN (bits 0x7c00); allowed: magnitudes below 2^35");
    scales[3] = 0xD100;  // -2^35
    CHECK(error_of([&] { pack_scales(scales, shape, stored); }).starts_with("scale [1, 1] is too large"));
    scales[3] = 0x50FF;  // the number before 2^35
    CHECK(error_of([&] { pack_scales(scales, shape, stored); }) == "no error");
    scales[1] = 0xFFC1;
    CHECK(error_of([&] { pack_scales(scales, shape, stored); }).starts_with("scale [0, 1]"));
    std::vector<std::uint8_t> zeros{0, 15, 16, 3};
    std::vector<std::uint8_t> stored_zeros(stored.size());
    CHECK(error_of([&] { pack_zeros(zeros, shape, stored_zeros); }) ==
          "zero point [1, 0] is 16; allowed: 0 to 15");
    shape.format = QuantFormat::w8a16;
    shape.group = 0;
    shape.zeros = false;
    CHECK(error_of([&] { pack_scales(scales, shape, stored); }).starts_with("format is not w4a16"));
}

TEST_CASE("shapes whose fields do not go together are refused by name") {
    const auto refused = [](const PackedShape& shape) { return error_of([&] { check(shape); }); };
    CHECK(refused({.out = 8, .in = 64, .group = 48}) == "group is 48; allowed with w4a16: 0, 32, 64, 128");
    CHECK(refused({.out = 8, .in = 96, .group = 64}) ==
          "group is 64 and in is 96; allowed: groups that divide in, or 0");
    CHECK(refused({.format = QuantFormat::w8a8, .out = 8, .in = 128, .group = 128})
              .starts_with("group is 128; allowed with integer codes"));
    CHECK(refused({.format = QuantFormat::fp8, .out = 8, .in = 64, .group = 64}) ==
          "group is 64; allowed with fp8: 0, 128");
    CHECK(refused({.format = QuantFormat::fp8, .out = 8, .in = 128, .group = 128, .one_scale = true})
              .starts_with("one_scale"));
    CHECK(refused({.format = QuantFormat::w8a16, .out = 8, .in = 128, .one_scale = true})
              .starts_with("one_scale"));
    CHECK(refused({.format = QuantFormat::fp8, .out = 8, .in = 128, .zeros = true}).starts_with("zeros"));
    CHECK(refused({.out = 8, .in = 128, .scale_dtype = Dtype::fp32}) ==
          "scale_dtype is fp32; allowed with w4a16: fp16, bf16");
    CHECK(refused({.out = 8, .in = 262145}) == "in is 262145; allowed: 1 to 262144");
    CHECK(refused({.format = QuantFormat{9}, .out = 8, .in = 1}).starts_with("format is 9"));
    CHECK(refused({.format = QuantFormat::fp8, .out = 129, .in = 256, .group = 128}) == "no error");
}

}  // namespace
}  // namespace hone
