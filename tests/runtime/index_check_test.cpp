#include "runtime/operators/index_check.h"

#include <doctest/doctest.h>

#include <vector>

#include "runtime/cuda/stream.h"
#include "tests/runtime/attention_under_test.h"
#include "tests/runtime/device_indices.h"

namespace hone::runtime {
namespace {

using namespace hone::test;

TEST_CASE("indices are looked at where that is asked for, and then only") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    Attention described = small;
    described.max_q_len = 4;
    described.lengths = true;
    described.page_size = 16;
    const AttentionKernel checking = prepared(dispatcher, described, true);
    const AttentionKernel trusting = prepared(dispatcher, described);
    const auto run = [&](const AttentionKernel& attention, const std::vector<std::int32_t>& lengths,
                         const std::vector<std::int32_t>& pages) {
        const DeviceIndices kv_lengths(driver, lengths);
        const DeviceIndices page_table(driver, pages);
        AttentionArgs args = usual_args();
        args.kv_lengths = kv_lengths.data();
        args.page_table = page_table.data();
        args.page_table_stride = 3;
        args.pool_pages = 5;
        return attention.run(nullptr, args, {2, 1, 48});
    };
    CHECK(run(checking, {48, 17}, {0, 1, 2, 3, 4, 99}) == Status::ok);
    CHECK(run(checking, {0, 0}, {-1, -1, -1, -1, -1, -1}) == Status::ok);
    const int before = machine.launch_count();
    CHECK(run(checking, {49, 17}, {0, 1, 2, 3, 4, 99}) == Status::bad_lengths);
    CHECK(run(checking, {48, -1}, {0, 1, 2, 3, 4, 99}) == Status::bad_lengths);
    CHECK(run(checking, {48, 17}, {0, 1, 5, 3, 4, 99}) == Status::bad_pages);
    CHECK(run(checking, {48, 17}, {0, 1, 2, 3, -1, 99}) == Status::bad_pages);
    CHECK(machine.launch_count() == before);
    CHECK(run(trusting, {49, 17}, {0, 1, 5, 3, 4, 99}) == Status::ok);
}

TEST_CASE("pages that a window has left behind may be gone") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    Attention described = small;
    described.max_q_len = 2;
    described.window = 16;
    described.page_size = 16;
    const AttentionKernel attention = prepared(dispatcher, described, true);
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

TEST_CASE("starts of packed sequences are looked at") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    Attention described = small;
    described.packed = true;
    const AttentionKernel attention = prepared(dispatcher, described, true);
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

TEST_CASE("calls may be captured, but not with a look at the indices") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const Driver& driver = dispatcher.session().driver();
    const AttentionKernel checking = prepared(dispatcher, small, true);
    const AttentionKernel trusting = prepared(dispatcher, small);
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
