// tokenizer.model, against ids of sentencepiece's own Python interface, and files that are broken.
#include "decoder/tokenizer/sentencepiece.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "decoder/tokenizer/sentencepiece_outline.h"
#include "tests/decoder/support.h"

using hone::decoder::Tokenizer;
using hone::test::cases_of;
using hone::test::data_folder;
using hone::test::ModelFolder;

namespace {

using Ids = std::vector<int>;

std::string model_bytes(const std::string& kind) {
    std::ifstream file(data_folder(kind) / "tokenizer.model", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A field of protocol buffers: bytes of any length.
std::string field(char number, std::string_view content) {
    std::string out(1, static_cast<char>(number << 3 | 2));
    std::size_t size = content.size();
    for (; size >= 0x80; size >>= 7) out += static_cast<char>(0x80 | (size & 0x7F));
    return out + static_cast<char>(size) + std::string(content);
}

/// A piece behind those of a model: type 1 normal, 4 user-defined.
std::string piece(std::string_view text, char type) { return field(1, field(1, text) + '\x18' + type); }

void compare(const Tokenizer& tokenizer, const nlohmann::json& expected) {
    const auto text = expected.at("text").get<std::string>();
    CAPTURE(text);
    Ids ids = expected.at("plain").get<Ids>();
    CHECK(tokenizer.encode(text, {.add_special_tokens = false, .parse_special_tokens = false}) == ids);
    ids.insert(ids.begin(), expected.at("bos").get<int>());
    CHECK(tokenizer.encode(text, {.parse_special_tokens = false}) == ids);
    CHECK(tokenizer.decode(ids) == expected.at("decoded").get<std::string>());
}

}  // namespace

TEST_CASE("ids are sentencepiece's, and so is the text of them") {
    for (const char* const kind : {"sentencepiece_bpe", "sentencepiece_unigram"}) {
        CAPTURE(kind);
        const Tokenizer tokenizer = Tokenizer::load(data_folder(kind));
        for (const nlohmann::json& expected : cases_of(kind)) compare(tokenizer, expected);
    }
}

TEST_CASE("control tokens are found in the text, and BOS is said by tokenizer_config.json") {
    ModelFolder folder;
    folder.with("tokenizer.model", std::string_view(model_bytes("sentencepiece_bpe")));
    CHECK(folder.load().encode("</s>") == Ids{1, 2});
    folder.with("tokenizer_config.json", nlohmann::json{{"add_bos_token", false}, {"add_eos_token", true}});
    CHECK(folder.load().encode("</s>") == Ids{2, 2});
}

TEST_CASE("a model that is cut or is none is refused") {
    const std::string bytes = model_bytes("sentencepiece_bpe");
    for (std::size_t size = 0; size < bytes.size(); size += 97) {
        const std::string refusal =
            ModelFolder().with("tokenizer.model", std::string_view(bytes).substr(0, size)).refusal();
        const bool named = refusal.starts_with("tokenizer.model: not a model");
        CHECK_MESSAGE((named || refusal == "none"), size, ": ", refusal);
    }
    CHECK(ModelFolder().with("tokenizer.model", std::string_view("no model")).refusal() ==
          "tokenizer.model: not a model of sentencepiece, or cut short");
}

TEST_CASE("a piece that is no text is refused") {
    std::string bytes = model_bytes("sentencepiece_bpe");
    bytes[bytes.find("en")] = '\xFF';
    CHECK(ModelFolder().with("tokenizer.model", std::string_view(bytes)).refusal().ends_with("is no UTF-8"));
}

TEST_CASE("a model that rewrites characters is refused") {
    const std::string normalizer{'\x1A', 3, '\x12', 1, 'x'};  // field 3: {field 2: "x"}
    CHECK(ModelFolder()
              .with("tokenizer.model", std::string_view(normalizer))
              .refusal()
              .starts_with("tokenizer.model: its normalizer rewrites characters"));
}

TEST_CASE("the outline knows whether a space stands in front") {
    using hone::decoder::sentencepiece_outline;
    CHECK(sentencepiece_outline("", "f").add_dummy_prefix);
    CHECK_FALSE(sentencepiece_outline(std::string{'\x1A', 2, '\x18', '\0'}, "f").add_dummy_prefix);
    CHECK_THROWS(static_cast<void>(sentencepiece_outline(std::string(12, '\xFF'), "f")));
    CHECK_THROWS(
        static_cast<void>(sentencepiece_outline("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", "f")));
}

TEST_CASE("pieces that sentencepiece does not survive are refused before it sees them") {
    for (const char* const kind : {"sentencepiece_bpe", "sentencepiece_unigram"}) {
        CAPTURE(kind);
        const auto refusal = [&](const std::string& more) {
            return ModelFolder()
                .with("tokenizer.model", std::string_view(model_bytes(kind) + more))
                .refusal();
        };
        std::string nested;
        for (std::size_t length = 2; length <= 65; ++length) nested += piece(std::string(length, 'q'), 4);
        CHECK(refusal(nested) == "none");
        nested += piece(std::string(66, 'q'), 4);
        CHECK(refusal(nested) == "tokenizer.model: more than 64 user-defined pieces begin with one another");
        CHECK(refusal(piece(std::string(4096, 'q'), 1)) == "none");
        CHECK(refusal(piece(std::string(1'000'000, 'q'), 1)) ==
              "tokenizer.model: piece 620 has 1000000 bytes; allowed: up to 4096");
        for (const char type : {'\x01', '\x04'})
            CHECK(refusal(piece(std::string("\0q", 2), type)) ==
                  "tokenizer.model: piece 620 holds a zero byte");
    }
}
