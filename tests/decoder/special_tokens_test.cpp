// The small files beside a tokenizer, and the two older formats of tokenizers.
#include "decoder/tokenizer/special_tokens.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/decoder/support.h"

using hone::decoder::Tokenizer;
using hone::test::cases_of;
using hone::test::data_folder;
using hone::test::json_of;
using hone::test::ModelFolder;
using hone::test::small_tokenizer;

namespace {

using Ids = std::vector<int>;

ModelFolder& small(ModelFolder& folder) { return folder.with("tokenizer.json", small_tokenizer()); }

/// The trained GPT-2 as vocab.json and merges.txt.
ModelFolder& gpt2(ModelFolder& folder) {
    const nlohmann::json model = json_of(data_folder("gpt2") / "tokenizer.json").at("model");
    std::string merges = "#version: 0.2\n";
    for (const nlohmann::json& merge : model.at("merges"))
        merges += merge.at(0).get<std::string>() + ' ' + merge.at(1).get<std::string>() + "\r\n";
    return folder.with("vocab.json", model.at("vocab")).with("merges.txt", std::string_view(merges));
}

}  // namespace

TEST_CASE("tokens are named as texts or objects, and ended by all that the files say") {
    ModelFolder folder;
    small(folder).with("tokenizer_config.json",
                       nlohmann::json{{"bos_token", "a"}, {"eos_token", {{"content", "b"}}}});
    CHECK(folder.load().bos_id() == 0);
    CHECK(folder.load().eos_ids() == Ids{1});
    folder.with("generation_config.json", nlohmann::json{{"bos_token_id", 2}, {"eos_token_id", {3, 4}}});
    CHECK(folder.load().bos_id() == 2);
    CHECK(folder.load().eos_ids() == Ids{3, 4, 1});
    folder.with("config.json", nlohmann::json{{"eos_token_id", 0}});
    CHECK(folder.load().eos_ids() == Ids{3, 4, 1});
}

TEST_CASE("a link that leads nowhere is refused, and not passed over") {
    for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "generation_config.json",
                             "config.json", "tokenizer.json"}) {
        CAPTURE(name);
        ModelFolder folder;
        if (std::string_view(name) != "tokenizer.json") small(folder);
        std::filesystem::create_symlink("../blobs/0123", folder.path() / name);
        CHECK(folder.refusal() == std::string(name) + ": a link to a file that is not there");
    }
}

TEST_CASE("special_tokens_map.json says what tokenizer_config.json does not") {
    ModelFolder folder;
    small(folder).with("special_tokens_map.json", nlohmann::json{{"eos_token", "c"}, {"bos_token", "?"}});
    CHECK(folder.load().eos_ids() == Ids{2});
    CHECK_FALSE(folder.load().bos_id());
}

TEST_CASE("tokens that only tokenizer_config.json has are tokens, too") {
    ModelFolder folder;
    small(folder).with(
        "tokenizer_config.json",
        nlohmann::json{{"added_tokens_decoder", {{"9", {{"content", "<x>"}, {"special", true}}}}}});
    CHECK(folder.load().encode("a<x>b") == Ids{0, 9, 1});
    CHECK(folder.load().end_id() == 10);
}

TEST_CASE("what makes no sense is refused with file and key") {
    const auto refusal = [](const char* file, const nlohmann::json& json) {
        ModelFolder folder;
        return small(folder).with(file, json).refusal();
    };
    CHECK(refusal("generation_config.json", {{"eos_token_id", -5}}) ==
          "generation_config.json: eos_token_id: -5: has to be an integer from 0 to 4194303");
    CHECK(refusal("tokenizer_config.json", {{"bos_token", 1}}) ==
          "tokenizer_config.json: bos_token: 1: has to be a text");
    CHECK(refusal("tokenizer_config.json", {{"added_tokens_decoder", {{"x", {{"content", "<x>"}}}}}}) ==
          "tokenizer_config.json: added_tokens_decoder.x: an object: its key has to be an id");
}

TEST_CASE("vocab.json and merges.txt are what tokenizer.json made of them says") {
    ModelFolder folder;
    const nlohmann::json added = {{"420", {{"content", "<|endoftext|>"}, {"special", true}}}};
    gpt2(folder).with("tokenizer_config.json", nlohmann::json{{"added_tokens_decoder", added}});
    const Tokenizer tokenizer = folder.load();
    for (const nlohmann::json& expected : cases_of("gpt2"))
        CHECK(tokenizer.encode(expected.at("text").get<std::string>()) == expected.at("ids").get<Ids>());
}

TEST_CASE("old files are cut as their class says, or refused") {
    ModelFolder folder;
    gpt2(folder).with("tokenizer_config.json", nlohmann::json{{"tokenizer_class", "Qwen2Tokenizer"}});
    CHECK(folder.load().encode("123").size() == 3);
    folder.with("tokenizer_config.json", nlohmann::json{{"tokenizer_class", "CLIPTokenizer"}});
    CHECK(folder.refusal().starts_with(
        "tokenizer_config.json: tokenizer_class: \"CLIPTokenizer\": how it cuts text"));
    folder.with("tokenizer_config.json", nlohmann::json::object())
        .with("merges.txt", std::string_view("#version\na\n"));
    CHECK(folder.refusal() == "merges.txt:2: a merge is two tokens with one space between");
}
