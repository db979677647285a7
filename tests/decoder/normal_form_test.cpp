#include "decoder/text/normal_form.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>
#include <utf8proc.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "decoder/text/utf8.h"

using namespace hone::decoder;

namespace {

std::string some_text() {
    const auto code_points = *rc::gen::container<std::vector<int>>(
        rc::gen::element(0x41, 0x65, 0x300, 0x301, 0x323, 0x315, 0x5AE, 0x1100, 0x1161, 0x11A8, 0xAC00,
                         0x212B, 0xFB01, 0xBD, 0x958, 0x1D15E, 0x3000));
    std::string text;
    for (const int code_point : code_points) append_code_point(text, static_cast<char32_t>(code_point));
    return text;
}

std::string by_library(const std::string& text, utf8proc_uint8_t* (*form)(const utf8proc_uint8_t*)) {
    utf8proc_uint8_t* const made = form(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str()));
    std::string out = reinterpret_cast<const char*>(made);
    std::free(made);
    return out;
}

}  // namespace

TEST_CASE("normal forms of known characters") {
    CHECK(normalized("e\xCC\x81", NormalForm::nfc) == "\xC3\xA9");
    CHECK(normalized("\xC3\xA9", NormalForm::nfd) == "e\xCC\x81");
    CHECK(normalized("\xEF\xAC\x81", NormalForm::nfkc) == "fi");
    CHECK(normalized("\xEF\xAC\x81", NormalForm::nfc) == "\xEF\xAC\x81");
    CHECK(normalized("\xE1\x84\x80\xE1\x85\xA1", NormalForm::nfc) == "\xEA\xB0\x80");  // Hangul
    CHECK(normalized("\xC2\xBD", NormalForm::nfkd) ==
          "1\xE2\x81\x84"
          "2");
    CHECK(normalized(std::string("a\0b", 3), NormalForm::nfc) == std::string("a\0b", 3));
}

TEST_CASE("forms are those that utf8proc makes by itself") {
    CHECK(rc::check([] {
        const std::string text = some_text();
        RC_ASSERT(normalized(text, NormalForm::nfc) == by_library(text, utf8proc_NFC));
        RC_ASSERT(normalized(text, NormalForm::nfd) == by_library(text, utf8proc_NFD));
        RC_ASSERT(normalized(text, NormalForm::nfkc) == by_library(text, utf8proc_NFKC));
        RC_ASSERT(normalized(text, NormalForm::nfkd) == by_library(text, utf8proc_NFKD));
    }));
}

TEST_CASE("a long run of marks takes no time that grows with its square") {
    std::string text = "a";
    for (int i = 0; i < 200'000; ++i) text += "\xCC\x81\xCC\xA3";  // classes 230 and 220
    const auto start = std::chrono::steady_clock::now();
    const std::string out = normalized(text, NormalForm::nfc);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
    CHECK(out.starts_with(
        "\xE1\xBA\xA1\xCC\xA3"));  // a with the dot below, and the other dots before all acutes
    CHECK(out.ends_with("\xCC\x81\xCC\x81"));
}
