// Layers of experts with quantized weights on the fake driver: descriptions, launches, and what is looked at
// where that is asked for.
#include "hone/quantized_expert_linear.h"

#include <doctest/doctest.h>

#include <vector>

#include "runtime/operators/quantized_expert_linear.h"
#include "tests/runtime/device_indices.h"
#include "tests/runtime/operator_under_test.h"

namespace hone::runtime {
namespace {

using namespace hone::test;

constexpr QuantizedExpertLinear combining{.in = 64,
                                          .out = 96,
                                          .experts = 4,
                                          .top_k = 2,
                                          .max_tokens = 8,
                                          .format = QuantFormat::w8a8,
                                          .combine = true};

QuantizedExpertLinearArgs usual_args() {
    return {.x = address(1),
            .routing_weights = static_cast<float*>(address(2)),
            .weight = {.codes = address(3), .scales = address(8)},
            .out = address(4),
            .workspace = address(5)};
}

TEST_CASE("a description is a problem, and what no kernel could serve is refused by name") {
    CHECK(to_string(problem_of(QuantizedExpertLinear{.in = 4096,
                                                     .out = 14336,
                                                     .experts = 8,
                                                     .top_k = 2,
                                                     .group = 128,
                                                     .activation = Activation::silu,
                                                     .gated = true,
                                                     .gather = true})) ==
          "quantized_expert_linear dtype=bf16 format=w4a16 group=128 zeros=no activation=silu gated=yes "
          "bias=no "
          "gather=yes combine=no experts=8 top_k=2 in=4096 out=14336 tokens=8192");
    CHECK_THROWS_WITH(static_cast<void>(problem_of(
                          QuantizedExpertLinear{.in = 96, .out = 8, .experts = 2, .top_k = 1, .group = 64})),
                      doctest::Contains("group=64 does not divide in=96"));
    CHECK_THROWS_WITH(static_cast<void>(problem_of(QuantizedExpertLinear{
                          .in = 96, .out = 8, .experts = 2, .top_k = 1, .dtype = Dtype::fp32})),
                      doctest::Contains("dtype"));
    CHECK_THROWS_WITH(
        static_cast<void>(problem_of(QuantizedExpertLinear{.in = 96, .out = 8, .experts = 2, .top_k = 3})),
        doctest::Contains("top_k is 3; allowed: at most experts, 2"));
}

TEST_CASE("codes of x, the product and the sum are three launches; what is missing is refused before them") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false});
    const QuantizedExpertLinearKernel kernel = prepare(dispatcher, combining);
    QuantizedExpertLinearArgs args = usual_args();
    args.starts = static_cast<const std::int32_t*>(address(6));
    args.rows = static_cast<const std::int32_t*>(address(7));
    const int before = machine.launch_count();
    args.weight.scales = nullptr;
    CHECK(kernel.run(nullptr, args, 3) == Status::null_pointer);
    CHECK(kernel.refusal(args, 3).starts_with("scales is a null pointer"));
    args.weight.scales = address(8);
    args.weight.codes = static_cast<std::byte*>(address(3)) + 1;
    CHECK(kernel.run(nullptr, args, 3) == Status::misaligned);
    args.weight.codes = address(3);
    CHECK(kernel.run(nullptr, args, 9) == Status::bad_rows);
    CHECK(machine.launch_count() == before);
    CHECK(kernel.run(nullptr, args, 3) == Status::ok);
    CHECK(machine.launch_count() == before + 3);
}

TEST_CASE("starts and rows of a routing are looked at for quantized experts, too") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    const QuantizedExpertLinearKernel kernel = prepare(dispatcher, combining, true);
    const auto run = [&](const std::vector<std::int32_t>& starts, const std::vector<std::int32_t>& rows) {
        const DeviceIndices device_starts(driver, starts);
        const DeviceIndices device_rows(driver, rows);
        QuantizedExpertLinearArgs args = usual_args();
        args.starts = device_starts.data();
        args.rows = device_rows.data();
        return kernel.run(nullptr, args, 3);
    };
    CHECK(run({0, 2, 2, 5, 6}, {0, 3, 1, 2, 4, 5}) == Status::ok);
    const int before = machine.launch_count();
    CHECK(run({1, 2, 2, 5, 6}, {0, 3, 1, 2, 4, 5}) == Status::bad_lengths);
    CHECK(run({0, 3, 2, 5, 6}, {0, 3, 1, 2, 4, 5}) == Status::bad_lengths);
    CHECK(run({0, 2, 2, 5, 5}, {0, 3, 1, 2, 4, 5}) == Status::bad_lengths);
    CHECK(run({0, 2, 2, 5, 7}, {0, 3, 1, 2, 4, 5}) == Status::bad_lengths);
    CHECK(run({0, 2, 2, 5, 6}, {0, 3, 1, 2, 4, -1}) == Status::bad_indices);
    CHECK(run({0, 2, 2, 5, 6}, {0, 3, 1, 2, 4, 4}) == Status::bad_indices);
    CHECK(run({0, 2, 2, 5, 6}, {0, 3, 1, 2, 4, 6}) == Status::bad_indices);
    CHECK(machine.launch_count() == before);
}

}  // namespace
}  // namespace hone::runtime
