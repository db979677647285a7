#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "decoder/engine/running_model.h"
#include "tests/decoder/small_model.h"
#include "tests/support/fake_machine.h"

using namespace hone;
using namespace hone::decoder;

TEST_CASE("the times of a step name each part once, and their bytes are those of the step's floor") {
    const test::FakeMachine fakes;
    RunningModel model(test::small_options());
    const std::int64_t kv_len = 100;
    for (const std::int64_t sequences : {1, 4}) {
        const ChainTimes times = model.forward().chain_times(sequences, kv_len, 3);
        CHECK(times.step_us > 0);
        CHECK(times.idle_us > 0);
        CHECK(times.launches >= 3 + 7 * 2);  // of two layers, each part at least one
        CHECK(times.parts.size() == 10);     // no norms behind
        CHECK(std::ranges::adjacent_find(times.parts, std::ranges::greater_equal{},
                                         &ChainTimes::OfPart::part) == times.parts.end());
        std::int64_t bytes = 0;
        for (const ChainTimes::OfPart& part : times.parts) {
            CAPTURE(name(part.part));
            CHECK(part.us > 0);
            CHECK(part.us < times.step_us);
            bytes += part.bytes;
        }
        CHECK(bytes == model.floor_bytes(sequences, kv_len));
        const auto network = std::ranges::find(times.parts, Part::network, &ChainTimes::OfPart::part);
        REQUIRE(network != times.parts.end());
        CHECK(network->bytes == 2LL * 2 * 3 * 256 * 512);
    }
}
