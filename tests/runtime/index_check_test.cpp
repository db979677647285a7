#include "runtime/operators/index_check.h"

#include <doctest/doctest.h>

#include <vector>

#include "runtime/cuda/stream.h"
#include "runtime/operators/entry.h"
#include "tests/runtime/attention_under_test.h"
#include "tests/runtime/device_indices.h"
#include "tests/runtime/operator_under_test.h"

namespace hone::runtime {
namespace {

using namespace hone::test;

/// A call of two sequences with room for 48 keys each, in three of five pages of 16 tokens.
template <class Kernel, class Args, class Sizes>
Status run_paged(const Driver& driver, const Kernel& kernel, Args args, Sizes sizes,
                 const std::vector<std::int32_t>& lengths, const std::vector<std::int32_t>& pages) {
    const DeviceIndices kv_lengths(driver, lengths);
    const DeviceIndices page_table(driver, pages);
    args.kv_lengths = kv_lengths.data();
    args.page_table = page_table.data();
    args.page_table_stride = 3;
    args.pool_pages = 5;
    return kernel.run(nullptr, args, sizes);
}

/// What such calls of a kernel that looks at indices launch, and what they refuse.
template <class Run>
void check_lengths_and_pages(const FakeMachine& machine, const Run& run) {
    CHECK(run({48, 17}, {0, 1, 2, 3, 4, 99}) == Status::ok);
    CHECK(run({0, 0}, {-1, -1, -1, -1, -1, -1}) == Status::ok);
    const int before = machine.launch_count();
    CHECK(run({49, 17}, {0, 1, 2, 3, 4, 99}) == Status::bad_lengths);
    CHECK(run({48, -1}, {0, 1, 2, 3, 4, 99}) == Status::bad_lengths);
    CHECK(run({48, 17}, {0, 1, 5, 3, 4, 99}) == Status::bad_pages);
    CHECK(run({48, 17}, {0, 1, 2, 3, -1, 99}) == Status::bad_pages);
    CHECK(machine.launch_count() == before);
}

TEST_CASE("indices are looked at where that is asked for, and then only") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    Attention described = small;
    described.max_q_len = 4;
    described.lengths = true;
    described.page_size = 16;
    const AttentionKernel checking = prepare(dispatcher, described, true);
    const AttentionKernel trusting = prepare(dispatcher, described);
    const auto run_of = [&](const AttentionKernel& attention) {
        return [&](const std::vector<std::int32_t>& lengths, const std::vector<std::int32_t>& pages) {
            return run_paged(driver, attention, usual_args(), AttentionSizes{2, 1, 48}, lengths, pages);
        };
    };
    check_lengths_and_pages(machine, run_of(checking));
    CHECK(run_of(trusting)({49, 17}, {0, 1, 5, 3, 4, 99}) == Status::ok);
}

TEST_CASE("pages that a window has left behind may be gone") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    Attention described = small;
    described.max_q_len = 2;
    described.window = 16;
    described.page_size = 16;
    const AttentionKernel attention = prepare(dispatcher, described, true);
    AttentionArgs args = usual_args();
    args.pool_pages = 5;
    const auto run = [&](const std::vector<std::int32_t>& pages, std::int64_t q_len) {
        const DeviceIndices page_table(driver, pages);
        args.page_table = page_table.data();
        return attention.run(nullptr, args, {1, q_len, 48});
    };
    CHECK(run({-1, -1, 3}, 1) == Status::ok);
    CHECK(run({-1, -1, 3}, 2) == Status::bad_pages);
    CHECK(run({-1, 2, 3}, 2) == Status::ok);
}

TEST_CASE("lengths and pages of attention that appends are looked at, those that its window sees") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    AttentionAppend described{.heads = 4,
                              .kv_heads = 2,
                              .head_dim = 64,
                              .rotary_dim = 0,
                              .max_batch = 2,
                              .max_kv_len = 48,
                              .page_size = 16};
    const AttentionAppendKernel checking = prepare(dispatcher, described, true);
    const AttentionAppendKernel trusting = prepare(dispatcher, described);
    described.window = 16;
    const AttentionAppendKernel windowed = prepare(dispatcher, described, true);
    const DeviceIndices lacking(driver, {48, 17});
    const AttentionAppendArgs args{.q = address(1),
                                   .k = address(2),
                                   .v = address(3),
                                   .out = address(4),
                                   .k_cache = address(5),
                                   .v_cache = address(6),
                                   .workspace = address(7)};
    const auto run_of = [&](const AttentionAppendKernel& append) {
        return [&](const std::vector<std::int32_t>& lengths, const std::vector<std::int32_t>& pages) {
            return run_paged(driver, append, args, AttentionAppendSizes{2, 48}, lengths, pages);
        };
    };
    check_lengths_and_pages(machine, run_of(checking));
    const int before = machine.launch_count();
    CHECK(run_of(windowed)({48, 17}, {-1, -1, 5, 3, 4, 99}) == Status::bad_pages);
    CHECK(checking.run(nullptr, {.kv_lengths = lacking.data(), .pool_pages = 5}, {2, 48}) ==
          Status::null_pointer);
    CHECK(machine.launch_count() == before);
    CHECK(run_of(windowed)({48, 17}, {-1, -1, 2, 3, 4, 99}) == Status::ok);
    CHECK(run_of(trusting)({49, 17}, {0, 1, 5, 3, 4, 99}) == Status::ok);
}

TEST_CASE("starts of packed sequences are looked at") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    Attention described = small;
    described.packed = true;
    const AttentionKernel attention = prepare(dispatcher, described, true);
    const auto run = [&](const std::vector<std::int32_t>& q, const std::vector<std::int32_t>& kv) {
        const DeviceIndices q_starts(driver, q);
        const DeviceIndices kv_starts(driver, kv);
        AttentionArgs args = usual_args();
        args.q_starts = q_starts.data();
        args.kv_starts = kv_starts.data();
        args.q_tokens = 9;
        args.kv_tokens = 30;
        return attention.run(nullptr, args, {2, 5, 20});
    };
    CHECK(run({0, 4, 9}, {0, 20, 30}) == Status::ok);
    CHECK(run({0, 0, 0}, {0, 0, 0}) == Status::ok);
    CHECK(run({1, 4, 9}, {0, 20, 30}) == Status::bad_lengths);
    CHECK(run({0, 4, 10}, {0, 20, 30}) == Status::bad_lengths);
    CHECK(run({0, 4, 3}, {0, 20, 30}) == Status::bad_lengths);
    CHECK(run({0, 4, 9}, {0, 21, 30}) == Status::bad_lengths);
    CHECK(run({0, 6, 9}, {0, 20, 30}) == Status::bad_lengths);
}

TEST_CASE("starts, lengths and pages of packed queries over pages are looked at") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    Attention described = small;
    described.packed = true;
    described.page_size = 16;
    const AttentionKernel attention = prepare(dispatcher, described, true);
    const auto run = [&](const std::vector<std::int32_t>& starts, const std::vector<std::int32_t>& lengths,
                         const std::vector<std::int32_t>& pages, std::int64_t prompts = 0) {
        const DeviceIndices q_starts(driver, starts);
        const DeviceIndices kv_lengths(driver, lengths);
        const DeviceIndices page_table(driver, pages);
        AttentionArgs args = usual_args();
        args.q_starts = q_starts.data();
        args.kv_lengths = kv_lengths.data();
        args.page_table = page_table.data();
        args.page_table_stride = 3;
        args.pool_pages = 5;
        args.q_tokens = 9;
        args.prompts = prompts;
        return attention.run(nullptr, args, {2, 5, 48});
    };
    CHECK(run({0, 4, 9}, {48, 17}, {0, 1, 2, 3, 4, 99}) == Status::ok);
    CHECK(run({0, 0, 4}, {48, 17}, {-1, 99, -1, 3, 4, 99}) ==
          Status::ok);  // nobody asks for the first one's keys
    CHECK(run({0, 1, 6}, {48, 17}, {0, 1, 2, 3, 4, 99}, 1) == Status::ok);
    CHECK(run({0, 0, 0}, {48, 17}, {0, 1, 2, 3, 4, 99}, 1) == Status::ok);
    CHECK(run({0, 1, 6}, {48, 17}, {0, 1, 2, 3, 4, 99}, 2) == Status::ok);  // all are prefill's
    const int before = machine.launch_count();
    CHECK(run({0, 2, 6}, {48, 17}, {0, 1, 2, 3, 4, 99}, 1) == Status::bad_lengths);
    CHECK(run({0, 1, 2}, {48, 17}, {0, 1, 2, 3, 4, 99}, 1) == Status::bad_lengths);
    CHECK(run({0, 4, 9}, {49, 17}, {0, 1, 2, 3, 4, 99}) == Status::bad_lengths);
    CHECK(run({0, 4, 10}, {48, 17}, {0, 1, 2, 3, 4, 99}) == Status::bad_lengths);
    CHECK(run({0, 6, 9}, {48, 17}, {0, 1, 2, 3, 4, 99}) == Status::bad_lengths);
    CHECK(run({0, 4, 3}, {48, 17}, {0, 1, 2, 3, 4, 99}) == Status::bad_lengths);
    CHECK(run({0, 4, 9}, {48, 17}, {0, 1, 2, 3, 5, 99}) == Status::bad_pages);
    CHECK(run({0, 4, 9}, {48, 33}, {0, 1, 2, 3, 4, 99}) == Status::bad_pages);
    CHECK(machine.launch_count() == before);
}

TEST_CASE("pages that a window has left behind may be gone for the first of a prompt's queries") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    Attention described = small;
    described.packed = true;
    described.window = 16;
    described.page_size = 16;
    const AttentionKernel attention = prepare(dispatcher, described, true);
    const DeviceIndices kv_lengths(driver, {48});
    AttentionArgs args = usual_args();
    args.kv_lengths = kv_lengths.data();
    args.pool_pages = 5;
    args.q_tokens = 20;
    const auto run = [&](const std::vector<std::int32_t>& pages, std::int32_t queries) {
        const DeviceIndices page_table(driver, pages);
        const DeviceIndices q_starts(driver, {0, queries});
        args.page_table = page_table.data();
        args.q_starts = q_starts.data();
        return attention.run(nullptr, args, {1, 20, 48});
    };
    CHECK(run({-1, -1, 3}, 1) == Status::ok);
    CHECK(run({-1, -1, 3}, 2) == Status::bad_pages);
    CHECK(run({-1, 2, 3}, 17) == Status::ok);
    CHECK(run({-1, 2, 3}, 18) == Status::bad_pages);
}

/// An embedding of three tokens, with these ids and positions of tables of 100 and 8 rows.
template <class Id>
Status embed(const EmbeddingKernel& embedding, const Driver& driver, const std::vector<Id>& ids,
             const std::vector<Id>& positions, CUstream stream = nullptr) {
    const DeviceIndices device_ids(driver, ids);
    const DeviceIndices device_positions(driver, positions);
    return embedding.run(stream,
                         {.ids = device_ids.data(),
                          .table = address(1),
                          .position_ids = device_positions.data(),
                          .position_table = address(2),
                          .out = address(3),
                          .vocabulary = 100,
                          .position_rows = 8},
                         3);
}

TEST_CASE_TEMPLATE("an embedding's ids and positions are looked at", Id, std::int32_t, std::int64_t) {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    Embedding described{.hidden = 64,
                        .max_tokens = 8,
                        .index = sizeof(Id) == 8 ? IndexType::int64 : IndexType::int32,
                        .positions = true};
    const EmbeddingKernel checking = prepare(dispatcher, described, true);
    const EmbeddingKernel trusting = prepare(dispatcher, described);
    described.positions = false;
    const EmbeddingKernel without = prepare(dispatcher, described, true);
    const auto run = [&](const EmbeddingKernel& embedding, const std::vector<Id>& ids,
                         const std::vector<Id>& positions) {
        return embed(embedding, driver, ids, positions);
    };
    CHECK(run(checking, {0, 99, 5}, {7, 0, 3}) == Status::ok);
    const int before = machine.launch_count();
    CHECK(run(checking, {0, 100, 5}, {7, 0, 3}) == Status::bad_indices);
    CHECK(run(checking, {0, 99, -1}, {7, 0, 3}) == Status::bad_indices);
    CHECK(run(checking, {0, 99, 5}, {8, 0, 3}) == Status::bad_indices);
    CHECK(run(checking, {0, 99, 5}, {7, 0, -5}) == Status::bad_indices);
    CHECK(machine.launch_count() == before);
    CHECK(run(trusting, {0, 100, -5}, {8, 0, -1}) == Status::ok);
    CHECK(run(without, {0, 99, 5}, {8, 0, -1}) == Status::ok);
    CHECK(run(without, {0, 100, 5}, {0, 0, 0}) == Status::bad_indices);
    CHECK(checking.run(nullptr, {}, 3) == Status::null_pointer);
    CHECK(checking.run(nullptr, {}, 9) == Status::bad_rows);
    CHECK(checking.run(nullptr, {}, 0) == Status::ok);
}

TEST_CASE("an id of 64 bits is not cut off before it is looked at") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const EmbeddingKernel checking =
        prepare(dispatcher, Embedding{.hidden = 64, .max_tokens = 8, .index = IndexType::int64}, true);
    const std::vector<std::int64_t> wide{0, (std::int64_t{1} << 32) + 1, 1};
    CHECK(embed(checking, dispatcher.session().driver(), wide, {0, 0, 0}) == Status::bad_indices);
}

TEST_CASE("an embedding may be captured, but not with a look at its ids") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    const Embedding described{.hidden = 64, .max_tokens = 8};
    const EmbeddingKernel checking = prepare(dispatcher, described, true);
    const EmbeddingKernel trusting = prepare(dispatcher, described);
    const DeviceIndices<std::int32_t> ids(driver, {1, 2, 3});
    const EmbeddingArgs args{.ids = ids.data(), .table = address(1), .out = address(3), .vocabulary = 100};
    const Stream stream = create_stream(driver);
    const GraphExec graph = capture_graph(driver, stream.get(), [&] {
        CHECK(checking.run(stream.get(), args, 3) == Status::capturing);
        CHECK(trusting.run(stream.get(), args, 3) == Status::ok);
    });
    CHECK(machine.launch_count() == 0);
}

TEST_CASE("calls may be captured, but not with a look at the indices") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    const AttentionKernel checking = prepare(dispatcher, small, true);
    const AttentionKernel trusting = prepare(dispatcher, small);
    const Stream stream = create_stream(driver);
    const GraphExec graph = capture_graph(driver, stream.get(), [&] {
        CHECK(checking.run(stream.get(), usual_args(), {2, 1, 90}) == Status::capturing);
        CHECK(trusting.run(stream.get(), usual_args(), {2, 1, 90}) == Status::ok);
        CHECK(trusting.run(stream.get(), usual_args(), {2, 30, 90}) == Status::ok);
    });
    CHECK(machine.launch_count() == 0);
    check(driver, driver.cuGraphLaunch(graph.get(), stream.get()), "graph");
    CHECK(machine.launch_count() >= 2);
}

}  // namespace
}  // namespace hone::runtime
