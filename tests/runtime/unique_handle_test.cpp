#include "runtime/system/unique_handle.h"

#include <doctest/doctest.h>

#include <type_traits>
#include <vector>

namespace hone::runtime {
namespace {

// A handle is a number; destroying it writes the number down.
struct NumberTraits {
    using Handle = int;
    static constexpr Handle none = -1;
    std::vector<int>* destroyed = nullptr;
    void destroy(Handle handle) const noexcept { destroyed->push_back(handle); }
};
using Number = UniqueHandle<NumberTraits>;

static_assert(!std::is_copy_constructible_v<Number>);
static_assert(std::is_nothrow_move_constructible_v<Number>);

TEST_CASE("a handle is destroyed once, at the end of its owner") {
    std::vector<int> destroyed;
    {
        const Number number(7, {&destroyed});
        CHECK(number.get() == 7);
        CHECK(static_cast<bool>(number));
    }
    CHECK(destroyed == std::vector{7});
}

TEST_CASE("a moved-from owner owns nothing") {
    std::vector<int> destroyed;
    {
        Number first(7, {&destroyed});
        const Number second = std::move(first);
        CHECK_FALSE(first);
        CHECK(second.get() == 7);
    }
    CHECK(destroyed == std::vector{7});
}

TEST_CASE("assignment destroys what the target held") {
    std::vector<int> destroyed;
    {
        Number first(1, {&destroyed});
        Number second(2, {&destroyed});
        first = std::move(second);
        CHECK(destroyed == std::vector{1});
        CHECK(first.get() == 2);
    }
    CHECK(destroyed == std::vector{1, 2});
}

TEST_CASE("assigning an owner to itself keeps its handle") {
    std::vector<int> destroyed;
    {
        Number number(3, {&destroyed});
        Number& same = number;
        number = std::move(same);
        CHECK(number.get() == 3);
        CHECK(destroyed.empty());
    }
    CHECK(destroyed == std::vector{3});
}

TEST_CASE("a released handle is the caller's to destroy") {
    std::vector<int> destroyed;
    {
        Number number(4, {&destroyed});
        CHECK(number.release() == 4);
        CHECK_FALSE(number);
    }
    CHECK(destroyed.empty());
}

TEST_CASE("an empty owner destroys nothing") {
    const Number number;
    CHECK_FALSE(number);
}

}  // namespace
}  // namespace hone::runtime
