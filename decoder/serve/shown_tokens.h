// Tokens of a text with their log probabilities, as OpenAI's completions and chats have them. Knows no text:
// where a token begins in it is said.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "decoder/forward/token_chances.h"
#include "decoder/tokenizer/tokenizer.h"

namespace hone::decoder {

struct ShownToken {
    int id = 0;
    std::size_t offset = 0;                 ///< characters of the text in front of it
    std::optional<TokenChances> chances{};  ///< none: a prompt's first
};

/// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}
[[nodiscard]] nlohmann::json completion_logprobs(const Tokenizer& tokenizer,
                                                 std::span<const ShownToken> tokens);
/// {"content": [{"token", "logprob", "bytes", "top_logprobs"}], "refusal"}; each token has chances.
[[nodiscard]] nlohmann::json chat_logprobs(const Tokenizer& tokenizer, std::span<const ShownToken> tokens);

}  // namespace hone::decoder
