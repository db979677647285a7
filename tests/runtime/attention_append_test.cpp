#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "kernel_templates/attention_append/attention_append.h"
#include "runtime/operators/attention_append_prepared.h"
#include "tests/runtime/attention_under_test.h"

namespace hone::runtime {
namespace {

using namespace hone::test;

/// Heads that are no whole 16 bytes: the plain variant, whose kernel takes pointers and scalars in order.
constexpr AttentionAppend odd{.heads = 6,
                              .kv_heads = 2,
                              .head_dim = 7,
                              .rotary_dim = 6,
                              .max_batch = 8,
                              .max_kv_len = 100,
                              .dtype = Dtype::fp32,
                              .norm = true,
                              .page_size = 16};

AttentionAppendArgs usual() {
    return {.q = address(1),
            .k = address(2),
            .v = address(3),
            .out = address(4),
            .k_cache = address(5),
            .v_cache = address(6),
            .cos = address<float>(7),
            .sin = address<float>(8),
            .kv_lengths = address<std::int32_t>(9),
            .page_table = address<std::int32_t>(10),
            .q_weight = address(11),
            .k_weight = address(12),
            .pool_pages = 30,
            .table_rows = 200,
            .scale = 0.25F};
}

TEST_CASE("the problem of attention with the append has numbers in place of what stands for them") {
    CHECK(to_string(attention_append_problem(filled_in(AttentionAppend{.heads = 32, .head_dim = 128}))) ==
          "attention_append dtype=bf16 style=half norm=no window=0 softcap=no page_size=0 heads=32 "
          "kv_heads=32 head_dim=128 rotary_dim=128 batch=64 kv_len=8192");
    CHECK_THROWS_WITH(static_cast<void>(attention_append_problem(
                          {.heads = 4, .kv_heads = 4, .head_dim = 64, .rotary_dim = 63})),
                      doctest::Contains("rotary_dim is 63"));
}

TEST_CASE("a call of attention with the append, its strides filled in") {
    NotingMachine noting(attention_append::call_args);
    Dispatcher dispatcher({.use_cache = false}, noting.driver);
    AttentionAppendArgs args = usual();
    args.q_strides = {.token = 70};
    args.k_strides = args.v_strides = {.token = 70, .head = 7};
    REQUIRE(prepare(dispatcher, odd).run(nullptr, args, {3, 90}) == Status::ok);
    CHECK(noting.launched() == std::vector<std::uint64_t>{mebibyte(1),
                                                          mebibyte(5),
                                                          mebibyte(6),
                                                          mebibyte(2),
                                                          mebibyte(3),
                                                          mebibyte(9),
                                                          mebibyte(10),
                                                          mebibyte(7),
                                                          mebibyte(8),
                                                          mebibyte(11),
                                                          mebibyte(12),
                                                          mebibyte(4),
                                                          0,  //
                                                          3,
                                                          90,
                                                          70,
                                                          7,
                                                          70,
                                                          7,
                                                          70,
                                                          7,
                                                          42,
                                                          7,
                                                          16 * 14,
                                                          14,
                                                          7,
                                                          6,
                                                          30,
                                                          200,
                                                          bits(0.25F),
                                                          bits(1.0F),
                                                          bits(1e-5F)});
}

TEST_CASE("calls of attention with the append that cannot be are refused, in words") {
    FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false});
    const AttentionAppendKernel kernel = prepare(dispatcher, odd);
    const auto refusal = [&](auto change, AttentionAppendSizes sizes, Status status) {
        AttentionAppendArgs args = usual();
        change(args);
        CHECK(kernel.run(nullptr, args, sizes) == status);
        return kernel.refusal(args, sizes);
    };
    const auto same = [](AttentionAppendArgs&) {};
    CHECK(refusal(same, {9, 90}, Status::bad_rows) == "batch is 9; allowed: 0 to 8");
    CHECK(refusal(same, {1, 101}, Status::bad_rows) == "kv_len is 101; allowed: 1 to 100");
    CHECK(refusal([](auto& args) { args.table_rows = 80; }, {1, 90}, Status::bad_rows) ==
          "table_rows is 80; allowed: from kv_len, 90");
    CHECK(refusal([](auto& args) { args.pool_pages = 0; }, {1, 90}, Status::bad_pages) ==
          "pool_pages is 0; allowed: from 1");
    CHECK(refusal([](auto& args) { args.k = nullptr; }, {1, 90}, Status::null_pointer).find("k") !=
          std::string::npos);
    CHECK(refusal([](auto& args) { args.k = nullptr; }, {0, 90}, Status::ok).empty());
}

}  // namespace
}  // namespace hone::runtime
