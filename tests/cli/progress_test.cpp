// What a long run says of itself.
#include "cli/progress.h"

#include <doctest/doctest.h>

using namespace hone;
using namespace hone::cli;
using std::chrono::milliseconds;

TEST_CASE("a line of progress names the problem, the best so far and the time left") {
    tuner::Progress progress{
        .problems_done = 12, .problems_total = 84, .candidates_done = 340, .current = "rmsnorm rows=16"};
    CHECK(progress_line(progress, milliseconds(10'000)) ==
          "12/84 problems, 340 candidates, 34/s: rmsnorm rows=16");
    progress.best_us = 2.129;
    progress.left = milliseconds(44'600);
    CHECK(progress_line(progress, milliseconds(10'000)) ==
          "12/84 problems, 340 candidates, 34/s, about 45 s left: rmsnorm rows=16, best 2.129 us");
    progress.left = milliseconds(75'000);
    CHECK(progress_line(progress, milliseconds(10'000)).find("about 1 min 15 s left: ") != std::string::npos);
}

TEST_CASE("a rate tells the time left where every piece is alike, and nothing where it is not") {
    const tuner::Progress progress{.problems_done = 1,
                                   .problems_total = 4,
                                   .candidates_done = 100,
                                   .candidates_total = 400,
                                   .current = ""};
    CHECK(progress_line(progress, milliseconds(2'000),
                        {.problems = "layers", .candidates = "MiB", .are_alike = true}) ==
          "1/4 layers, 100 MiB, 50/s, about 6 s left");
    CHECK(progress_line(progress, milliseconds(2'000)) == "1/4 problems, 100 candidates, 50/s");
}
