#include "hone/linear.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernel_templates/linear/linear.h"
#include "kernel_templates/linear/normalize.h"
#include "runtime/operators/feed_forward.h"
#include "runtime/operators/linear.h"
#include "tests/runtime/launched_parameters.h"
#include "tests/runtime/operator_under_test.h"

namespace hone::runtime {
namespace {

using namespace hone::test;

/// Rows that are no whole 16 bytes: the plain variant everywhere, whose kernel takes the call's pointers and
/// scalars in order.
constexpr FusedFfn small_ffn{
    .hidden = 98, .intermediate = 202, .max_tokens = 33, .dtype = Dtype::fp32, .residual = true};

std::uint64_t epsilon_bits(float epsilon) { return Scalar::of(epsilon).bits; }

FusedFfnArgs usual_args() {
    return {.x = address(1),
            .gate = address(2),
            .up = address(3),
            .down = address(4),
            .residual = address(5),
            .out = address(6),
            .workspace = address(7),
            .x_stride = 100,
            .out_stride = 104};
}

TEST_CASE("the halves of a feed-forward network are problems of one family") {
    CHECK(to_string(first_half(FusedFfn{.hidden = 4096, .intermediate = 14336})) ==
          "linear dtype=bf16 norm=no activation=silu gated=yes bias=no residual=no in=4096 out=14336 "
          "tokens=8192");
    CHECK(to_string(
              second_half(FusedFfn{.hidden = 4096, .intermediate = 14336, .residual = true, .norm = true})) ==
          "linear dtype=bf16 norm=no activation=none gated=no bias=no residual=yes in=14336 out=4096 "
          "tokens=8192");
    CHECK(to_string(first_half(FusedFfn{.hidden = 768,
                                        .intermediate = 3072,
                                        .dtype = Dtype::fp16,
                                        .activation = Activation::gelu_tanh,
                                        .gated = false,
                                        .bias = true,
                                        .norm = true})) ==
          "linear dtype=fp16 norm=yes activation=gelu_tanh gated=no bias=yes residual=no in=768 out=3072 "
          "tokens=8192");
}

TEST_CASE("descriptions that no kernel could serve are refused by name") {
    CHECK_THROWS_WITH(static_cast<void>(problem_of(Linear{.in = 0, .out = 8})),
                      doctest::Contains("'in' has the value '0'"));
    CHECK_THROWS_WITH(static_cast<void>(problem_of(Linear{.in = 8, .out = 8, .max_tokens = 0})),
                      doctest::Contains("max_tokens is 0"));
    CHECK_THROWS_WITH(static_cast<void>(problem_of(Linear{.in = 8, .out = 8, .dtype = Dtype::int8})),
                      doctest::Contains("'dtype' has the value 'int8'"));
    CHECK_THROWS_WITH(static_cast<void>(first_half(FusedFfn{.hidden = 8, .intermediate = 8, .bias = true})),
                      doctest::Contains("gated"));
}

TEST_CASE("what is wrong with a network is said in its own words, not in those of its layers") {
    const auto refusal = [](const FusedFfn& ffn) -> std::string {
        try {
            static_cast<void>(first_half(ffn));
            static_cast<void>(second_half(ffn));
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "none";
    };
    CHECK(refusal({.hidden = 8, .intermediate = 8}) == "none");
    CHECK(refusal({.hidden = 0, .intermediate = 8})
              .starts_with("fused_ffn: field 'hidden' has the value '0'; allowed: an integer from 1 to "));
    CHECK(refusal({.hidden = 8, .intermediate = -1})
              .starts_with("fused_ffn: field 'intermediate' has the value '-1'; allowed: "));
    CHECK(refusal({.hidden = 8, .intermediate = 8, .max_tokens = 0})
              .starts_with("fused_ffn: max_tokens is 0; allowed: "));
    CHECK(refusal({.hidden = 8, .intermediate = 8, .bias = true}).starts_with("fused_ffn: gated=yes has no"));
    CHECK(refusal({.hidden = 8, .intermediate = 8, .dtype = static_cast<Dtype>(99)}) ==
          "fused_ffn: dtype is 99, which is no Dtype");
    const LayerNames names{.family = "linear", .name = "fused_ffn", .in = "hidden", .out = "intermediate"};
    CHECK(error_of_operator("linear: out x in is 5, tokens x out is 6", names) ==
          "fused_ffn: intermediate x hidden is 5, tokens x intermediate is 6");
}

/// Members of each launch's struct.
using Launched = std::vector<std::uint64_t>;
std::vector<Launched> launches;
/// Those of the first launch; later ones take the whole call.
std::span<const KernelArg> first_args = linear::call_args;

void note(void** parameters) {
    const std::span<const KernelArg> args = launches.empty() ? first_args : linear::call_args;
    launches.push_back(launched_parameters(args, parameters));
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

TEST_CASE("the second half reads what the first has written into the workspace") {
    const FakeMachine machine;
    const auto driver = std::const_pointer_cast<Driver>(Driver::load());
    driver->cuLaunchKernel = note_launch;
    driver->cuLaunchKernelEx = note_extended_launch;
    Dispatcher dispatcher({.use_cache = false}, driver);
    const FusedFfnKernel ffn = prepare(dispatcher, small_ffn);
    launches.clear();
    REQUIRE(ffn.run(nullptr, usual_args(), 33) == Status::ok);
    REQUIRE(launches.size() == 2);
    const auto mebibyte = [](std::uint64_t count) { return count << 20; };
    const std::uint64_t rest = mebibyte(7) + 26880;  // 33 x 202 x 4 bytes, up to a multiple of 256
    CHECK(launches[0] == Launched{mebibyte(1), 0, mebibyte(2), mebibyte(3), 0, 0, mebibyte(7), rest,  //
                                  33, 100, 98, 98, 202, 202, epsilon_bits(1e-5F)});
    CHECK(launches[1] == Launched{mebibyte(7), 0, mebibyte(4), 0, 0, mebibyte(5), mebibyte(6), rest,  //
                                  33, 202, 202, 202, 98, 104, epsilon_bits(1e-5F)});
}

TEST_CASE("a norm's launch puts its result behind the intermediate, and the first half alone reads it") {
    const FakeMachine machine;
    const auto driver = std::const_pointer_cast<Driver>(Driver::load());
    driver->cuLaunchKernel = note_launch;
    driver->cuLaunchKernelEx = note_extended_launch;
    Dispatcher dispatcher({.use_cache = false}, driver);
    FusedFfn described = small_ffn;
    described.norm = true;
    const FusedFfnKernel ffn = prepare(dispatcher, described);
    FusedFfnArgs args = usual_args();
    args.residual = args.out = const_cast<void*>(args.x);  // out = x + ffn(norm(x)), in place
    args.residual_stride = args.out_stride = args.x_stride;
    args.norm_weight = address(8);
    args.epsilon = 0.25F;
    launches.clear();
    first_args = linear::normalize_args;
    REQUIRE(ffn.run(nullptr, args, 33) == Status::ok);
    first_args = linear::call_args;
    REQUIRE(launches.size() == 3);
    const auto mebibyte = [](std::uint64_t count) { return count << 20; };
    const std::uint64_t rest = mebibyte(7) + 26880;
    CHECK(launches[0] == Launched{mebibyte(1), mebibyte(8), rest, 100, epsilon_bits(0.25F)});
    CHECK(launches[1] == Launched{rest, mebibyte(8), mebibyte(2), mebibyte(3), 0, 0, mebibyte(7), rest,  //
                                  33, 98, 98, 98, 202, 202, epsilon_bits(0.25F)});
    CHECK(launches[2] == Launched{mebibyte(7), 0, mebibyte(4), 0, 0, mebibyte(1), mebibyte(1), rest,  //
                                  33, 202, 202, 202, 100, 100, epsilon_bits(1e-5F)});
    CHECK(ffn.workspace_bytes(33) >= 26880 + 33 * 98 * 4);
    described.hidden = 96;  // gemv folds the norm: nothing but the intermediate is kept
    CHECK(prepare(dispatcher, described).workspace_bytes(1) == 1024);
}

TEST_CASE("the workspace has room for the intermediate, and its size is told up to the prepared maximum") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const FusedFfnKernel ffn = prepare(dispatcher, small_ffn);
    CHECK(ffn.workspace_bytes(33) >= 33 * 202 * 4);
    CHECK(ffn.workspace_bytes(33) < 33 * 202 * 4 + 256 + (1 << 20));
    CHECK(ffn.workspace_bytes(1) % workspace_alignment == 0);
    CHECK_THROWS_AS(static_cast<void>(ffn.workspace_bytes(34)), Error);
    CHECK_THROWS_AS(static_cast<void>(FusedFfnKernel().workspace_bytes(1)), Error);
}

TEST_CASE("a wrong argument of either half is refused before anything is enqueued") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const FusedFfnKernel ffn = prepare(dispatcher, small_ffn);
    const auto changed = [&](auto change, std::int64_t tokens = 5) {
        FusedFfnArgs args = usual_args();
        change(args);
        return ffn.run(nullptr, args, tokens);
    };
    const auto as_is = [](FusedFfnArgs&) {};
    CHECK(changed([](FusedFfnArgs& a) { a.gate = nullptr; }) == Status::null_pointer);
    CHECK(changed([](FusedFfnArgs& a) { a.down = nullptr; }) == Status::null_pointer);
    CHECK(changed([](FusedFfnArgs& a) { a.residual = nullptr; }) == Status::null_pointer);
    CHECK(changed([](FusedFfnArgs& a) { a.workspace = nullptr; }) == Status::null_pointer);
    CHECK(changed([](FusedFfnArgs& a) { a.out_stride = 95; }) == Status::bad_stride);
    CHECK(changed([](FusedFfnArgs& a) { a.out = reinterpret_cast<void*>(0x600001); }) == Status::misaligned);
    CHECK(changed([](FusedFfnArgs& a) { a.epsilon = -1e-5F; }) == Status::bad_epsilon);
    CHECK(changed(as_is, 34) == Status::bad_rows);
    CHECK(changed(as_is, -1) == Status::bad_rows);
    CHECK(changed(as_is, 0) == Status::ok);
    CHECK(FusedFfnKernel().run(nullptr, usual_args(), 1) == Status::not_prepared);
    CHECK(machine.launch_count() == 0);
}

TEST_CASE("a norm needs its weight, aligned as x is, and an epsilon from 0") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Linear described{.in = 96, .out = 64, .max_tokens = 33, .norm = true};
    const LinearKernel linear = prepare(dispatcher, described);
    for (const std::int64_t tokens : {1, 4, 33}) {
        LinearArgs args{.x = address(1), .weight = address(2), .out = address(3), .workspace = address(4)};
        CHECK(linear.run(nullptr, args, tokens) == Status::null_pointer);
        args.norm_weight = reinterpret_cast<const void*>(0x500008);
        CHECK(linear.run(nullptr, args, tokens) == Status::misaligned);
        args.norm_weight = address(5);
        for (const float wrong : {-1.0F, std::numeric_limits<float>::infinity(), std::nanf("")}) {
            args.epsilon = wrong;
            CHECK(linear.run(nullptr, args, tokens) == Status::bad_epsilon);
        }
        args.epsilon = 0;
        CHECK(machine.launch_count() == 0);
        CHECK(linear.run(nullptr, args, 0) == Status::ok);
    }
    LinearArgs args{.x = address(1), .weight = address(2), .out = address(3), .norm_weight = address(5)};
    CHECK(linear.workspace_bytes(33) >= 33 * 96 * 2);
    CHECK(linear.run(nullptr, args, 33) == Status::null_pointer);  // the workspace
    args.workspace = address(4);
    CHECK(linear.run(nullptr, args, 33) == Status::ok);
    CHECK(std::string(machine.launch(0)->kernel) == "linear_normalize");
    CHECK(linear.run(nullptr, args, 1) == Status::ok);
    CHECK(std::string(machine.launch(machine.launch_count() - 1)->kernel) == "linear_gemv");
}

}  // namespace
}  // namespace hone::runtime
