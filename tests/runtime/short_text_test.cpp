#include "runtime/system/short_text.h"

#include <doctest/doctest.h>

using hone::runtime::escape_controls;
using hone::runtime::with_short_words;

TEST_CASE("a message whose values are short stays as it is, however long it is in all") {
    std::string allowed = "no 'value' (did you mean 'values'?): allowed is";
    for (int i = 0; i < 500; ++i) allowed += " word" + std::to_string(i) + ",\n";
    CHECK(with_short_words(allowed) == allowed);
    CHECK(with_short_words("it's the user's") == "it's the user's");
    CHECK(with_short_words("").empty());
    const std::string between = "it's '" + std::string(150, 'a') + "' and " + allowed + " 'b'";
    CHECK(with_short_words(between) == between);
}

TEST_CASE("a long value is shown by its ends and its length, with what stands around it") {
    const std::string value = "begin" + std::string(1'000'000, 'x') + "end";
    const std::string head = "begin" + std::string(135, 'x');
    std::string tail(57, 'x');
    tail += "end";
    CHECK(with_short_words("key=" + value + ": allowed are 1, 2") ==
          "key=" + head.substr(0, 136) + "..." + tail + " (1000012 bytes): allowed are 1, 2");
    CHECK(with_short_words("no '" + value + "' (allowed: a)").starts_with("no 'begin"));
    CHECK(with_short_words("no '" + value + "' (allowed: a)").ends_with("end' (1000010 bytes) (allowed: a)"));
    CHECK(with_short_words(value) == head + "..." + tail + " (1000008 bytes)");
}

TEST_CASE("a long value with white space is one value where quotes hold it") {
    std::string value;
    for (int i = 0; i < 100'000; ++i) value += "ab ";
    const std::string text = with_short_words("no \"" + value + "\": allowed is x");
    CHECK(text.size() < 300);
    CHECK(text.ends_with("(300002 bytes): allowed is x"));
}

TEST_CASE("no message is longer than its limit, and no sequence of UTF-8 is cut") {
    std::string words;
    for (int i = 0; i < 100'000; ++i) words += "ab ";
    CHECK(with_short_words(words).size() <= hone::runtime::max_message_bytes);
    for (std::size_t shift = 0; shift < 4; ++shift) {
        std::string value(shift, 'a');
        for (int i = 0; i < 1000; ++i) value += "\xF0\x9F\x98\x80";
        const std::string text = with_short_words(value);
        CHECK((text.find("...") - shift) % 4 == 0);
        CHECK((text.find(" (") - text.find("...") - 3) % 4 == 0);
    }
}

TEST_CASE("control characters and bytes that are no UTF-8 are escaped, text is not") {
    CHECK(escape_controls("plain, caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") ==
          "plain, caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    CHECK(escape_controls("\x1b[2J\x07\r\n\t\x7f") == "\\x1b[2J\\x07\\x0d\\x0a\\x09\\x7f");
    CHECK(escape_controls("a\nb", true) == "a\nb");
    CHECK(hone::runtime::escape_message("a\nwarning: b\r\n\nc") == "a\n  warning: b\\x0d\n  \n  c");
    CHECK(escape_controls("\xc2\x9b") == "\\xc2\\x9b");           // C1: a one-byte CSI
    CHECK(escape_controls("\xc0\xaf") == "\\xc0\\xaf");           // overlong
    CHECK(escape_controls("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // surrogate
    CHECK(escape_controls("\xe2\x82") == "\\xe2\\x82");           // cut off
}
