// What the small files beside a tokenizer say: tokenizer_config.json, special_tokens_map.json,
// generation_config.json and config.json. All of them may be absent.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "decoder/tokenizer/added_tokens.h"
#include "decoder/tokenizer/json_place.h"

namespace hone::decoder {

struct SpecialTokens {
    std::string tokenizer_class{};  ///< "LlamaTokenizerFast"; empty: not said
    std::optional<std::string> bos{};
    std::optional<std::string> eos{};
    std::optional<std::string> unknown{};
    std::optional<bool> add_bos{};
    std::optional<bool> add_eos{};
    bool add_prefix_space = false;
    std::vector<AddedToken> added{};  ///< "added_tokens_decoder"
    // Ids of generation_config.json or, where that has none, config.json.
    std::optional<int> bos_id{};
    std::vector<int> eos_ids{};
};

/// A token that one of these files names: "<s>", or {"content": "<s>", ...}. Throws DecoderError for another.
[[nodiscard]] std::optional<std::string> token_text(const JsonPlace& json, const char* key);

/// Throws DecoderError for a file that is there but makes no sense.
[[nodiscard]] SpecialTokens read_special_tokens(const std::filesystem::path& folder);

}  // namespace hone::decoder
