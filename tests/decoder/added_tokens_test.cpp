#include "decoder/tokenizer/added_tokens.h"

#include <doctest/doctest.h>

#include <ctime>
#include <random>
#include <string>
#include <vector>

using namespace hone::decoder;

namespace {

using Texts = std::vector<std::string>;

/// Sections, tokens as "#id".
Texts sections(const std::vector<AddedToken>& tokens, std::string_view text, bool parse_special = true) {
    Texts out;
    for (const TextSection& section : AddedTokens(tokens, {}).split_raw(text, parse_special))
        out.push_back(section.id < 0 ? std::string(section.text) : "#" + std::to_string(section.id));
    return out;
}

}  // namespace

TEST_CASE("the leftmost token is found, and of these the longest") {
    CHECK(sections({{"ab", 1}, {"abc", 2}, {"bcd", 3}}, "xabcd") == Texts{"x", "#2", "d"});
    CHECK(sections({{"ab", 1}, {"bcde", 2}}, "abcde") == Texts{"#1", "cde"});
    CHECK(sections({{"a", 1}, {"a", 2}, {"", 3}}, "aa") == Texts{"#1", "#1"});
    CHECK(sections({}, "a") == Texts{"a"});
    CHECK(sections({{"a", 1}}, "").empty());
}

TEST_CASE("tokens are found as by looking for each of them at each place") {
    std::mt19937 random(7);
    const auto word = [&](std::size_t most) {
        std::string made;
        for (std::size_t i = 1 + random() % most; i > 0; --i) made += static_cast<char>('a' + random() % 2);
        return made;
    };
    for (int round = 0; round < 2'000; ++round) {
        std::vector<AddedToken> tokens;
        for (int id = 1; id <= 5; ++id) tokens.push_back({word(6), id});
        const std::string text = word(40);
        Texts wanted;
        bool in_plain = false;
        for (std::size_t at = 0; at < text.size();) {
            const AddedToken* longest = nullptr;
            for (const AddedToken& token : tokens) {
                if (text.compare(at, token.text.size(), token.text) != 0) continue;
                if (longest == nullptr || token.text.size() > longest->text.size()) longest = &token;
            }
            if (longest != nullptr) {
                wanted.push_back("#" + std::to_string(longest->id));
            } else if (in_plain) {
                wanted.back() += text[at];
            } else {
                wanted.emplace_back(1, text[at]);
            }
            in_plain = longest == nullptr;
            at += longest == nullptr ? 1 : longest->text.size();
        }
        CHECK_MESSAGE(sections(tokens, text) == wanted, text);
    }
}

TEST_CASE("a token of many bytes that nearly stands at each place does not make a text slow") {
    std::string nearly(200'000, 'a');
    nearly += 'b';
    const std::vector<AddedToken> tokens{{"a", 1}, {nearly, 2}};
    const std::clock_t start = std::clock();  // CPU time: a busy machine gives less of it a second
    CHECK(sections(tokens, std::string(400'000, 'a')).size() == 400'000);
    CHECK((std::clock() - start) / CLOCKS_PER_SEC < 20);  // with sanitizers, too
}

TEST_CASE("a token takes the white space beside it that it may") {
    CHECK(sections({{.text = "<x>", .id = 1, .lstrip = true}}, "a \t<x> b") == Texts{"a", "#1", " b"});
    CHECK(sections({{.text = "<x>", .id = 1, .rstrip = true}}, "a <x>\xE3\x80\x80 b") ==
          Texts{"a ", "#1", "b"});
    CHECK(sections({{.text = "<x>", .id = 1, .lstrip = true, .rstrip = true}}, "<x>  <x> ") ==
          Texts{"#1", "#1"});
}

TEST_CASE("a token that an earlier one took with its white space is none, where it takes some itself") {
    const AddedToken line{.text = "\n", .id = 2, .lstrip = true};
    CHECK(sections({{.text = "<x>", .id = 1, .rstrip = true}, line}, "<x>\r\n\na") == Texts{"#1", "a"});
    CHECK(sections({{.text = "<x>", .id = 1, .rstrip = true}, line}, "<x> \n a\n") ==
          Texts{"#1", "a", "#2"});
    CHECK(sections({{.text = " ", .id = 1, .lstrip = true, .rstrip = true}}, "a   b ") ==
          Texts{"a", "#1", "b", "#1"});
    CHECK(sections({{.text = " ", .id = 1, .lstrip = true}}, "   ") == Texts{"#1", "#1", "#1"});
}

TEST_CASE("white space that is a token itself does not make a text slow") {
    const std::string blanks(200'000, ' ');
    CHECK(sections({{.text = " ", .id = 1, .rstrip = true}}, blanks).size() == blanks.size());
    CHECK(sections({{.text = " ", .id = 1, .lstrip = true, .rstrip = true}}, blanks).size() == 1);
}

TEST_CASE("a single word stands alone") {
    const std::vector<AddedToken> tokens{{.text = "art", .id = 1, .single_word = true}};
    CHECK(sections(tokens, "art, start art\xC3\xA9 art") == Texts{"#1", ", start art\xC3\xA9 ", "#1"});
    CHECK(sections(tokens, "_art") == Texts{"_art"});
}

TEST_CASE("special tokens can be plain text, others cannot") {
    const std::vector<AddedToken> tokens{{.text = "<s>", .id = 1, .special = true}, {.text = "<t>", .id = 2}};
    CHECK(sections(tokens, "<s><t>", true) == Texts{"#1", "#2"});
    CHECK(sections(tokens, "<s><t>", false) == Texts{"<s>", "#2"});
}

TEST_CASE("a normalized token is looked for in normalized text, as that") {
    const nlohmann::json json = {{"type", "Replace"}, {"pattern", {{"String", "A"}}}, {"content", "b"}};
    const AddedTokens tokens({{.text = "<A>", .id = 1, .normalized = true}},
                             Normalizer::read(JsonPlace(json, "n")));
    CHECK(tokens.split_raw("<A>", true)[0].id < 0);
    CHECK(tokens.split_normalized("<b>", true)[0].id == 1);
}
