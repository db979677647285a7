#include "decoder/forward/graph_race.h"

#include <doctest/doctest.h>

#include <vector>

#include "tests/support/fake_machine.h"

using namespace hone;
using namespace hone::decoder;

TEST_CASE("a race replays each graph that is there once a round, with the round's inputs in place") {
    const test::FakeMachine fakes;
    const Gpu gpu(0);
    const StreamTimer timer(gpu);
    const runtime::GraphExec first = runtime::capture_graph(gpu.driver(), gpu.stream(), [] {});
    const runtime::GraphExec last = runtime::capture_graph(gpu.driver(), gpu.stream(), [] {});
    const std::vector<CUgraphExec> graphs{first.get(), nullptr, last.get()};
    std::vector<int> filled;
    bool faulted = false;
    const std::vector<std::vector<double>> us = race(
        timer, graphs, [&](int round) { filled.push_back(round); }, 4,
        [&](std::size_t, bool, const std::string&) { faulted = true; });
    CHECK_FALSE(faulted);
    CHECK(filled == std::vector<int>{0, 0, 1, 2, 3});  // once more for what warms up
    REQUIRE(us.size() == 3);
    CHECK(us[0].size() == 4);
    CHECK(us[1].empty());
    CHECK(us[2].size() == 4);
}
