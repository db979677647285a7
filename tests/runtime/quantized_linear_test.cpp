#include "hone/quantized_linear.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernel_templates/quantized_linear/quantized_linear.h"
#include "kernel_templates/quantized_linear/variants.h"
#include "runtime/dispatch/alignment.h"
#include "runtime/operators/feed_forward.h"
#include "runtime/operators/quantized_linear.h"
#include "tests/runtime/launched_parameters.h"
#include "tests/runtime/operator_under_test.h"

namespace hone::runtime {
namespace {

using namespace hone::test;

/// Odd rows: the plain variant everywhere, whose kernel takes the call's pointers and scalars in order.
constexpr QuantizedLinear odd_linear{
    .in = 97, .out = 75, .max_tokens = 33, .format = QuantFormat::w8a8, .quantized_x = true, .bias = true};
constexpr QuantizedFfn odd_ffn{
    .hidden = 97, .intermediate = 201, .max_tokens = 33, .zeros = true, .residual = true};

QuantizedLinearArgs linear_args() {
    return {.x = address(1),
            .x_scales = static_cast<const float*>(address(2)),
            .weight = {.codes = address(3), .scales = address(4)},
            .bias = address(5),
            .out = address(6),
            .workspace = address(7)};
}

QuantizedFfnArgs ffn_args() {
    return {.x = address(1),
            .gate = {.codes = address(2), .scales = address(3), .zeros = address(4)},
            .up = {.codes = address(5), .scales = address(6), .zeros = address(7)},
            .down = {.codes = address(8), .scales = address(9), .zeros = address(10)},
            .residual = address(11),
            .out = address(12),
            .workspace = address(13),
            .x_stride = 99,
            .out_stride = 101};
}

TEST_CASE("a quantized layer is a problem of one family, and so are the halves of a feed-forward network") {
    CHECK(to_string(problem_of(
              QuantizedLinear{.in = 4096, .out = 6144, .group = 128, .zeros = true, .norm = true})) ==
          "quantized_linear dtype=bf16 format=w4a16 group=128 zeros=yes quantized_x=no norm=yes "
          "activation=none gated=no bias=no residual=no in=4096 out=6144 tokens=8192");
    const QuantizedFfn ffn{.hidden = 4096,
                           .intermediate = 14336,
                           .dtype = Dtype::fp16,
                           .format = QuantFormat::fp8,
                           .group = 128,
                           .quantized_x = true,
                           .residual = true};
    CHECK(to_string(first_half(ffn)) ==
          "quantized_linear dtype=fp16 format=fp8 group=128 zeros=no quantized_x=yes norm=no "
          "activation=silu gated=yes bias=no residual=no in=4096 out=14336 tokens=8192");
    CHECK(to_string(second_half(ffn)) ==
          "quantized_linear dtype=fp16 format=fp8 group=128 zeros=no quantized_x=no norm=no "
          "activation=none gated=no bias=no residual=yes in=14336 out=4096 tokens=8192");
}

TEST_CASE("quantized layers that no kernel could serve are refused by name") {
    const auto refused = [](const QuantizedLinear& linear, const char* text) {
        CHECK_THROWS_WITH(static_cast<void>(problem_of(linear)), doctest::Contains(text));
    };
    refused({.in = 0, .out = 8}, "'in' has the value '0'");
    refused({.in = 8, .out = 8, .max_tokens = 0}, "max_tokens is 0");
    refused({.in = 8, .out = 8, .dtype = Dtype::fp32}, "allowed: fp16, bf16");
    refused({.in = 96, .out = 8, .group = 64}, "group=64 does not divide in=96");
    refused({.in = 8, .out = 8, .format = static_cast<QuantFormat>(4)}, "format is 4; allowed: w4a16");
    refused({.in = 8, .out = 8, .format = QuantFormat::w8a8, .zeros = true}, "zeros=yes is for format=w4a16");
    refused({.in = 8, .out = 8, .quantized_x = true}, "quantized_x=yes is for format=w8a8 and fp8");
    refused({.in = 8, .out = 8, .format = QuantFormat::w8a16, .one_scale = true}, "one_scale is for");
    refused({.in = 128, .out = 8, .format = QuantFormat::fp8, .group = 128, .one_scale = true},
            "one_scale is for");
    refused({.in = 8, .out = 8, .format = QuantFormat::fp8, .one_x_scale = true}, "one_x_scale is for");
    CHECK_THROWS_WITH(
        static_cast<void>(second_half(QuantizedFfn{.hidden = 64, .intermediate = 96, .group = 64})),
        doctest::Contains("quantized_ffn: group=64 does not divide intermediate=96"));
}

TEST_CASE("16 bytes suffice as alignment, whatever the sizes of elements") {
    const auto needed = [](std::int64_t out, int argument) {
        const Problem problem =
            problem_of(QuantizedLinear{.in = 256, .out = out, .format = QuantFormat::w8a16, .bias = true});
        const Candidate candidate{&quantized_linear::mma, {}};  // 16 elements, which are bytes at least
        return alignment_bytes(problem, candidate, static_cast<std::size_t>(argument));
    };
    CHECK(needed(72, quantized_linear::x) == 16);
    CHECK(needed(72, quantized_linear::weight) == 16);
    CHECK(needed(72, quantized_linear::scales) == 16);
    CHECK(needed(72, quantized_linear::bias) == 16);
    CHECK(needed(72, quantized_linear::out) == 16);
    CHECK(needed(75, quantized_linear::scales) == 4);
    CHECK(needed(75, quantized_linear::bias) == 2);
}

/// Pointers and scalars of each launch, in the family's order.
using Launched = std::vector<std::uint64_t>;
std::vector<Launched> launches;

void note(void** parameters) {
    launches.push_back(launched_parameters(quantized_linear::call_args, parameters));
}

CUresult note_launch(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     CUstream, void** parameters, void**) {
    note(parameters);
    return CUDA_SUCCESS;
}

CUresult note_extended_launch(const CUlaunchConfig*, CUfunction, void** parameters, void**) {
    note(parameters);
    return CUDA_SUCCESS;
}

std::shared_ptr<Driver> noting_driver() {
    auto driver = std::const_pointer_cast<Driver>(Driver::load());
    driver->cuLaunchKernel = note_launch;
    driver->cuLaunchKernelEx = note_extended_launch;
    launches.clear();
    return driver;
}

constexpr std::uint64_t mebibyte(std::uint64_t count) { return count << 20; }
std::uint64_t epsilon_bits(float epsilon) { return Scalar::of(epsilon).bits; }

TEST_CASE("a scale for each token and row, and one for all, are told apart by their strides") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, noting_driver());
    QuantizedLinear described = odd_linear;
    REQUIRE(prepare(dispatcher, described).run(nullptr, linear_args(), 33) == Status::ok);
    described.one_scale = described.one_x_scale = true;
    QuantizedLinearArgs args = linear_args();
    args.x_scale_stride = -7;  // has no meaning here
    args.weight_stride = 112;
    args.out_stride = 80;
    REQUIRE(prepare(dispatcher, described).run(nullptr, args, 33) == Status::ok);
    REQUIRE(launches.size() == 2);
    CHECK(
        launches[0] ==
        Launched{
            mebibyte(1), mebibyte(2), 0,           mebibyte(3), mebibyte(4), 0, 0,  0,  0,  //
            mebibyte(5), 0,           mebibyte(6), mebibyte(7),                             //
            33,          97,          1,           97,          97,          1, 75, 75, epsilon_bits(1e-5F)});
    CHECK(
        launches[1] ==
        Launched{
            mebibyte(1), mebibyte(2), 0,           mebibyte(3), mebibyte(4), 0, 0,  0,  0,  //
            mebibyte(5), 0,           mebibyte(6), mebibyte(7),                             //
            33,          97,          0,           112,         97,          0, 75, 80, epsilon_bits(1e-5F)});
}

TEST_CASE("the second quantized half reads what the first has written into the workspace") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, noting_driver());
    REQUIRE(prepare(dispatcher, odd_ffn).run(nullptr, ffn_args(), 33) == Status::ok);
    REQUIRE(launches.size() == 2);
    const std::uint64_t rest = mebibyte(13) + 13312;  // 33 x 201 x 2 bytes, up to a multiple of 256
    CHECK(launches[0] == Launched{mebibyte(1), 0,           0,
                                  mebibyte(2), mebibyte(3), mebibyte(4),  //
                                  mebibyte(5), mebibyte(6), mebibyte(7),
                                  0,           0,           mebibyte(13),
                                  rest,  //
                                  33,          99,          1,
                                  0,           0,           1,
                                  201,         201,         epsilon_bits(1e-5F)});
    CHECK(launches[1] == Launched{mebibyte(13),
                                  0,
                                  0,
                                  mebibyte(8),
                                  mebibyte(9),
                                  mebibyte(10),  //
                                  0,
                                  0,
                                  0,
                                  0,
                                  mebibyte(11),
                                  mebibyte(12),
                                  rest,  //
                                  33,
                                  201,
                                  1,
                                  0,
                                  0,
                                  1,
                                  97,
                                  101,
                                  epsilon_bits(1e-5F)});
}

TEST_CASE("wrong arguments of a quantized layer are refused before anything is enqueued") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    QuantizedLinear described = odd_linear;
    described.in = 128;  // whole words: strides have to be, too
    const QuantizedLinearKernel linear = prepare(dispatcher, described);
    const auto changed = [&](auto change, std::int64_t tokens = 5) {
        QuantizedLinearArgs args = linear_args();
        change(args);
        return linear.run(nullptr, args, tokens);
    };
    using Args = QuantizedLinearArgs;
    const auto as_is = [](Args&) {};
    CHECK(changed([](Args& a) { a.x_scales = nullptr; }) == Status::null_pointer);
    CHECK(changed([](Args& a) { a.weight.codes = nullptr; }) == Status::null_pointer);
    CHECK(changed([](Args& a) { a.weight.scales = nullptr; }) == Status::null_pointer);
    CHECK(changed([](Args& a) { a.bias = nullptr; }) == Status::null_pointer);
    CHECK(changed([](Args& a) { a.x_stride = 127; }) == Status::bad_stride);
    CHECK(changed([](Args& a) { a.x_scale_stride = -1; }) == Status::bad_stride);
    CHECK(changed([](Args& a) { a.weight_stride = 112; }) == Status::bad_stride);
    CHECK(changed([](Args& a) { a.x_stride = 130; }) == Status::misaligned);
    CHECK(changed([](Args& a) { a.weight_stride = 130; }) == Status::misaligned);
    CHECK(changed([](Args& a) { a.out = reinterpret_cast<void*>(0x600001); }) == Status::misaligned);
    CHECK(changed(as_is, 34) == Status::bad_rows);
    CHECK(changed(as_is, -1) == Status::bad_rows);
    CHECK(changed(as_is, 0) == Status::ok);
    CHECK(QuantizedLinearKernel().run(nullptr, linear_args(), 1) == Status::not_prepared);
    CHECK(machine.launch_count() == 0);
    CHECK(changed([](Args& a) { a.x_scale_stride = 3; }) == Status::ok);
    CHECK(machine.launch_count() > 0);
}

TEST_CASE("a wrong argument of either quantized half is refused before anything is enqueued") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const QuantizedFfnKernel ffn = prepare(dispatcher, odd_ffn);
    const auto changed = [&](auto change, std::int64_t tokens = 5) {
        QuantizedFfnArgs args = ffn_args();
        change(args);
        return ffn.run(nullptr, args, tokens);
    };
    using Args = QuantizedFfnArgs;
    const auto as_is = [](Args&) {};
    CHECK(changed([](Args& a) { a.gate.zeros = nullptr; }) == Status::null_pointer);
    CHECK(changed([](Args& a) { a.up.scales = nullptr; }) == Status::null_pointer);
    CHECK(changed([](Args& a) { a.down.codes = nullptr; }) == Status::null_pointer);
    CHECK(changed([](Args& a) { a.workspace = nullptr; }) == Status::null_pointer);
    CHECK(changed([](Args& a) { a.out_stride = 96; }) == Status::bad_stride);
    CHECK(changed(as_is, 34) == Status::bad_rows);
    CHECK(changed(as_is, -1) == Status::bad_rows);
    CHECK(changed(as_is, 0) == Status::ok);
    CHECK(QuantizedFfnKernel().run(nullptr, ffn_args(), 1) == Status::not_prepared);
    CHECK(machine.launch_count() == 0);
    CHECK(ffn.workspace_bytes(33) >= 33 * 201 * 2);
    CHECK(ffn.workspace_bytes(1) % workspace_alignment == 0);
    CHECK_THROWS_AS(static_cast<void>(ffn.workspace_bytes(34)), Error);
    CHECK_THROWS_AS(static_cast<void>(QuantizedFfnKernel().workspace_bytes(1)), Error);
}

}  // namespace
}  // namespace hone::runtime
