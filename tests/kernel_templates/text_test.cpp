#include "kernel_templates/text.h"

#include <doctest/doctest.h>

using namespace hone;

TEST_CASE(
    "the nearest name is found through a swap, a missing and a surplus letter, and not for something else") {
    const std::vector<std::string_view> names{"rmsnorm", "layernorm", "linear"};
    CHECK(nearest_name("rmsnrom", names) == "rmsnorm");
    CHECK(nearest_name("layernor", names) == "layernorm");
    CHECK(nearest_name("linearr", names) == "linear");
    CHECK(nearest_name("attention_prefill", names).empty());
    CHECK(nearest_name(std::string(100000, 'x'), names).empty());
}

TEST_CASE("integers are decimal, whole and in range") {
    CHECK(parse_integer("-12") == -12);
    CHECK_FALSE(parse_integer(""));
    CHECK_FALSE(parse_integer(" 1"));
    CHECK_FALSE(parse_integer("1 "));
    CHECK_FALSE(parse_integer("1e3"));
    CHECK_FALSE(parse_integer("9223372036854775808"));
}

TEST_CASE("words are split at blanks, however many") {
    CHECK(split_first_word("  a  b c") == std::pair<std::string_view, std::string_view>{"a", "b c"});
    CHECK(split_first_word("") == std::pair<std::string_view, std::string_view>{"", ""});
    const auto pairs = parse_key_values("  a=1   b==2 ", nullptr);
    REQUIRE(pairs);
    REQUIRE(pairs->size() == 2);
    CHECK((*pairs)[1].value == "=2");
}
