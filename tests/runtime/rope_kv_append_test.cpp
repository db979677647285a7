#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "hone/attention.h"
#include "kernel_templates/rope_kv_append/rope_kv_append.h"
#include "runtime/operators/append_prepared.h"
#include "tests/runtime/attention_under_test.h"
#include "tests/runtime/device_indices.h"

namespace hone::runtime {
namespace {

using namespace hone::test;

/// Heads that are no whole 16 bytes: the plain variant, whose kernel takes pointers and scalars in order.
constexpr RopeKvAppend odd{
    .heads = 6, .kv_heads = 2, .head_dim = 7, .rotary_dim = 6, .max_tokens = 64, .dtype = Dtype::fp32};

std::string problem_text(const RopeKvAppend& rope) { return to_string(append_problem(filled_in(rope))); }

RopeKvAppendArgs usual_append() {
    return {.q = address(1),
            .k = address(2),
            .v = address(3),
            .out = address(4),
            .k_cache = address(5),
            .v_cache = address(6),
            .cos = address<float>(7),
            .sin = address<float>(8),
            .kv_lengths = address<std::int32_t>(9),
            .kv_len = 100,
            .table_rows = 200};
}

TEST_CASE("the append's problem has its numbers in place of what stands for them") {
    CHECK(problem_text({.heads = 32, .head_dim = 128})
              .starts_with("rope_kv_append dtype=bf16 kv_dtype=same style=half norm=no slots=no page_size=0 "
                           "heads=32 kv_heads=32 head_dim=128 rotary_dim=128 tokens=8192"));
    const std::string other = problem_text({.heads = 4,
                                            .kv_heads = 2,
                                            .head_dim = 64,
                                            .rotary_dim = 0,
                                            .kv_dtype = KvDtype::fp8,
                                            .style = RopeStyle::interleaved,
                                            .norm = true,
                                            .slots = true,
                                            .page_size = 16});
    CHECK(
        other.starts_with("rope_kv_append dtype=bf16 kv_dtype=fp8_e4m3 style=interleaved norm=yes slots=yes "
                          "page_size=16 heads=4 kv_heads=2 head_dim=64 rotary_dim=0"));
    CHECK_THROWS_WITH(static_cast<void>(problem_text({.heads = 4, .head_dim = 64, .rotary_dim = 63})),
                      doctest::Contains("rotary_dim is 63"));
    CHECK_THROWS_WITH(static_cast<void>(problem_text({.heads = 4, .head_dim = 64, .max_tokens = 0})),
                      doctest::Contains("max_tokens is 0"));
}

TEST_CASE("an append of a sequence's last tokens, its strides filled in") {
    namespace family = rope_kv_append;
    NotingMachine noting(family::call_args);
    Dispatcher dispatcher({.use_cache = false}, noting.driver);
    RopeKvAppendArgs args = usual_append();
    args.q_strides = {.token = 70};
    args.k_strides = args.v_strides = {.token = 70, .head = 7};
    args.q_len = 3;
    REQUIRE(prepare(dispatcher, odd).run(nullptr, args, 12) == Status::ok);
    CHECK(noting.launched() ==
          std::vector<std::uint64_t>{
              mebibyte(1), mebibyte(2), mebibyte(3), mebibyte(9), 0, 0,   mebibyte(7), mebibyte(8), 0, 0,  0,
              0,           mebibyte(4), mebibyte(5), mebibyte(6),  //
              12,          3,           100,         70,          7, 70,  7,           70,          7, 42, 7,
              1400,        14,          7,           0,           4, 200, bits(1e-5F)});
}

TEST_CASE("an append to slots of pages takes positions in place of lengths") {
    namespace family = rope_kv_append;
    NotingMachine noting(family::call_args);
    Dispatcher dispatcher({.use_cache = false}, noting.driver);
    RopeKvAppend described = odd;
    described.slots = true;
    described.page_size = 16;
    const RopeKvAppendKernel rope = prepare(dispatcher, described);
    RopeKvAppendArgs args = usual_append();
    args.positions = address<std::int32_t>(10);
    args.slots = address<std::int32_t>(11);
    args.q_len = 5;  // means nothing with slots
    CHECK(rope.run(nullptr, args, 12) == Status::bad_pages);
    args.pool_pages = 33;
    REQUIRE(rope.run(nullptr, args, 12) == Status::ok);
    CHECK(noting.launched()[family::kv_lengths] == mebibyte(10));
    CHECK(noting.launched()[family::slots] == mebibyte(11));
    CHECK(noting.launched()[std::size_t{family::pointer_count} + family::cache_stride] == 16 * 14);
    CHECK(noting.launched()[std::size_t{family::pointer_count} + family::pool_pages] == 33);
}

TEST_CASE("a wrong argument of an append is refused before anything is enqueued") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    RopeKvAppend described = odd;
    described.norm = true;
    const RopeKvAppendKernel rope = prepare(dispatcher, described);
    const auto changed = [&](auto change, std::int64_t tokens = 12) {
        RopeKvAppendArgs args = usual_append();
        args.q_weight = args.k_weight = address(12);
        args.q_len = 3;
        change(args);
        return rope.run(nullptr, args, tokens);
    };
    const auto as_is = [](RopeKvAppendArgs&) {};
    CHECK(changed([](RopeKvAppendArgs& a) { a.v = nullptr; }) == Status::null_pointer);
    CHECK(changed([](RopeKvAppendArgs& a) { a.k_weight = nullptr; }) == Status::null_pointer);
    CHECK(changed([](RopeKvAppendArgs& a) { a.sin = nullptr; }) == Status::null_pointer);
    CHECK(changed([](RopeKvAppendArgs& a) { a.out = address<char>(4) + 1; }) == Status::misaligned);
    CHECK(changed([](RopeKvAppendArgs& a) { a.cache_strides.token = 6; }) == Status::bad_stride);
    CHECK(changed([](RopeKvAppendArgs& a) { a.epsilon = -1; }) == Status::bad_epsilon);
    CHECK(changed([](RopeKvAppendArgs& a) { a.q_len = 5; }) == Status::bad_rows);
    CHECK(changed([](RopeKvAppendArgs& a) { a.q_len = 0; }) == Status::bad_rows);
    CHECK(changed([](RopeKvAppendArgs& a) { a.kv_len = 0; }) == Status::bad_rows);
    CHECK(changed([](RopeKvAppendArgs& a) { a.table_rows = 0; }) == Status::bad_rows);
    CHECK(changed(as_is, 65) == Status::bad_rows);
    CHECK(changed(as_is, -1) == Status::bad_rows);
    CHECK(changed(as_is, 0) == Status::ok);
    CHECK(RopeKvAppendKernel().run(nullptr, usual_append(), 1) == Status::not_prepared);
    CHECK(machine.launch_count() == 0);
    CHECK(changed(as_is) == Status::ok);
    CHECK(machine.launch_count() == 1);
}

TEST_CASE("an append's indices are looked at where that is asked for") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    RopeKvAppend described = odd;
    described.page_size = 16;
    const RopeKvAppendKernel rope = prepare(dispatcher, described, true);
    const auto run = [&](const std::vector<std::int32_t>& lengths, const std::vector<std::int32_t>& pages) {
        const DeviceIndices kv_lengths(driver, lengths);
        const DeviceIndices page_table(driver, pages);
        RopeKvAppendArgs args = usual_append();
        args.kv_lengths = kv_lengths.data();
        args.page_table = page_table.data();
        args.q_len = 2;
        args.kv_len = 32;
        args.pool_pages = 5;
        args.table_rows = 30;
        return rope.run(nullptr, args, 4);
    };
    CHECK(run({18, 2}, {-1, 4, 0, -1}) == Status::ok);
    CHECK(run({17, 2}, {-1, 4, 0, -1}) == Status::bad_pages);
    CHECK(run({18, 2}, {-1, 5, 0, -1}) == Status::bad_pages);
    CHECK(run({31, 2}, {-1, 4, 0, -1}) == Status::bad_lengths);  // no row of the tables
    CHECK(run({18, -1}, {-1, 4, 0, -1}) == Status::bad_lengths);
    CHECK(machine.launch_count() == 1);
}

TEST_CASE("slots and positions are looked at, too") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    RopeKvAppend described = odd;
    described.slots = true;
    const RopeKvAppendKernel rope = prepare(dispatcher, described, true);
    const auto run = [&](const std::vector<std::int32_t>& positions, const std::vector<std::int32_t>& slots) {
        const DeviceIndices token_positions(driver, positions);
        const DeviceIndices token_slots(driver, slots);
        RopeKvAppendArgs args = usual_append();
        args.positions = token_positions.data();
        args.slots = token_slots.data();
        args.pool_pages = 2;
        return rope.run(nullptr, args, 2);
    };
    CHECK(run({199, -1}, {199, -1}) == Status::ok);
    CHECK(run({200, 0}, {1, 0}) == Status::bad_lengths);
    CHECK(run({0, 0}, {1, 200}) == Status::bad_pages);
}

}  // namespace
}  // namespace hone::runtime
