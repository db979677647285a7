// Layers of experts on the fake driver: descriptions, launches, and what is looked at where that is asked
// for.
#include "hone/expert_linear.h"

#include <doctest/doctest.h>

#include <vector>

#include "hone/expert_routing.h"
#include "runtime/operators/expert_linear.h"
#include "runtime/operators/expert_routing.h"
#include "tests/runtime/device_indices.h"
#include "tests/runtime/operator_under_test.h"

namespace hone::runtime {
namespace {

using namespace hone::test;

constexpr ExpertLinear combining{
    .in = 64, .out = 96, .experts = 4, .top_k = 2, .max_tokens = 8, .combine = true};

ExpertLinearArgs usual_args() {
    return {.x = address(1),
            .routing_weights = static_cast<float*>(address(2)),
            .weight = address(3),
            .out = address(4),
            .workspace = address(5)};
}

TEST_CASE("descriptions are problems, and what no kernel could serve is refused by name") {
    CHECK(to_string(problem_of(ExpertLinear{.in = 4096,
                                            .out = 14336,
                                            .experts = 8,
                                            .top_k = 2,
                                            .activation = Activation::silu,
                                            .gated = true,
                                            .gather = true})) ==
          "expert_linear dtype=bf16 activation=silu gated=yes bias=no gather=yes combine=no experts=8 "
          "top_k=2 in=4096 "
          "out=14336 tokens=8192");
    CHECK(to_string(problem_of(ExpertRouting{.experts = 128, .top_k = 8, .renormalize = true})) ==
          "expert_routing dtype=bf16 renormalize=yes experts=128 top_k=8 tokens=8192");
    CHECK_THROWS_WITH(
        static_cast<void>(problem_of(ExpertLinear{.in = 8, .out = 8, .experts = 2, .top_k = 3})),
        doctest::Contains("top_k is 3; allowed: at most experts, 2"));
    CHECK_THROWS_WITH(static_cast<void>(problem_of(ExpertRouting{.experts = 2, .top_k = 3})),
                      doctest::Contains("top_k is 3; allowed: at most experts, 2"));
    CHECK_THROWS_WITH(static_cast<void>(problem_of(ExpertRouting{.experts = 513, .top_k = 3})),
                      doctest::Contains("experts"));
}

TEST_CASE("a call without what its options need is refused before anything is launched") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false});
    const ExpertLinearKernel kernel = prepare(dispatcher, combining);
    const std::vector<std::int32_t> none;
    ExpertLinearArgs args = usual_args();
    args.starts = static_cast<const std::int32_t*>(address(6));
    const int before = machine.launch_count();
    CHECK(kernel.run(nullptr, args, 3) == Status::null_pointer);
    CHECK(kernel.refusal(args, 3).starts_with("rows is a null pointer"));
    args.rows = static_cast<const std::int32_t*>(address(7));
    args.workspace = nullptr;
    CHECK(kernel.run(nullptr, args, 3) == Status::null_pointer);
    CHECK(kernel.run(nullptr, args, 9) == Status::bad_rows);
    CHECK(machine.launch_count() == before);
    args.workspace = address(5);
    CHECK(kernel.run(nullptr, args, 3) == Status::ok);
    CHECK(machine.launch_count() == before + 2);
    CHECK(kernel.run(nullptr, args, 0) == Status::ok);
    CHECK(machine.launch_count() == before + 2);
}

TEST_CASE("starts and rows of a routing are looked at where that is asked for, and then only") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    const ExpertLinearKernel checking = prepare(dispatcher, combining, true);
    const ExpertLinearKernel trusting = prepare(dispatcher, combining);
    const auto run = [&](const ExpertLinearKernel& kernel, const std::vector<std::int32_t>& starts,
                         const std::vector<std::int32_t>& rows) {
        const DeviceIndices device_starts(driver, starts);
        const DeviceIndices device_rows(driver, rows);
        ExpertLinearArgs args = usual_args();
        args.starts = device_starts.data();
        args.rows = device_rows.data();
        return kernel.run(nullptr, args, 3);
    };
    CHECK(run(checking, {0, 2, 2, 5, 6}, {0, 3, 1, 2, 4, 5}) == Status::ok);
    CHECK(run(checking, {0, 0, 0, 0, 6}, {5, 4, 3, 2, 1, 0}) == Status::ok);
    const int before = machine.launch_count();
    CHECK(run(checking, {1, 2, 2, 5, 6}, {0, 3, 1, 2, 4, 5}) == Status::bad_lengths);
    CHECK(run(checking, {0, 3, 2, 5, 6}, {0, 3, 1, 2, 4, 5}) == Status::bad_lengths);
    CHECK(run(checking, {0, 2, 2, 5, 5}, {0, 3, 1, 2, 4, 5}) == Status::bad_lengths);
    CHECK(run(checking, {0, 2, 2, 5, 7}, {0, 3, 1, 2, 4, 5}) == Status::bad_lengths);
    CHECK(run(checking, {0, 2, 2, 5, 6}, {0, 3, 1, 2, 4, 6}) == Status::bad_indices);
    CHECK(run(checking, {0, 2, 2, 5, 6}, {0, 3, 1, 2, 4, -1}) == Status::bad_indices);
    CHECK(run(checking, {0, 2, 2, 5, 6}, {0, 3, 1, 2, 4, 4}) == Status::bad_indices);
    CHECK(machine.launch_count() == before);
    CHECK(run(trusting, {1, 2, 2, 5, 7}, {0, 3, 1, 2, 4, 6}) == Status::ok);
}

TEST_CASE("where no rows are mapped, starts alone are looked at") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    const ExpertLinearKernel kernel = prepare(
        dispatcher, ExpertLinear{.in = 64, .out = 96, .experts = 2, .top_k = 1, .max_tokens = 8}, true);
    const DeviceIndices starts(driver, {0, 1, 3});
    ExpertLinearArgs args = usual_args();
    args.starts = starts.data();
    CHECK(kernel.run(nullptr, args, 3) == Status::ok);
    CHECK(kernel.run(nullptr, args, 4) == Status::bad_lengths);
    CHECK(kernel.run(nullptr, args, 0) == Status::ok);
}

TEST_CASE("a routing of few tokens is one launch, one of many is three") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false});
    const ExpertRoutingKernel kernel =
        prepare(dispatcher, ExpertRouting{.experts = 8, .top_k = 2, .max_tokens = 4096});
    const ExpertRoutingArgs args{.logits = address(1),
                                 .routing_weights = static_cast<float*>(address(2)),
                                 .starts = static_cast<std::int32_t*>(address(3)),
                                 .rows = static_cast<std::int32_t*>(address(4)),
                                 .workspace = address(5)};
    const int before = machine.launch_count();
    CHECK(kernel.run(nullptr, args, 1) == Status::ok);
    CHECK(machine.launch_count() == before + 1);
    CHECK(kernel.run(nullptr, args, 4096) == Status::ok);
    CHECK(machine.launch_count() == before + 4);
}

}  // namespace
}  // namespace hone::runtime
