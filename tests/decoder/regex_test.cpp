#include "decoder/text/regex.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "decoder/error.h"
#include "decoder/text/characters.h"
#include "decoder/text/regex_syntax.h"
#include "decoder/text/utf8.h"

using namespace hone::decoder;

namespace {

std::vector<std::string> found(const char* pattern, std::string_view text) {
    std::vector<Span> matches;
    Regex(pattern).find_all(text, matches);
    std::vector<std::string> out;
    for (const Span& match : matches) out.emplace_back(text.substr(match.begin, match.end - match.begin));
    return out;
}

bool matches(const Regex& regex, char32_t code_point) {
    std::string text;
    append_code_point(text, code_point);
    std::vector<Span> spans;
    regex.find_all(text, spans);
    return !spans.empty();
}

std::string refusal(std::string_view pattern) {
    try {
        static_cast<void>(Regex(pattern));
        return "none";
    } catch (const DecoderError& error) {
        return error.what();
    }
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("matches from left to right") {
    CHECK(found(R"(\p{N}{1,3})", "12345 6") == Texts{"123", "45", "6"});
    CHECK(found(R"((?i:'s|'t))", "it'S 't") == Texts{"'S", "'t"});
    CHECK(found(R"(\s+(?!\S)|\s+)", "a   b") == Texts{"  ", " "});
    CHECK(found(R"(a*)", "aab") == Texts{"aa", ""});  // none right behind "aa", one at the end
    CHECK(found("x", "") == Texts{});
    CHECK(found("", "ab") == Texts{"", "", ""});
}

TEST_CASE("white space is Unicode's White_Space, in a set and outside, and its complement is the rest") {
    const Regex plain(R"(\s)");
    const Regex in_set(R"([\s])");
    const Regex complement(R"(\S)");
    const Regex complement_in_set(R"([\S])");
    const Regex negated(R"([^\s])");
    for (char32_t code_point = 0; code_point < 0x3100; ++code_point) {
        const bool space = is_white_space(code_point);
        const bool right = matches(plain, code_point) == space && matches(in_set, code_point) == space &&
                           matches(complement, code_point) != space &&
                           matches(complement_in_set, code_point) != space &&
                           matches(negated, code_point) != space;
        if (!right) FAIL_CHECK(static_cast<unsigned>(code_point));
    }
    CHECK(is_white_space(0x85));
    CHECK_FALSE(is_white_space(0x180E));
}

TEST_CASE("what both syntaxes write alike and mean differently is translated") {
    CHECK(pcre2_syntax(R"(\p{Han}\P{^L}\p{Letter}\p{Lu})") == R"(\p{sc:Han}\p{L}\p{L}\p{Lu})");
    CHECK(pcre2_syntax(R"(\v[\v]\u00e9)") == R"(\x{B}[\x{B}]\x{00e9})");
    CHECK(pcre2_syntax(R"(\.\-\/[\]\\])") == R"(\.\-\/[\]\\])");
    CHECK(found("[\xE4\xB8\x80-\xE9\xBE\xA5]+",
                "a\xE4\xBD\xA0\xE5\xA5\xBD"
                "b") == Texts{"\xE4\xBD\xA0\xE5\xA5\xBD"});
    CHECK(found("{|a{", "{a{") == Texts{"{", "a{"});
}

TEST_CASE("digits are decimal") {
    CHECK(found(R"(\d)", "1\xC2\xBD") == Texts{"1"});
    CHECK(found(R"([^\D])", "1\xC2\xBD") == Texts{"1"});
}

TEST_CASE("what is not understood is refused by name") {
    CHECK(refusal(R"(a\w)") == R"(regular expression 'a\w': the escape '\w' (byte 1) is not understood)");
    for (const char* pattern :
         {R"(\b)",          R"(\h)",    R"(\1)",         R"(\K)",     R"(\C)",     R"(\xff)",    R"(\u12)",
          R"(\pL)",         R"(\p{L)",  R"(\p{})",       R"([a[b]])", R"([a&&b])", R"([]a])",    R"(a{2,3}+)",
          R"(a{,3})",       R"(a{2}?)", R"((?<name>a))", R"((?x)a)",  R"(a(?i)b)", R"((*UTF)a)", R"((?R))",
          R"([[:alpha:]])", "\\"})
        CHECK_MESSAGE(refusal(pattern).ends_with("is not understood"), pattern);
    CHECK(refusal("(a").starts_with("regular expression '(a': missing closing parenthesis"));
    CHECK(refusal(R"(\p{Klingon})").find("unknown property") != std::string::npos);
    CHECK(refusal("\xFF").starts_with("regular expression"));
    CHECK(refusal(std::string(70'000, 'a')).find("the most that is read is 65536") != std::string::npos);
    CHECK(refusal("((a{1000}){1000}){1000}") != "none");
}

TEST_CASE("a pattern that would search for ever gives up") {
    CHECK_THROWS_AS(found("(a|aa|aaa)+$x|(a*)*b", std::string(60, 'a')), DecoderError);
    // Each match is short, and each looks ahead to the end of the text.
    CHECK_THROWS_WITH_AS(found("(?=a+[bc])a", std::string(1'050'000, 'a') + 'b'),
                         doctest::Contains("takes more than 1.3 s for a text of 1050001 bytes"),
                         DecoderError);
    CHECK(found("(?=a+[bc])a", std::string(1000, 'a') + 'b').size() == 1000);
}

TEST_CASE("a very long run is one match") {
    const std::string spaces(4'000'000, ' ');
    CHECK(found(R"(\s*[\r\n]+|\s+(?!\S)|\s+)", spaces).size() == 1);
    CHECK(found(R"([^\r\n\p{L}\p{N}]?\p{L}+)", std::string(4'000'000, 'a')).size() == 1);
}
