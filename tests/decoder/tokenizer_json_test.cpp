// What a tokenizer.json may say, and what is refused of it.
#include "decoder/tokenizer/tokenizer_json.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/decoder/support.h"

using hone::decoder::DecodeOptions;
using hone::decoder::Tokenizer;
using hone::test::ModelFolder;
using hone::test::small_tokenizer;

namespace {

using Ids = std::vector<int>;

nlohmann::json changed(const std::string& pointer, const nlohmann::json& value) {
    nlohmann::json json = small_tokenizer();
    json[nlohmann::json::json_pointer(pointer)] = value;
    return json;
}

Tokenizer tokenizer_of(const nlohmann::json& json) {
    return ModelFolder().with("tokenizer.json", json).load();
}
std::string refusal_of(const nlohmann::json& json) {
    return ModelFolder().with("tokenizer.json", json).refusal();
}

}  // namespace

TEST_CASE("merges are texts or pairs, and an old file has no type") {
    CHECK(tokenizer_of(small_tokenizer()).encode("abcab") == Ids{4, 3});
    nlohmann::json old = changed("/model/merges/0", "#version: 0.2");
    old["model"].erase("type");
    CHECK(tokenizer_of(old).encode("ab") == Ids{0, 1});
}

TEST_CASE("parts that are not understood are refused by name") {
    const std::vector<std::vector<std::string>> cases{
        {"/model/type", R"("Unigram")",
         "model.type: \"Unigram\": a model that is not understood; known is BPE"},
        {"/normalizer", R"({"type":"Lowercase"})",
         "normalizer.type: \"Lowercase\": a normalizer that is not understood"},
        {"/pre_tokenizer", R"({"type":"Whitespace"})",
         "pre_tokenizer.type: \"Whitespace\": a pre_tokenizer that is not"},
        {"/decoder", R"({"type":"WordPiece"})",
         "decoder.type: \"WordPiece\": a decoder that is not understood"},
        {"/post_processor", R"({"type":"BertProcessing"})",
         "post_processor.type: \"BertProcessing\": a post_processor"},
        {"/model/dropout", "0.1", "model.dropout: 0.1: is not understood: tokens would be drawn by chance"},
        {"/model/end_of_word_suffix", R"("</w>")", "model.end_of_word_suffix: \"</w>\": is not understood"},
        {"/model/unk_token", R"("<unk>")", "model.unk_token: \"<unk>\": is not in the vocabulary"},
        {"/model/vocab/x", "4", "model.vocab: tokens 'abc' and 'x' both have id 4"},
        {"/model/vocab/x", "-1", "model.vocab.x: -1: has to be an integer from 0 to 4194303"},
        {"/model/vocab/x", "18446744073709551615",
         "model.vocab.x: 18446744073709551615: has to be an integer"},
        {"/model/vocab/x", "1e3", "model.vocab.x: 1000.0: has to be an integer"},
        {"/model/merges/0", R"("a  b")",
         "model.merges[0]: \"a  b\": a merge is two tokens with one space between"},
        {"/model/merges/0", R"(["a"])", "model.merges[0]: an array of 1: a merge is two tokens"},
        {"/model/merges/0", R"("a z")", "model.merges: merge 0 of 'a' and 'z': 'z' is not in the vocabulary"},
        {"/added_tokens/0", R"({"id":4194304,"content":"x"})",
         "added_tokens[0].id: 4194304: has to be an integer"},
        {"/added_tokens/0", R"({"id":7})", "added_tokens[0]: an object: \"content\" is missing"},
        {"/pre_tokenizer", R"({"type":"Split","pattern":{"Regex":"\\w"},"behavior":"Isolated"})",
         "pre_tokenizer.pattern: regular expression '\\w': the escape '\\w'"},
        {"/pre_tokenizer", R"({"type":"Split","pattern":{"String":""},"behavior":"Isolated"})",
         "pre_tokenizer.pattern.String: \"\": a text to look for cannot be empty"},
        {"/pre_tokenizer", R"({"type":"Metaspace","replacement":"__"})", "has to be one character"},
        {"/pre_tokenizer", R"({"type":"Metaspace","replacement":"_","prepend_scheme":"last"})",
         "has to be always, first"},
        {"/pre_tokenizer", R"({"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Digits"}]})",
         "comes behind ByteLevel, which has to be the last one"},
        {"/decoder", R"({"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"ByteFallback"}]})",
         "cannot come behind Fuse"},
        {"/decoder", R"({"type":"Strip","content":" ","start":-1,"stop":0})",
         "has to be an integer from 0 to 1024"},
        {"/post_processor", R"({"type":"TemplateProcessing","single":[]})", "has to have the sequence A"},
        {"/post_processor",
         R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}}],"special_tokens":{}})",
         "\"<s>\" is missing"},
        {"/model", "[]", "model: an array of 0: has to be an object"},
    };
    for (const std::vector<std::string>& item : cases) {
        const std::string refusal = refusal_of(changed(item[0], nlohmann::json::parse(item[1])));
        CHECK_MESSAGE(refusal.starts_with("tokenizer.json: "), refusal);
        CHECK_MESSAGE(refusal.find(item[2]) != std::string::npos, refusal, " instead of ", item[2]);
    }
}

TEST_CASE("a template puts tokens around the text, chains of them too") {
    const auto part = [](const char* token, int id, bool before) {
        const nlohmann::json special = {{"SpecialToken", {{"id", token}}}};
        const nlohmann::json text = {{"Sequence", {{"id", "A"}}}};
        const nlohmann::json single = before ? nlohmann::json{special, text} : nlohmann::json{text, special};
        return nlohmann::json{{"type", "TemplateProcessing"},
                              {"single", single},
                              {"special_tokens", {{token, {{"ids", {id}}}}}}};
    };
    const nlohmann::json chain = {
        {"type", "Sequence"},
        {"processors",
         {part("x", 10, true), {{"type", "ByteLevel"}}, part("y", 11, false), part("z", 12, true)}}};
    const Tokenizer tokenizer = tokenizer_of(changed("/post_processor", chain));
    CHECK(tokenizer.encode("ab") == Ids{12, 10, 3, 11});
    CHECK(tokenizer.encode("ab", {.add_special_tokens = false}) == Ids{3});
}

TEST_CASE("decoders in a row") {
    const auto decoded = [](const char* decoder, const Ids& ids) {
        return tokenizer_of(changed("/decoder", nlohmann::json::parse(decoder))).decode(ids);
    };
    CHECK(decoded("null", {0, 3}) == "a ab");
    CHECK(decoded(R"({"type":"Replace","pattern":{"Regex":"b+"},"content":"_"})", {3, 4}) == "a_a_c");
    CHECK(decoded(R"({"type":"Strip","content":"a","start":1,"stop":0})", {3, 0, 3}) == "bb");
    CHECK(decoded(R"({"type":"Metaspace","replacement":"a","prepend_scheme":"first"})", {3, 3}) == "b b");
    CHECK(decoded(R"({"type":"Metaspace","replacement":"a","prepend_scheme":"never"})", {3, 3}) == " b b");
    const char* const fused =
        R"({"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"Metaspace","replacement":"a","prepend_scheme":"first"}]})";
    CHECK(decoded(fused, {3, 3}) == "bb");
    const char* const stop =
        R"({"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"Strip","content":"a","start":2,"stop":2}]})";
    CHECK(decoded(stop, {0, 0, 0, 1, 0, 0, 0}) == "aba");
    CHECK(decoded(stop, {0, 1}) == "b");
}

TEST_CASE("only the first piece of a text gets the prefix of its beginning") {
    const nlohmann::json cut = {{"type", "Split"}, {"pattern", {{"String", "b"}}}, {"behavior", "Isolated"}};
    const nlohmann::json prefix = {
        {"type", "Metaspace"}, {"replacement", "a"}, {"prepend_scheme", "first"}, {"split", false}};
    const nlohmann::json both = {{"type", "Sequence"}, {"pretokenizers", {cut, prefix}}};
    CHECK(tokenizer_of(changed("/pre_tokenizer", both)).encode("cbc") == Ids{0, 2, 1, 2});
}

TEST_CASE("an id of the vocabulary holds against that of an added token") {
    const nlohmann::json added = {{"id", 77}, {"content", "ab"}, {"special", true}};
    const Tokenizer tokenizer = tokenizer_of(changed("/added_tokens/0", added));
    CHECK(tokenizer.encode("cab") == Ids{2, 3});
    CHECK(tokenizer.is_special(3));
}

TEST_CASE("files that are no tokenizers") {
    CHECK(ModelFolder()
              .with("tokenizer.json", std::string_view("{"))
              .refusal()
              .starts_with("tokenizer.json:1: not valid"));
    CHECK(ModelFolder().with("tokenizer.json", std::string_view("{}")).refusal() ==
          "tokenizer.json: an object: \"model\" is missing");
    const std::string empty = ModelFolder().refusal();
    CHECK(empty.find("no tokenizer in this folder; it is read from tokenizer.json") != std::string::npos);
    CHECK_THROWS_WITH_AS(static_cast<void>(Tokenizer::load("llama-3-8b")),
                         "'llama-3-8b' is no folder; needed is that of a model", hone::runtime::InputError);
}

TEST_CASE("control characters of a token are escaped in messages, which would end at a NUL") {
    nlohmann::json json = small_tokenizer();
    json["model"]["merges"].push_back({std::string("x\0\x1B[31m", 7), "y"});
    CHECK(refusal_of(json).find("of 'x\\x00\\x1b[31m' and 'y': 'x\\x00\\x1b[31m' is not in the vocabulary") !=
          std::string::npos);
    json = small_tokenizer();
    json["model"]["vocab"][std::string("a\0b", 3)] = -1;
    CHECK(refusal_of(json).find("a\\x00b: -1: ") != std::string::npos);
    CHECK(ModelFolder()
              .with("tokenizer.json", std::string_view(R"({"a\u0000\u001b": 1, "a\u0000\u001b": 2})"))
              .refusal()
              .find(R"(key "a\x00\x1b" stands twice)") != std::string::npos);
}

TEST_CASE("text that grows without end is refused") {
    const nlohmann::json step = {
        {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(64, 'a')}};
    const nlohmann::json steps = {{"type", "Sequence"},
                                  {"normalizers", std::vector<nlohmann::json>(8, step)}};
    const Tokenizer tokenizer = tokenizer_of(changed("/normalizer", steps));
    CHECK(tokenizer.encode("b") == Ids{1});
    CHECK_THROWS_WITH(static_cast<void>(tokenizer.encode("a")), doctest::Contains("text grows above"));
}

TEST_CASE("what is put in front of texts, and what becomes of added tokens, has an end, too") {
    nlohmann::json prepend{{"type", "Prepend"}, {"prepend", std::string(std::size_t{1} << 20, 'a')}};
    nlohmann::json json = small_tokenizer();
    json["normalizer"] = {{"type", "Sequence"}, {"normalizers", nlohmann::json(20, prepend)}};
    CHECK_THROWS_WITH(static_cast<void>(tokenizer_of(json).encode("a")),
                      doctest::Contains("text grows above"));

    json = small_tokenizer();
    json["normalizer"] = {
        {"type", "Replace"}, {"pattern", {{"String", "+"}}}, {"content", std::string(100'000, 'a')}};
    for (int i = 0; i < 300; ++i)
        json["added_tokens"].push_back({{"id", 1000 + i}, {"content", fmt::format("+{}", i)}});
    CHECK(refusal_of(json).find("text grows above") != std::string::npos);
}

TEST_CASE("what becomes of tokens has an end, however many replacements stand one behind the other") {
    const nlohmann::json step = {
        {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(16, 'a')}};
    const auto with_steps = [&](std::size_t count) {
        const nlohmann::json steps{{"type", "Sequence"}, {"decoders", nlohmann::json(count, step)}};
        return tokenizer_of(changed("/decoder", steps));
    };
    const Ids a{0};
    CHECK(with_steps(2).decode(a) == std::string(256, 'a'));
    CHECK_THROWS_WITH(static_cast<void>(with_steps(5).decode(a)),
                      "text grows above 65536 bytes by what is put into it");
}

TEST_CASE("a template of more tokens than any model's is refused before it is read") {
    const auto with = [](int parts, int ids) {
        nlohmann::json single(static_cast<std::size_t>(parts), {{"SpecialToken", {{"id", "x"}}}});
        single.push_back({{"Sequence", {{"id", "A"}}}});
        nlohmann::json json = small_tokenizer();
        json["post_processor"] = {{"type", "TemplateProcessing"},
                                  {"single", single},
                                  {"special_tokens", {{"x", {{"ids", std::vector<int>(ids, 1)}}}}}};
        return json;
    };
    CHECK(tokenizer_of(with(3, 2)).encode("ab") == Ids{1, 1, 1, 1, 1, 1, 3});
    CHECK(refusal_of(with(100'000, 1000)).find("a template has up to 1024 tokens") != std::string::npos);
    CHECK(refusal_of(with(1, 2000)).find("a template has up to 1024 tokens") != std::string::npos);
    nlohmann::json chain = with(1, 600);
    const nlohmann::json part = chain["post_processor"];
    chain["post_processor"] = {{"type", "Sequence"}, {"processors", {part}}};
    CHECK(tokenizer_of(chain).encode("ab").size() == 601);
    chain["post_processor"]["processors"].push_back(part);
    CHECK(refusal_of(chain).find("templates have up to 1024 tokens together") != std::string::npos);
}
