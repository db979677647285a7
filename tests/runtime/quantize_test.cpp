// Starts threads: the thread sanitizer runs this file, too.
#include "hone/quantize.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/runtime/packed_reader.h"
#include "tests/runtime/quantize_case.h"

namespace hone {
namespace {

using test::WeightSpread;

std::span<const std::byte> bytes_of(const std::vector<float>& weights) {
    return std::as_bytes(std::span(weights));
}

PackedShape drawn_shape() {
    PackedShape shape;
    shape.format =
        *rc::gen::element(QuantFormat::w4a16, QuantFormat::w8a16, QuantFormat::w8a8, QuantFormat::fp8);
    shape.out = *rc::gen::inRange<std::int64_t>(1, 150);
    if (shape.format == QuantFormat::w4a16) {
        shape.group = *rc::gen::element<std::int64_t>(0, 32, 64, 128);
        shape.zeros = *rc::gen::arbitrary<bool>();
        shape.scale_dtype = *rc::gen::element(Dtype::fp16, Dtype::bf16);
    } else if (shape.format != QuantFormat::w8a16) {
        shape.one_scale = *rc::gen::arbitrary<bool>();
        if (shape.format == QuantFormat::fp8 && !shape.one_scale)
            shape.group = *rc::gen::element<std::int64_t>(0, 128);
    }
    shape.in = shape.group == 0 ? *rc::gen::inRange<std::int64_t>(1, 300)
                                : *rc::gen::inRange<std::int64_t>(1, 4) * shape.group;
    return shape;
}

TEST_CASE("a reader of docs/formats.md finds each weight again, as dequantize does") {
    CHECK(rc::check([] {
        const PackedShape shape = drawn_shape();
        const auto dtype = *rc::gen::element(Dtype::fp32, Dtype::fp16, Dtype::bf16);
        const auto weights = test::weights_of(
            test::drawn_weights(shape.out * shape.in, WeightSpread::uniform, *rc::gen::arbitrary<unsigned>()),
            dtype);
        // Nothing is clipped, so that every weight has a code within half a step.
        const QuantizedWeight stored = quantize(weights.bytes, dtype, shape, {.search = false});
        std::vector<float> values(weights.values.size());
        dequantize(shape, stored.view(), values);
        double errors = 0;
        double squares = 0;
        double largest = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto row = static_cast<std::int64_t>(i) / shape.in;
            const auto column = static_cast<std::int64_t>(i) % shape.in;
            const double read = test::read_value(shape, stored.view(), row, column);
            RC_ASSERT(values[i] == static_cast<float>(read));
            const double weight = weights.values[i];
            largest = std::max(largest, std::fabs(weight - read));
            errors += std::pow(weight - read, 2);
            squares += weight * weight;
        }
        RC_ASSERT(std::fabs(stored.loss.largest - largest) < 1e-7);
        RC_ASSERT(std::fabs(stored.loss.relative_l2 - std::sqrt(errors / std::max(squares, 1e-300))) < 1e-6);
        const double allowed = shape.format == QuantFormat::w4a16 ? 0.1
                               : shape.format == QuantFormat::fp8 ? 0.0365
                                                                  : 0.00395;
        RC_ASSERT(largest <= allowed);
    }));
}

TEST_CASE("each code is the one nearest to its weight") {
    for (const WeightSpread spread : {WeightSpread::normal, WeightSpread::outliers, WeightSpread::positive}) {
        for (const bool zeros : {false, true}) {
            const PackedShape shape{.out = 65, .in = 192, .group = 64, .zeros = zeros};
            const auto weights = test::drawn_weights(shape.out * shape.in, spread, 3);
            const QuantizedWeight stored = quantize(bytes_of(weights), Dtype::fp32, shape);
            double most = 0;  // beyond the error of the best code
            for (std::size_t i = 0; i < weights.size(); ++i) {
                const auto row = static_cast<std::int64_t>(i) / shape.in;
                const auto column = static_cast<std::int64_t>(i) % shape.in;
                const double scale = test::read_scale_w4(shape, stored.view(), row, column / 64);
                const int zero = zeros ? stored.zeros[test::scale_number(row, column / 64, shape)] : 8;
                const double best = std::sqrt(test::squared_error_of({&weights[i], 1}, scale, -zero));
                const double read = test::read_value(shape, stored.view(), row, column);
                most = std::max(most, std::fabs(static_cast<double>(weights[i]) - read) - best);
            }
            CHECK(most < 1e-6);
        }
    }
}

/// Least squared error of a group over 2000 scales a sign, or a zero point, as they would be stored.
double brute_force(std::span<const float> values, bool zeros) {
    double most = 0;
    for (const float value : values) most = std::max(most, std::fabs(static_cast<double>(value)));
    double best = std::numeric_limits<double>::infinity();
    for (int step = 1; step <= 2000; ++step) {
        const double scale = test::rounded(most / 6 * step / 2000, test::fp16_format);
        if (scale == 0) continue;
        if (zeros) {
            for (int zero = 0; zero < 16; ++zero)
                best = std::min(best, test::squared_error_of(values, scale, -zero));
        } else {
            best = std::min({best, test::squared_error_of(values, scale, -8),
                             test::squared_error_of(values, -scale, -8)});
        }
    }
    return best;
}

TEST_CASE("no scale of a fine grid leaves much less of a group than the one that is chosen") {
    for (const WeightSpread spread : {WeightSpread::normal, WeightSpread::uniform, WeightSpread::outliers,
                                      WeightSpread::positive, WeightSpread::tiny}) {
        for (const bool zeros : {false, true}) {
            const PackedShape shape{
                .out = 4, .in = 128, .group = 128, .zeros = zeros, .scale_dtype = Dtype::fp16};
            const auto weights = test::drawn_weights(shape.out * shape.in, spread, 11);
            const QuantizedWeight stored = quantize(bytes_of(weights), Dtype::fp32, shape);
            double chosen = 0;
            double least = 0;
            for (std::int64_t row = 0; row < shape.out; ++row) {
                const std::span group(&weights[static_cast<std::size_t>(row * 128)], 128);
                const int zero = zeros ? stored.zeros[test::scale_number(row, 0, shape)] : 8;
                const double mine =
                    test::squared_error_of(group, test::read_scale_w4(shape, stored.view(), row, 0), -zero);
                const double brute = brute_force(group, zeros);
                CHECK(mine <= 1.05 * brute);
                chosen += mine;
                least += brute;
            }
            CHECK(chosen <= 1.02 * least);
        }
    }
}

TEST_CASE("normal weights in groups of 128 lose a tenth") {
    const auto weights = test::drawn_weights(128 * 1024, WeightSpread::normal, 5);
    const auto lost = [&](PackedShape shape, bool search) {
        shape.out = 128;
        shape.in = 1024;
        const double loss =
            quantize(bytes_of(weights), Dtype::fp32, shape, {.search = search}).loss.relative_l2;
        MESSAGE("format " << static_cast<int>(shape.format) << std::string(shape.zeros ? ", zero points" : "")
                          << std::string(search ? "" : ", no search") << ": relative error " << loss);
        return loss;
    };
    CHECK(lost({.group = 128}, true) < 0.100);
    CHECK(lost({.group = 128}, false) < 0.110);
    CHECK(lost({.group = 128, .zeros = true}, true) < 0.098);
    CHECK(lost({.group = 128, .zeros = true}, false) < 0.104);
    CHECK(lost({.format = QuantFormat::w8a16}, true) < 0.009);
    CHECK(lost({.format = QuantFormat::w8a8}, true) < 0.009);
    CHECK(lost({.format = QuantFormat::fp8}, true) < 0.028);
    CHECK(lost({.format = QuantFormat::fp8, .group = 128}, true) < 0.028);
}

TEST_CASE("weights that are few multiples of a scale come back exactly") {
    CHECK(rc::check([] {
        const bool zeros = *rc::gen::arbitrary<bool>();
        const PackedShape shape{.out = 3, .in = 64, .group = 32, .zeros = zeros};
        const double scale = test::rounded(*rc::gen::inRange(1, 1000) / 997.0, test::bf16_format);
        const int zero = zeros ? *rc::gen::inRange(0, 16) : 8;
        const auto codes = *rc::gen::container<std::vector<int>>(3 * 64, rc::gen::inRange(0, 16));
        std::vector<float> weights;
        for (const int code : codes) weights.push_back(static_cast<float>((code - zero) * scale));
        const QuantizedWeight stored = quantize(bytes_of(weights), Dtype::fp32, shape);
        std::vector<float> values(weights.size());
        dequantize(shape, stored.view(), values);
        RC_ASSERT(stored.loss.relative_l2 == 0);
        RC_ASSERT(values == weights);
    }));
}

TEST_CASE("the result does not depend on the number of threads") {
    const auto weights = test::drawn_weights(300 * 128, WeightSpread::outliers, 6);
    for (const QuantFormat format : {QuantFormat::w4a16, QuantFormat::w8a16, QuantFormat::fp8}) {
        const PackedShape shape{.format = format, .out = 300, .in = 128};
        const QuantizedWeight one = quantize(bytes_of(weights), Dtype::fp32, shape, {.threads = 1});
        const QuantizedWeight many = quantize(bytes_of(weights), Dtype::fp32, shape, {.threads = 7});
        CHECK(one.codes == many.codes);
        CHECK(one.scales == many.scales);
        CHECK(one.loss.relative_l2 == many.loss.relative_l2);
    }
}

TEST_CASE("zeros, and weights at the ends of their type, have codes too") {
    for (const QuantFormat format :
         {QuantFormat::w4a16, QuantFormat::w8a16, QuantFormat::w8a8, QuantFormat::fp8}) {
        const PackedShape shape{.format = format, .out = 2, .in = 40};
        std::vector<float> values(80, 1.0F);
        const QuantizedWeight nothing = quantize(bytes_of(std::vector<float>(80)), Dtype::fp32, shape);
        dequantize(shape, nothing.view(), values);
        CHECK(values == std::vector<float>(80));
        CHECK(nothing.loss.relative_l2 == 0);
        for (const float end : {3.3e38F, 1e-29F, -3e38F}) {
            std::vector<float> ends(80, end);
            ends[3] = -end;
            CHECK(quantize(bytes_of(ends), Dtype::fp32, shape).loss.relative_l2 < 0.05);
        }
    }
    const PackedShape half{.out = 1, .in = 32, .scale_dtype = Dtype::fp16};  // its scales end at 6e-8
    CHECK(quantize(bytes_of(std::vector<float>(32, 1e-9F)), Dtype::fp32, half).loss.relative_l2 == 1);
    CHECK(quantize(bytes_of(std::vector<float>(32, 5.96e-8F)), Dtype::fp32, half).loss.relative_l2 < 0.01);
}

template <class Call>
std::string error_of(const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::bad_argument);
        CHECK_FALSE(error.hint().empty());
        return error.what();
    }
    return "no error";
}

TEST_CASE("weights that are no numbers are refused by place, the first one first") {
    std::vector<float> weights(200 * 70);
    weights[150 * 70 + 8] = std::numeric_limits<float>::infinity();
    weights[70 * 70 + 9] = std::numeric_limits<float>::quiet_NaN();
    for (const QuantFormat format : {QuantFormat::w4a16, QuantFormat::fp8}) {
        const PackedShape shape{.format = format, .out = 200, .in = 70};
        CHECK(error_of([&] { (void)quantize(bytes_of(weights), Dtype::fp32, shape, {.threads = 4}); }) ==
              "weight [70, 9] is nan; allowed: finite numbers");
    }
    const std::vector<std::uint16_t> halves{0x3C00, 0xFC00};
    const PackedShape shape{.out = 1, .in = 2};
    const auto bytes = std::as_bytes(std::span(halves));
    CHECK(error_of([&] { (void)quantize(bytes, Dtype::fp16, shape); }) ==
          "weight [0, 1] is -inf; allowed: finite numbers");
    CHECK(error_of([&] { (void)quantize(bytes, Dtype::bf16, shape); }) == "no error");
}

TEST_CASE("arguments that do not fit are refused by name") {
    const std::vector<float> weights(6, 1e6F);
    const auto bytes = bytes_of(weights);
    PackedShape shape{.out = 2, .in = 3, .scale_dtype = Dtype::fp16};
    CHECK(error_of([&] { (void)quantize(bytes, Dtype::fp32, shape); })
              .starts_with(
                  "weights of row 0, group 0 reach 1000000, and their scale is beyond the 65504 of fp16"));
    CHECK(error_of([&] { (void)quantize(bytes, Dtype::fp16, shape); }) ==
          "weights has 24 bytes; allowed: 12");
    CHECK(error_of([&] { (void)quantize(bytes, Dtype::int8, shape); }) ==
          "dtype is int8; allowed: fp32, fp16, bf16");
    CHECK(error_of([&] {
              (void)quantize(bytes, Dtype::fp32, shape, {.threads = -1});
          }).starts_with("threads is -1"));
    CHECK(error_of([&] { (void)quantize_into(bytes, Dtype::fp32, shape, {}); }) ==
          "codes has 0 bytes; allowed: 2048");
    shape.scale_dtype = Dtype::bf16;
    QuantizedWeight stored = quantize(bytes, Dtype::fp32, shape);
    std::vector<float> values(5);
    CHECK(error_of([&] { dequantize(shape, stored.view(), values); }) == "values has 5 numbers; allowed: 6");
    values.resize(6);
    stored.scales[2] = 0x80;  // row 8, which is padding
    stored.scales[5] = 0x7F;
    stored.scales[4] = 0x80;
    CHECK(error_of([&] { dequantize(shape, stored.view(), values); }) ==
          "the scale of row 1, group 0 is inf; allowed: finite numbers");
}

TEST_CASE("stored scales and zero points that mean nothing are refused by place") {
    const std::vector<float> weights(4, 1.0F);
    std::vector<float> values(4);
    PackedShape shape{.format = QuantFormat::w8a8, .out = 2, .in = 2};
    QuantizedWeight stored = quantize(bytes_of(weights), Dtype::fp32, shape);
    stored.scales[7] |= 0x80;
    CHECK(error_of([&] {
              dequantize(shape, stored.view(), values);
          }).starts_with("the scale of row 1, group 0 is -0.00787"));
    shape = {.out = 2, .in = 2, .zeros = true};
    stored = quantize(bytes_of(weights), Dtype::fp32, shape);
    stored.zeros[0] = 16;
    CHECK(error_of([&] { dequantize(shape, stored.view(), values); }) ==
          "the zero point of row 0, group 0 is 16; allowed: 0 to 15");
}

}  // namespace
}  // namespace hone
