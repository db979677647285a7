#include "decoder/scheduling/page_pool.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

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
    CHECK(pool.is_known(pages[1]));  // in use: found without taking a page from those that are not
    pool.release({{pages[1]}});
    CHECK(pool.take() == pages[1]);
    CHECK(pool.take_known(numbers(0, 1)) == std::vector{pages[0]});
}

TEST_CASE("a text that was used lately through a page's like is as young as if the page had been") {
    PagePool pool(3, 1);
    const std::vector<int> pages = take(pool, 3);
    publish(pool, {pages[0]}, numbers(0, 1));
    publish(pool, {pages[1]}, numbers(0, 1));
    publish(pool, {pages[2]}, numbers(5, 1));
    pool.release({{pages[0]}});
    pool.release({{pages[2]}});
    pool.release({{pages[1]}});
    CHECK(pool.take() == pages[1]);
    CHECK(pool.take() == pages[2]);
    CHECK(pool.take_known(numbers(0, 1)) == std::vector{pages[0]});
}

TEST_CASE("a page that is computed again while its like is idle has that given out first") {
    PagePool pool(3, 1);
    const std::vector<int> pages = take(pool, 3);
    publish(pool, {pages[0]}, numbers(5, 1));
    publish(pool, {pages[1]}, numbers(0, 1));
    pool.release({{pages[0]}});
    pool.release({{pages[1]}});
    publish(pool, {pages[2]}, numbers(0, 1));
    CHECK(pool.take_known(numbers(0, 1)) == std::vector{pages[2]});
    CHECK(pool.take() == pages[1]);
    CHECK(pool.take_known(numbers(5, 1)) == std::vector{pages[0]});
}

namespace {

using Text = std::vector<int>;

/// Texts of two letters that come, are computed page by page, and go, on a pool, with what has to hold of it
/// worked out the slow way: by what each page holds.
class Traffic {
  public:
    Traffic(int pages, int page_size)
        : pool_(pages, page_size), held_(static_cast<std::size_t>(pages)), page_size_(page_size) {}

    void come(const Text& tokens) {
        const std::size_t known = std::ranges::count_if(
            beginnings_of(tokens), [&](const Text& text) { return !holders(text).empty(); });
        std::vector<std::pair<Text, bool>> wanted;  // whether a page in use holds it
        for (const Text& text : beginnings_of(tokens)) wanted.emplace_back(text, is_used(text));
        const std::vector<int> users = users_now();
        Live live{.tokens = tokens, .pages = pool_.take_known(tokens), .so_far = {}};
        RC_ASSERT(live.pages.size() == known);
        for (std::size_t i = 0; i < live.pages.size(); ++i) {
            const auto page = static_cast<std::size_t>(live.pages[i]);
            RC_ASSERT(held_[page] == wanted[i].first);
            RC_ASSERT((users[page] > 0) == wanted[i].second);
        }
        live.so_far = pool_.published(live.pages);
        live_.push_back(std::move(live));
    }

    /// Takes its next page, where there is one.
    void grow(std::size_t text) {
        Live& live = live_[text % live_.size()];
        if (live.pages.size() == beginnings_of(live.tokens).size()) return;
        const std::vector<int> first = given_out_next();
        const std::optional<int> page = pool_.take();
        RC_ASSERT(page.has_value() == !first.empty());
        if (!page) return;
        RC_ASSERT(std::ranges::count(first, *page) == 1);
        held_[static_cast<std::size_t>(*page)].clear();
        live.pages.push_back(*page);
    }

    void compute(std::size_t text) {
        Live& live = live_[text % live_.size()];
        const std::vector<Text> beginnings = beginnings_of(live.tokens);
        const std::size_t before = live.so_far.pages;
        pool_.publish(live.pages, live.tokens, live.so_far);
        for (std::size_t i = before; i < live.pages.size(); ++i)
            held_[static_cast<std::size_t>(live.pages[i])] = beginnings[i];
    }

    void go(std::size_t text) {
        const auto one = live_.begin() + static_cast<std::ptrdiff_t>(text % live_.size());
        pool_.release(one->pages);
        std::vector<int> pages = std::exchange(one->pages, {});
        live_.erase(one);
        for (auto page = pages.rbegin(); page != pages.rend(); ++page) {
            const Text& held = held_[static_cast<std::size_t>(*page)];
            if (!held.empty() && !is_used(held)) unused_since_[held] = ++now_;
        }
    }

    [[nodiscard]] bool empty() const { return live_.empty(); }

    void check() const {
        int idle = 0;
        for (int page = 0; page < pool_.size(); ++page) {
            idle += pool_.users(page) == 0 ? 1 : 0;
            const Text& held = held_[static_cast<std::size_t>(page)];
            if (held.empty()) RC_ASSERT(!pool_.is_known(page));
        }
        RC_ASSERT(idle == pool_.available());
        for (const Text& held : held_) {
            if (held.empty()) continue;
            const std::vector<int> all = holders(held);
            RC_ASSERT(std::ranges::count_if(all, [&](int page) { return pool_.is_known(page); }) == 1);
            // What stands behind a page that is gone could not be found any more.
            for (const Text& beginning : beginnings_of(held)) RC_ASSERT(!holders(beginning).empty());
        }
    }

  private:
    struct Live {
        Text tokens;
        std::vector<int> pages;
        PagePool::Published so_far;
    };

    [[nodiscard]] std::vector<Text> beginnings_of(const Text& tokens) const {
        std::vector<Text> all;
        for (auto size = page_size_; size <= std::ssize(tokens); size += page_size_)
            all.emplace_back(tokens.begin(), tokens.begin() + size);
        return all;
    }
    [[nodiscard]] std::vector<int> holders(const Text& text) const {
        std::vector<int> pages;
        for (int page = 0; page < pool_.size(); ++page)
            if (held_[static_cast<std::size_t>(page)] == text) pages.push_back(page);
        return pages;
    }
    [[nodiscard]] bool is_used(const Text& text) const {
        return std::ranges::any_of(holders(text), [&](int page) { return pool_.users(page) > 0; });
    }
    [[nodiscard]] std::vector<int> users_now() const {
        std::vector<int> users;
        for (int page = 0; page < pool_.size(); ++page) users.push_back(pool_.users(page));
        return users;
    }
    /// Those of which one has to be given out: that hold nothing, or what another page holds, too; else what
    /// has been unused the longest.
    [[nodiscard]] std::vector<int> given_out_next() const {
        std::vector<int> free;
        std::map<std::uint64_t, int> by_age;
        for (int page = 0; page < pool_.size(); ++page) {
            if (pool_.users(page) > 0) continue;
            const Text& held = held_[static_cast<std::size_t>(page)];
            if (held.empty() || !pool_.is_known(page)) {
                free.push_back(page);
            } else {
                by_age[unused_since_.at(held)] = page;
            }
        }
        if (free.empty() && !by_age.empty()) free.push_back(by_age.begin()->second);
        return free;
    }

    PagePool pool_;
    std::vector<Text> held_;  ///< of each page all tokens up to its last; empty: it holds nothing that counts
    std::map<Text, std::uint64_t> unused_since_;
    std::vector<Live> live_;
    std::uint64_t now_ = 0;
    std::ptrdiff_t page_size_;
};

}  // namespace

TEST_CASE("whatever texts come and go, what is known is lost last, and of that what was unused the longest") {
    CHECK(rc::check([] {
        const int page_size = *rc::gen::inRange(1, 3);
        Traffic traffic(*rc::gen::inRange(1, 9), page_size);
        const auto steps = *rc::gen::container<std::vector<std::pair<int, std::size_t>>>(
            rc::gen::pair(rc::gen::inRange(0, 8), rc::gen::inRange<std::size_t>(0, 64)));
        for (const auto& [what, which] : steps) {
            if (what == 0 || traffic.empty()) {
                Text tokens(static_cast<std::size_t>(page_size) * (1 + which % 4));
                for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = (which >> (i % 6)) & 1;
                traffic.come(tokens);
            } else if (what < 4) {
                traffic.grow(which);
            } else if (what < 6) {
                traffic.compute(which);
            } else {
                traffic.go(which);
            }
            traffic.check();
        }
    }));
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
