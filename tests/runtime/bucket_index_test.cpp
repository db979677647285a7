#include "runtime/dispatch/bucket_index.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "kernel_templates/problem.h"

namespace hone::runtime {
namespace {

std::size_t by_search(const std::vector<std::int64_t>& edges, std::int64_t value) {
    return static_cast<std::size_t>(std::ranges::lower_bound(edges, value) - edges.begin());
}

TEST_CASE("every value up to the maximum finds the first edge that is not smaller") {
    for (const std::int64_t max : {1, 2, 3, 7, 8, 9, 4096, 5000}) {
        const std::vector<std::int64_t> edges = bucket_edges(max);
        const BucketIndex index(edges);
        REQUIRE(index.max() == max);
        for (std::int64_t value = 1; value <= max; ++value)
            REQUIRE(index.find(value) == by_search(edges, value));
    }
}

TEST_CASE("any ascending edges and any value in their range agree with a binary search") {
    const bool passed = rc::check([] {
        auto edges = *rc::gen::nonEmpty(rc::gen::unique<std::vector<std::int64_t>>(
            rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 40)));
        std::ranges::sort(edges);
        if (edges.size() > 255) edges.resize(255);
        const auto value = *rc::gen::inRange<std::int64_t>(1, edges.back() + 1);
        RC_ASSERT(BucketIndex(edges).find(value) == by_search(edges, value));
    });
    CHECK(passed);
}

TEST_CASE("the largest integer is a value like any other") {
    constexpr std::int64_t largest = INT64_MAX;
    const BucketIndex index(std::vector<std::int64_t>{1, 1024, largest});
    CHECK(index.find(1) == 0);
    CHECK(index.find(1025) == 2);
    CHECK(index.find(largest) == 2);
}

}  // namespace
}  // namespace hone::runtime
