#include "decoder/forward/drawn_tokens.h"

#include <doctest/doctest.h>

#include "tests/support/fake_machine.h"

using namespace hone;
using namespace hone::decoder;

TEST_CASE(
    "tokens of a turn are there once each row that is expected has been written, others' do not matter") {
    const test::FakeMachine fakes;
    const Gpu gpu(0);
    const DrawnTokens drawn(gpu, 4);
    CHECK(drawn.are_there(1, 4));  // of nobody, from the start
    drawn.expect(1, 3);
    CHECK_FALSE(drawn.are_there(1, 3));
    CHECK(drawn.are_there(0, 4));
    CHECK(drawn.are_there(2, 4));
    drawn.of(1)[0] = 7;
    drawn.of(1)[2] = 0;
    CHECK(drawn.are_there(1, 1));
    CHECK_FALSE(drawn.are_there(1, 3));
    drawn.of(1)[1] = 9;
    CHECK(drawn.are_there(1, 4));
    CHECK(drawn.of(0)[3] == 0);
    CHECK(drawn.of(2)[0] == 0);
}

TEST_CASE("a turn reads what the one before has drawn, and three in a row are different ones") {
    for (std::size_t turn = 0; turn < turns; ++turn) {
        CHECK(turn_before(turn_after(turn)) == turn);
        CHECK(turn_after(turn_after(turn)) == turn_before(turn));
    }
}
