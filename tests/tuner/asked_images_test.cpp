#include "tuner/search/asked_images.h"

#include <doctest/doctest.h>

#include "tests/tuner/made_up_measurer.h"

using namespace hone;
using namespace hone::tuner;
using hone::test::norm_problem;

TEST_CASE("a problem takes images that were asked for before its own, then those of races that have begun") {
    const DeviceTraits traits = test::made_up_device().traits;
    const auto space = ranked_space(norm_problem(64), traits);
    // Two that share no image.
    const Candidate one = space.front().candidate;
    const Candidate other = space.back().candidate;
    AskedImages asked(traits.arch());
    CHECK_FALSE(asked.has(norm_problem(64), one));
    asked.add(norm_problem(64), {one});
    CHECK(asked.has(norm_problem(64), one));
    CHECK(asked.has(norm_problem(128), one));
    CHECK_FALSE(asked.has(norm_problem(128), other));
    asked.add(norm_problem(128), {one, other});
    CHECK_FALSE(asked.has(norm_problem(64), other));  // it would be waited for
    CHECK(asked.has(norm_problem(256), other));
    asked.begin(norm_problem(128));
    CHECK(asked.has(norm_problem(64), other));
}
