// Starts threads: the thread sanitizer runs this file, too.
#include "decoder/serve/large_turn.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>

using namespace hone::decoder;

namespace {

const auto nothing = [] {};

}  // namespace

TEST_CASE("one large request has its turn at a time, small ones need none") {
    std::mutex turns;
    std::atomic<int> looks{0};
    std::atomic<bool> has_turn{false};
    std::jthread other;
    {
        LargeTurn first(turns);
        first.take_for(large_text_bytes, nothing);
        first.take_for(2 * large_text_bytes, nothing);  // it has it
        LargeTurn small(turns);
        small.take_for(large_text_bytes - 1, [] { FAIL("a small one waits"); });
        other = std::jthread([&] {
            LargeTurn second(turns);
            second.take_for(large_text_bytes, [&] { ++looks; });
            has_turn = true;
        });
        while (looks < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        CHECK_FALSE(has_turn);
    }
    other.join();
    CHECK(has_turn);
}

TEST_CASE("who waits for a turn can be told to go") {
    std::mutex turns;
    LargeTurn first(turns);
    first.take_for(large_text_bytes, nothing);
    std::jthread([&] {
        LargeTurn second(turns);
        CHECK_THROWS_AS(second.take_for(large_text_bytes, [] { throw std::runtime_error("stop"); }),
                        std::runtime_error);
    }).join();
}
