#include "runtime/dispatch/bucket_grid.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "kernel_templates/family.h"

namespace hone::runtime {
namespace {

// Two dynamic fields around a free one.
constexpr Field fields[] = {{.name = "heads", .max = 64},
                            {.name = "batch", .kind = Field::Kind::dynamic, .max = 1024},
                            {.name = "room", .kind = Field::Kind::free, .max = 1 << 20},
                            {.name = "length", .kind = Field::Kind::dynamic, .max = 1 << 20}};
const Family family{.name = "grid", .fields = fields};

Problem largest(std::int64_t batch, std::int64_t room, std::int64_t length) {
    return {&family, {8, batch, room, length}};
}

TEST_CASE("every size up to the maxima lies between the first and the last problem of its cell") {
    const bool passed = rc::check([] {
        const auto batch = *rc::gen::inRange<std::int64_t>(1, 100);
        const auto length = *rc::gen::inRange<std::int64_t>(1, 5000);
        const BucketGrid grid(largest(batch, 700, length));
        const Sizes sizes{*rc::gen::inRange<std::int64_t>(1, batch + 1),
                          *rc::gen::inRange<std::int64_t>(0, 701),
                          *rc::gen::inRange<std::int64_t>(1, length + 1)};
        RC_ASSERT(grid.takes(sizes));
        const std::size_t cell = grid.find(sizes);
        RC_ASSERT(cell < grid.cells());
        const Sizes first = sizes_of(grid.first(cell));
        const Sizes last = sizes_of(grid.last(cell));
        for (const std::size_t dynamic : {0, 2})
            RC_ASSERT(first[dynamic] <= sizes[dynamic] && sizes[dynamic] <= last[dynamic]);
        RC_ASSERT(last[1] == 700);
        RC_ASSERT(grid.find(first) == cell);
        RC_ASSERT(grid.find(last) == cell);
        RC_ASSERT(*grid.largest_below(cell, sizes) == grid.problem(sizes));
    });
    CHECK(passed);
}

TEST_CASE("cells tile the sizes, the last field's buckets side by side") {
    const BucketGrid grid(largest(3, 1, 8));
    REQUIRE(grid.cells() == 3 * 4);
    CHECK(sizes_of(grid.first(0)) == Sizes{1, 1, 1});
    CHECK(sizes_of(grid.last(3)) == Sizes{1, 1, 8});
    CHECK(sizes_of(grid.first(11)) == Sizes{3, 1, 5});
    CHECK(sizes_of(grid.last(11)) == Sizes{3, 1, 8});
}

TEST_CASE("cells that no call needs are left out, and smaller sizes belong to the first that is there") {
    const BucketGrid grid(largest(3, 1, 100), {0, 0, 17});
    REQUIRE(grid.cells() == 3 * 3);  // lengths up to 32, 64 and 100
    CHECK(sizes_of(grid.last(0)) == Sizes{1, 1, 32});
    CHECK(sizes_of(grid.last(8)) == Sizes{3, 1, 100});
    CHECK(grid.find({1, 0, 2}) == 0);
    CHECK(grid.find({3, 0, 65}) == 8);
    CHECK(BucketGrid(largest(3, 1, 10), {0, 0, 17}).cells() == 3);
}

TEST_CASE("a finer field has buckets up to the sizes that were measured between two usual ones") {
    constexpr Field tokens[] = {
        {.name = "tokens", .kind = Field::Kind::dynamic, .max = 1 << 20, .finer = true}};
    const Family finer{.name = "product", .fields = tokens};
    const std::vector<std::int64_t> measured{192, 320, 384, 768};
    const BucketGrid grid(Problem{&finer, {600}}, {100}, measured);
    std::vector<std::int64_t> edges;
    for (std::size_t i = 0; i < grid.cells(); ++i) edges.push_back(grid.last(i)[0]);
    CHECK(edges == std::vector<std::int64_t>{128, 192, 256, 320, 384, 512, 600});
    for (std::int64_t size = 1; size <= 600; ++size) {
        const std::size_t cell = grid.find({size});
        CHECK(edges[cell] >= size);
        CHECK((cell == 0 || edges[cell - 1] < size));
    }
    CHECK(BucketGrid(Problem{&finer, {384}}, {}, measured).cells() ==
          BucketGrid(Problem{&finer, {384}}).cells() + 2);
    CHECK(BucketGrid(largest(3, 1, 600), {}, measured).cells() == BucketGrid(largest(3, 1, 600)).cells());
}

TEST_CASE("sizes that were not prepared are refused by name") {
    const BucketGrid grid(largest(4, 10, 100));
    CHECK(grid.takes({0, 0, 0}));
    CHECK(grid.takes({4, 10, 100}));
    CHECK_FALSE(grid.takes({4, 11, 100}));
    CHECK_FALSE(grid.takes({-1, 1, 1}));
    CHECK(grid.why_not({5, 1, 1}) == "batch is 5; allowed: 0 to 4, as prepared");
    CHECK(grid.why_not({1, 1, 101}) == "length is 101; allowed: 0 to 100, as prepared");
    CHECK(grid.why_not({1, 1, 1}).empty());
}

TEST_CASE("there is nothing to do where a dynamic size is 0") {
    const BucketGrid grid(largest(4, 10, 100));
    CHECK(grid.nothing_in({0, 5, 7}));
    CHECK(grid.nothing_in({1, 5, 0}));
    CHECK_FALSE(grid.nothing_in({1, 0, 7}));
    CHECK_FALSE(grid.largest_below(grid.cells() - 1, {1, 1, 1}));
}

}  // namespace
}  // namespace hone::runtime
