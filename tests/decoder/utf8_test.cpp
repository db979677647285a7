#include "decoder/text/utf8.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

using namespace hone::decoder;

namespace {

constexpr const char* gap = "\xEF\xBF\xBD";

std::string gaps(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += gap;
    return text;
}

}  // namespace

TEST_CASE("a code point is written and read again") {
    for (char32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
        if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
        std::string text;
        append_code_point(text, code_point);
        if (first_length(text) != text.size() || first_code_point(text) != code_point || !is_utf8(text))
            FAIL_CHECK(static_cast<unsigned>(code_point));
    }
}

TEST_CASE("what is no character is one U+FFFD for the longest beginning of one") {
    CHECK(lossy_utf8("a\x80z") == "a" + gaps(1) + "z");
    CHECK(lossy_utf8("\xC0\xAF") == gaps(2));             // overlong
    CHECK(lossy_utf8("\xED\xA0\x80") == gaps(3));         // a surrogate
    CHECK(lossy_utf8("\xF4\x90\x80\x80") == gaps(4));     // above U+10FFFF
    CHECK(lossy_utf8("\xF0\x9F\x98") == gaps(1));         // cut
    CHECK(lossy_utf8("\xF0\x9F\x98x") == gaps(1) + "x");  // broken behind three bytes
    CHECK(lossy_utf8("\xE2\x82\xE2\x82\xAC") == gaps(1) + "\xE2\x82\xAC");
    CHECK(lossy_utf8("\xFF\xFE") == gaps(2));
}

TEST_CASE("bytes in pieces give the text that they give at once") {
    CHECK(rc::check([] {
        const auto bytes = *rc::gen::container<std::string>(
            rc::gen::map(rc::gen::element(0x41, 0x80, 0x9F, 0xA0, 0xBF, 0xC3, 0xE2, 0xED, 0xF0, 0xF4, 0xFF),
                         [](int byte) { return static_cast<char>(static_cast<unsigned char>(byte)); }));
        Utf8Stream stream;
        std::string text;
        for (const char byte : bytes) text += stream.push(std::string(1, byte));
        text += stream.finish();
        RC_ASSERT(text == lossy_utf8(bytes));
        RC_ASSERT(is_utf8(text));
        RC_ASSERT((text == bytes) == is_utf8(bytes));
    }));
}

TEST_CASE("a character comes out with its last byte") {
    Utf8Stream stream;
    CHECK(stream.push("a\xF0\x9F") == "a");
    CHECK(stream.push("\x98") == "");
    CHECK(stream.push("\x80"
                      "b") ==
          "\xF0\x9F\x98\x80"
          "b");
    CHECK(stream.finish() == "");
}

TEST_CASE("characters are counted, and not their bytes") {
    CHECK(count_characters("") == 0);
    CHECK(count_characters("abc") == 3);
    CHECK(count_characters("w\u00f6\u6c34\U0001F389") == 4);
}
