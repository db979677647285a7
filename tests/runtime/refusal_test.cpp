// What holds for every operator: a pointer that run() refuses is named by refusal(), and what run() takes
// refusal() does not complain of.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/operators/entry.h"
#include "tests/runtime/operator_under_test.h"
#include "tests/runtime/visit_pointers.h"
#include "tests/support/fake_machine.h"

namespace hone::runtime {
namespace {

/// Every pointer set, each to memory of its own, aligned well.
template <class Args>
Args all_set(Args args = {}) {
    std::uintptr_t address = 0;
    test::visit_pointers(args, [&](const char*, auto*& pointer) {
        address += 1 << 20;
        pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(address);
    });
    return args;
}

/// Changes one pointer of a call to `address` plus what it was times `keep`, and sees what is said of it.
template <class Kernel, class Args, class Size>
void check_pointer(const Kernel& kernel, const Args& args, Size size, const std::string& changed, bool keep) {
    Args wrong = args;
    test::visit_pointers(wrong, [&](const char* name, auto*& pointer) {
        using Pointer = std::remove_reference_t<decltype(pointer)>;
        if (name == changed)
            pointer =
                keep ? reinterpret_cast<Pointer>(reinterpret_cast<std::uintptr_t>(pointer) + 1) : nullptr;
    });
    const Status status = kernel.run(nullptr, wrong, size);
    const std::string said = kernel.refusal(wrong, size);
    INFO(changed << ": " << said);
    CHECK((status == Status::ok) == said.empty());
    if (status != Status::ok) CHECK(said.starts_with(changed + (keep ? " is at " : " is a null pointer")));
}

template <class Description, class Args, class Size>
void check_operator(const Description& description, const Args& args, Size size, Size too_large) {
    const test::FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false});
    const auto kernel = test::prepare(dispatcher, description);
    Args usual = args;
    CHECK(kernel.run(nullptr, usual, size) == Status::ok);
    CHECK(kernel.refusal(usual, size).empty());
    CHECK(kernel.run(nullptr, usual, too_large) == Status::bad_rows);
    CHECK(kernel.refusal(usual, too_large).find("; allowed: ") != std::string::npos);
    test::visit_pointers(usual, [&](const char* name, auto*&) {
        check_pointer(kernel, args, size, name, false);
        check_pointer(kernel, args, size, name, true);
    });
}

TEST_CASE("an operator that is one call of a family names the pointers that it refuses") {
    test::visit_small_calls([](const auto& description, const auto& numbers) {
        check_operator(description, all_set(numbers), std::int64_t{5}, std::int64_t{9});
    });
}

TEST_CASE("a feed-forward network names the pointers that it refuses") {
    check_operator(
        FusedFfn{.hidden = 64, .intermediate = 96, .max_tokens = 8, .residual = true, .norm = true},
        all_set<FusedFfnArgs>(), std::int64_t{5}, std::int64_t{9});
    check_operator(FusedFfn{.hidden = 64,
                            .intermediate = 96,
                            .max_tokens = 8,
                            .activation = Activation::relu,
                            .gated = false,
                            .bias = true},
                   all_set<FusedFfnArgs>(), std::int64_t{5}, std::int64_t{9});
}

TEST_CASE("quantized layers name the pointers that they refuse") {
    for (const QuantFormat format : {QuantFormat::w4a16, QuantFormat::w8a16, QuantFormat::w8a8}) {
        check_operator(QuantizedLinear{.in = 128, .out = 64, .max_tokens = 8, .format = format, .bias = true},
                       all_set<QuantizedLinearArgs>(), std::int64_t{5}, std::int64_t{9});
        check_operator(
            QuantizedFfn{
                .hidden = 128, .intermediate = 64, .max_tokens = 8, .format = format, .residual = true},
            all_set<QuantizedFfnArgs>(), std::int64_t{5}, std::int64_t{9});
        check_operator(QuantizedExpertLinear{.in = 128,
                                             .out = 64,
                                             .experts = 8,
                                             .top_k = 2,
                                             .max_tokens = 8,
                                             .format = format,
                                             .activation = Activation::silu,
                                             .gated = true,
                                             .bias = true,
                                             .combine = true},
                       all_set<QuantizedExpertLinearArgs>(), std::int64_t{5}, std::int64_t{9});
    }
}

TEST_CASE("attention and its append name the pointers that they refuse") {
    const Attention attention{.heads = 8, .kv_heads = 2, .head_dim = 64, .max_batch = 4, .max_q_len = 32};
    check_operator(attention, all_set<AttentionArgs>(), AttentionSizes{2, 1, 90}, AttentionSizes{5, 1, 90});
    check_operator(attention, all_set<AttentionArgs>(), AttentionSizes{2, 20, 90}, AttentionSizes{2, 33, 90});
    check_operator(RopeKvAppend{.heads = 8, .kv_heads = 2, .head_dim = 64, .max_tokens = 8, .norm = true},
                   all_set(RopeKvAppendArgs{.kv_len = 100, .table_rows = 200}), std::int64_t{5},
                   std::int64_t{9});
}

TEST_CASE("numbers that run() refuses are named, too") {
    const test::FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false});
    const LinearKernel linear = test::prepare(
        dispatcher, Linear{.in = 64, .out = 96, .max_tokens = 8, .residual = true, .norm = true});
    const auto said = [&](auto change) {
        LinearArgs args = all_set<LinearArgs>();
        change(args);
        CHECK(linear.run(nullptr, args, 5) != Status::ok);
        return linear.refusal(args, 5);
    };
    CHECK(said([](LinearArgs& args) { args.residual_stride = 95; }) ==
          "residual_stride is 95; allowed: 96 or more");
    CHECK(said([](LinearArgs& args) { args.x_stride = -64; }) == "x_stride is -64; allowed: 64 or more");
    CHECK(
        said([](LinearArgs& args) { args.x_stride = 65; }).starts_with("x_stride is 65; allowed: multiples"));
    CHECK(said([](LinearArgs& args) { args.epsilon = -0.5F; }) ==
          "epsilon is -0.5; allowed: finite numbers from 0");
    CHECK_THROWS_AS(static_cast<void>(LinearKernel().refusal({}, 1)), Error);
}

}  // namespace
}  // namespace hone::runtime
