// Folders with tokenizers: made ones, and those of tests/decoder/data.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/tokenizer/tokenizer.h"
#include "runtime/system/input_error.h"
#include "tests/support/scratch.h"

namespace hone::test {

inline std::filesystem::path data_folder(const std::string& name) {
    return std::filesystem::path(HONE_SOURCE_DIR) / "tests/decoder/data" / name;
}

inline nlohmann::json json_of(const std::filesystem::path& file) {
    return nlohmann::json::parse(std::ifstream(file, std::ios::binary));
}

/// What the makers of a tokenizer of tests/decoder/data do with some texts.
inline std::vector<nlohmann::json> cases_of(const std::string& name) {
    const auto cases =
        json_of(data_folder(name) / "expected.json").at("cases").get<std::vector<nlohmann::json>>();
    REQUIRE(cases.size() > 20);
    return cases;
}

/// A folder of a model, file by file.
class ModelFolder {
  public:
    ModelFolder& with(const std::string& name, std::string_view text) {
        std::ofstream(scratch_.path(name), std::ios::binary) << text;
        return *this;
    }
    ModelFolder& with(const std::string& name, const nlohmann::json& json) {
        return with(name, std::string_view(json.dump()));
    }
    [[nodiscard]] std::filesystem::path path() const { return scratch_.path(""); }
    [[nodiscard]] decoder::Tokenizer load() const { return decoder::Tokenizer::load(path()); }
    /// What load() throws, without the folder; "none" when it does not.
    [[nodiscard]] std::string refusal() const {
        try {
            static_cast<void>(load());
            return "none";
        } catch (const runtime::InputError& error) {
            std::string text = error.what();
            const std::string folder = scratch_.path("").string();
            if (text.starts_with(folder)) text.erase(0, folder.size());
            return text;
        }
    }

  private:
    Scratch scratch_;
};

/// A tokenizer.json with few tokens, to change: "a", "b", "c", "ab", "abc" and the space mark.
inline nlohmann::json small_tokenizer() {
    return nlohmann::json::parse(R"({
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": null,
        "post_processor": null,
        "decoder": {"type": "Fuse"},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, " ": 5}, "merges": ["a b", ["ab", "c"]]}
    })");
}

}  // namespace hone::test
