// Ids and text against those of Hugging Face's tokenizers, and rules that hold for every text.
// Starts threads: the thread sanitizer runs this file, too.
#include "decoder/tokenizer/tokenizer.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "decoder/error.h"
#include "decoder/text/utf8.h"
#include "runtime/system/text_file.h"
#include "tests/decoder/lines.h"
#include "tests/decoder/support.h"

using namespace hone::decoder;
using hone::test::cases_of;
using hone::test::data_folder;
using hone::test::IdHash;
using hone::test::json_of;
using hone::test::line_count;
using hone::test::Lines;
using hone::test::lines_a_hash;

namespace {

using Ids = std::vector<int>;

constexpr std::array byte_level{"gpt2", "llama3", "smollm"};  // qwen and tekken normalize, prefix_space adds
constexpr std::array others{"qwen",         "tekken",    "prefix_space", "llama2",
                            "llama2_first", "metaspace", "gemma",        "phi3"};

std::vector<std::string> all_kinds() {
    std::vector<std::string> kinds(byte_level.begin(), byte_level.end());
    kinds.insert(kinds.end(), others.begin(), others.end());
    return kinds;
}

std::string streamed(const Tokenizer& tokenizer, const Ids& ids, DecodeOptions options) {
    TextStream stream = tokenizer.stream(options);
    std::string text;
    for (const int id : ids) {
        text += stream.push(id);
        REQUIRE(is_utf8(text));
    }
    return text += stream.finish();
}

void compare(const Tokenizer& tokenizer, const nlohmann::json& expected) {
    const auto text = expected.at("text").get<std::string>();
    CAPTURE(text);
    const Ids ids = tokenizer.encode(text);
    CHECK(ids == expected.at("ids").get<Ids>());
    CHECK(tokenizer.encode(text, {.add_special_tokens = false, .parse_special_tokens = false}) ==
          expected.at("plain").get<Ids>());
    const DecodeOptions with_special{.skip_special_tokens = false};
    CHECK(tokenizer.decode(ids, with_special) == expected.at("decoded").get<std::string>());
    CHECK(tokenizer.decode(ids) == expected.at("skipped").get<std::string>());
    CHECK(streamed(tokenizer, ids, with_special) == expected.at("decoded").get<std::string>());
    Ids half;
    for (std::size_t i = 0; i < ids.size(); i += 2) half.push_back(ids[i]);
    CHECK(tokenizer.decode(half, with_special) == expected.at("half").get<std::string>());
}

std::string drawn_text() {
    const auto code_points = *rc::gen::container<std::vector<int>>(rc::gen::element(
        0x20, 0x20, 0x0A, 0x61, 0x65, 0x74, 0x31, 0x27, 0xE9, 0x301, 0x430, 0x4E2D, 0x1F600, 0x3C, 0x0));
    std::string text;
    for (const int code_point : code_points) append_code_point(text, static_cast<char32_t>(code_point));
    return text;
}

Ids drawn_ids(const Tokenizer& tokenizer) {
    return *rc::gen::container<Ids>(rc::gen::inRange(-1, tokenizer.end_id() + 2));
}

}  // namespace

TEST_CASE("ids and text are those of Hugging Face's tokenizers") {
    for (const std::string& kind : all_kinds()) {
        CAPTURE(kind);
        const Tokenizer tokenizer = Tokenizer::load(data_folder(kind));
        for (const nlohmann::json& expected : cases_of(kind)) compare(tokenizer, expected);
    }
}

TEST_CASE("ids of ten thousand lines in many scripts are those of Hugging Face's tokenizers") {
    const nlohmann::json expected = json_of(data_folder("lines.json"));
    for (const std::string& kind : all_kinds()) {
        CAPTURE(kind);
        const Tokenizer tokenizer = Tokenizer::load(data_folder(kind));
        Lines lines;
        std::vector<std::string> hashes;
        for (int hash = 0; hash < line_count / lines_a_hash; ++hash) {
            IdHash ids;
            for (int i = 0; i < lines_a_hash; ++i) ids.add(tokenizer.encode(lines.next()));
            hashes.push_back(fmt::format("{:08x}", ids.value()));
        }
        CHECK(hashes == expected.at(kind).get<std::vector<std::string>>());
    }
}

TEST_CASE("at byte level every text comes back") {
    for (const char* const kind : byte_level) {
        const Tokenizer tokenizer = Tokenizer::load(data_folder(kind));
        CHECK(rc::check([&] {
            const std::string text = drawn_text();
            RC_ASSERT(tokenizer.decode(tokenizer.encode(text)) == text);
        }));
    }
}

TEST_CASE(
    "text that is streamed is text that is decoded, for any ids at byte level and the ids of any text") {
    for (const std::string& kind : all_kinds()) {
        const Tokenizer tokenizer = Tokenizer::load(data_folder(kind));
        const bool bytes = tokenizer.id_of("<0x41>") == std::nullopt;
        CHECK(rc::check([&] {
            const Ids ids = bytes ? drawn_ids(tokenizer) : tokenizer.encode(drawn_text());
            for (const bool skip : {true, false})
                RC_ASSERT(streamed(tokenizer, ids, {skip}) == tokenizer.decode(ids, {skip}));
        }));
    }
}

TEST_CASE(
    "tokens' bytes are their text, whatever parts of characters they are, and the space in front of all") {
    for (const std::string& kind : all_kinds()) {
        CAPTURE(kind);
        const Tokenizer tokenizer = Tokenizer::load(data_folder(kind));
        for (const std::string text : {"Once, twice", "w\u00f6rld \U0001F389\U0001F389 \u6c34", "a  b"}) {
            const Ids ids = tokenizer.encode(text, {.add_special_tokens = false});
            std::string bytes;
            for (const int id : ids) bytes += tokenizer.bytes_of(id);
            const std::string shown = tokenizer.decode(ids);
            CAPTURE(bytes);
            CHECK((bytes == shown || bytes == " " + shown));
        }
        if (const auto bos = tokenizer.bos_id()) CHECK(tokenizer.bytes_of(*bos) == *tokenizer.token_of(*bos));
    }
}

TEST_CASE("bytes that are no text count as U+FFFD") {
    const Tokenizer tokenizer = Tokenizer::load(data_folder("gpt2"));
    CHECK(tokenizer.encode("a\xFF\xE2\x82") == tokenizer.encode("a\xEF\xBF\xBD\xEF\xBF\xBD"));
}

TEST_CASE("a character is streamed with the token that completes it") {
    const Tokenizer tokenizer = Tokenizer::load(data_folder("llama2"));
    TextStream stream = tokenizer.stream();
    std::string so_far;
    for (const char* const token : {"<0xF0>", "<0x9F>", "<0x98>"})
        so_far += stream.push(*tokenizer.id_of(token));
    CHECK(so_far.empty());
    CHECK(stream.push(*tokenizer.id_of("<0x80>")) == "\xF0\x9F\x98\x80");
    CHECK(stream.push(*tokenizer.id_of("<0xFF>")) == "\xEF\xBF\xBD");
    CHECK(stream.finish() == "");
}

TEST_CASE("a run of byte tokens that is no text is U+FFFD for each of them") {
    const Tokenizer tokenizer = Tokenizer::load(data_folder("llama2"));
    const Ids ids{*tokenizer.id_of("<0x41>"), *tokenizer.id_of("<0xFF>")};
    CHECK(tokenizer.decode(ids) == "\xEF\xBF\xBD\xEF\xBF\xBD");
    CHECK(streamed(tokenizer, ids, {}) == "A\xEF\xBF\xBD");  // had been given out
}

TEST_CASE("a made-up tokenizer has bytes and words, and gives every text back") {
    const Tokenizer tokenizer = Tokenizer::made_up(1000);
    CHECK(tokenizer.end_id() == 1000);
    CHECK(tokenizer.encode("a \xC3\xA9") == std::vector<int>{'a', ' ', 0xC3, 0xA9});
    CHECK(tokenizer.decode(tokenizer.encode("Zwölf Boxkämpfer, 12!\n")) == "Zwölf Boxkämpfer, 12!\n");
    CHECK(tokenizer.decode(std::vector<int>{256, 'x', 999}) == " t256x t999");
    CHECK(tokenizer.eos_ids().empty());
}

TEST_CASE("what a tokenizer says about its ids") {
    const Tokenizer tokenizer = Tokenizer::load(data_folder("llama2"));
    CHECK(tokenizer.token_of(1) == "<s>");
    CHECK(tokenizer.id_of("</s>") == 2);
    CHECK(tokenizer.is_special(2));
    CHECK_FALSE(tokenizer.is_special(300));
    CHECK(tokenizer.end_id() == 620);
    CHECK_FALSE(tokenizer.token_of(620));
    CHECK_FALSE(tokenizer.token_of(-1));
    CHECK(tokenizer.decode(Ids{-1, 5000, 1 << 30}).empty());
}

TEST_CASE("threads that share a tokenizer get the same ids") {
    const Tokenizer tokenizer = Tokenizer::load(data_folder("llama3"));
    std::string text;
    for (int i = 0; i < 2000; ++i) text += "word" + std::to_string(i) + " \n";
    const Ids expected = Tokenizer::load(data_folder("llama3")).encode(text);
    std::vector<Ids> found(4);
    std::vector<std::thread> threads;
    for (Ids& ids : found) threads.emplace_back([&] { ids = tokenizer.encode(text); });
    for (std::thread& thread : threads) thread.join();
    for (const Ids& ids : found) CHECK(ids == expected);
}

TEST_CASE("the tokenizer of examples/tiny-llama makes the ids of transformers") {
    const std::filesystem::path folder = std::filesystem::path(HONE_SOURCE_DIR) / "examples/tiny-llama";
    const Tokenizer tokenizer = Tokenizer::load(folder);
    CHECK(tokenizer.encode("It is a truth universally acknowledged, that") ==
          Ids{0, 42, 85, 365, 260, 258, 83, 323, 73, 472, 74, 309, 84, 553, 519, 76, 452, 730, 785, 13, 334});
    const std::string text = hone::runtime::read_text_file(folder / "held_back.txt", 1 << 20);
    const Ids ids = tokenizer.encode(text, {.add_special_tokens = false});
    CHECK(ids.size() == 2065);
    CHECK(tokenizer.decode(ids) == text);
    CHECK(tokenizer.bos_id() == 0);
    CHECK(tokenizer.eos_ids() == Ids{1});
}
