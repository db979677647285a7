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

TEST_CASE("UTF-8 is taken as RFC 3629 gives it, up to both ends of each range") {
    const std::pair<std::string_view, std::size_t> sequences[] = {
        {"a", 1},
        {"\x7f", 1},
        {"\xc2\x80", 2},
        {"\xdf\xbf", 2},
        {"\xe0\xa0\x80", 3},
        {"\xed\x9f\xbf", 3},
        {"\xee\x80\x80", 3},
        {"\xef\xbf\xbf", 3},
        {"\xf0\x90\x80\x80", 4},
        {"\xf4\x8f\xbf\xbf", 4},
    };
    for (const auto& [sequence, length] : sequences) {
        CAPTURE(sequence);
        CHECK(utf8_length(sequence) == length);
        CHECK(utf8_length(std::string(sequence) + "z") == length);
        for (std::size_t cut = 1; cut < length; ++cut) CHECK(utf8_length(sequence.substr(0, cut)) == 0);
        for (std::size_t broken = 1; broken < length; ++broken) {
            std::string other(sequence);
            for (const char byte : {'\x7f', '\xc0'}) {
                other[broken] = byte;
                CHECK(utf8_length(other) == 0);
            }
        }
    }
    for (const std::string_view none :
         {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf",
          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
        CAPTURE(none);
        CHECK(utf8_length(none) == 0);
    }
}

TEST_CASE("only ASCII letters have a lower case") {
    CHECK(lower_case("AZaz09[@`{\xc3\x84") == "azaz09[@`{\xc3\x84");
}
