#include "decoder/scheduling/page_pool.h"

#include <doctest/doctest.h>

#include <array>
#include <numeric>

#include "decoder/error.h"

using namespace hone::decoder;

namespace {

std::vector<int> take(PagePool& pool, int count) {
    std::vector<int> pages;
    for (int i = 0; i < count; ++i) pages.push_back(pool.take().value());
    return pages;
}

std::vector<int> numbers(int first, int count) {
    std::vector<int> list(static_cast<std::size_t>(count));
    std::iota(list.begin(), list.end(), first);
    return list;
}

/// All pages of a text at once.
void publish(PagePool& pool, const std::vector<int>& pages, const std::vector<int>& tokens) {
    PagePool::Published so_far;
    pool.publish(pages, tokens, so_far);
}

}  // namespace

TEST_CASE("pages are given out until all are in use, and come back") {
    PagePool pool(3, 4);
    const std::vector<int> pages = take(pool, 3);
    CHECK(pool.available() == 0);
    CHECK(pool.take() == std::nullopt);
    pool.release(pages);
    CHECK(pool.available() == 3);
    CHECK(pool.pages_for(0) == 0);
    CHECK(pool.pages_for(4) == 1);
    CHECK(pool.pages_for(5) == 2);
}

TEST_CASE("full pages are found by the text that they hold, from its beginning on") {
    PagePool pool(8, 2);
    const std::vector<int> pages = take(pool, 3);
    PagePool::Published so_far;
    pool.publish(pages, numbers(0, 5), so_far);  // the third is not full
    CHECK(so_far.pages == 2);
    CHECK(pool.is_known(pages[1]));
    CHECK_FALSE(pool.is_known(pages[2]));
    CHECK(pool.take_known(numbers(0, 5)) == std::vector{pages[0], pages[1]});
    CHECK(pool.take_known(numbers(0, 3)) == std::vector{pages[0]});
    CHECK(pool.take_known(std::vector{0, 1, 2, 9}) == std::vector{pages[0]});
    CHECK(pool.take_known(numbers(2, 4)).empty());  // the same tokens elsewhere in a text
    CHECK(pool.take_known(numbers(0, 1)).empty());
    CHECK(pool.users(pages[0]) == 4);
    CHECK(pool.users(pages[1]) == 2);
}

TEST_CASE("what a page holds is known until it is given out again, the longest unused first") {
    PagePool pool(4, 1);
    const std::vector<int> first = take(pool, 2);
    publish(pool, first, numbers(0, 2));
    pool.release(first);
    const std::vector<int> second = take(pool, 2);  // those that hold nothing
    publish(pool, second, numbers(10, 2));
    pool.release(second);
    CHECK(pool.available() == 4);
    const std::vector<int> known = pool.take_known(numbers(0, 2));
    CHECK(known == first);
    pool.release(known);              // the second ones are the longest unused now
    CHECK(pool.take() == second[1]);  // and of them the one that stands further back
    CHECK(pool.take() == second[0]);
    CHECK(pool.take_known(numbers(10, 2)).empty());
    CHECK(pool.take_known(numbers(0, 2)) == first);
}

TEST_CASE("two that computed the same at once keep their pages, and what follows is found behind either") {
    PagePool pool(6, 1);
    const std::vector<int> one = take(pool, 2);
    const std::vector<int> other = take(pool, 3);
    publish(pool, one, numbers(0, 2));
    PagePool::Published so_far;
    pool.publish(other, numbers(0, 1), so_far);  // as the text grows
    pool.publish(other, numbers(0, 3), so_far);
    CHECK_FALSE(pool.is_known(other[0]));
    CHECK(pool.is_known(other[2]));
    CHECK(pool.take_known(numbers(0, 3)) == std::vector{one[0], one[1], other[2]});
    pool.publish(other, numbers(0, 3), so_far);  // nothing new
    CHECK_FALSE(pool.is_known(other[0]));
}

TEST_CASE("a text is found by its own pages when those of another one that held the same are given out") {
    PagePool pool(4, 1);
    const std::vector<int> one = take(pool, 2);
    std::vector<int> other = take(pool, 1);
    publish(pool, one, numbers(0, 2));
    PagePool::Published so_far;
    pool.publish(other, numbers(0, 1), so_far);
    pool.release(one);
    other.push_back(take(pool, 3).front());
    CHECK(pool.is_known(other[0]));
    pool.publish(other, numbers(0, 2), so_far);
    CHECK(pool.take_known(numbers(0, 2)) == other);
}

TEST_CASE("a page is given out early whose like is found in its place") {
    PagePool pool(2, 1);
    const std::vector<int> pages = take(pool, 2);
    publish(pool, {pages[0]}, numbers(0, 1));
    publish(pool, {pages[1]}, numbers(0, 1));
    pool.release({{pages[0]}});
    pool.release({{pages[1]}});
    CHECK(pool.take() == pages[1]);
    CHECK(pool.take_known(numbers(0, 1)) == std::vector{pages[0]});
}

TEST_CASE("a text goes on behind the pages that it has found") {
    PagePool pool(6, 1);
    const std::vector<int> one = take(pool, 2);
    publish(pool, one, numbers(0, 2));
    std::vector<int> other = pool.take_known(numbers(0, 2));
    PagePool::Published so_far = pool.published(other);
    CHECK(so_far.pages == 2);
    other.push_back(pool.take().value());
    pool.publish(other, numbers(0, 3), so_far);
    CHECK(pool.take_known(numbers(0, 3)) == other);
    CHECK(pool.published({}).pages == 0);
}

TEST_CASE("a pool without pages is refused") {
    CHECK_THROWS_WITH_AS(PagePool(0, 16), doctest::Contains("0 pages of 16 tokens"), DecoderError);
    CHECK_THROWS_AS(PagePool(4, 0), DecoderError);
}
