// What the structs of hone_decoder.h mean in C++. Throws Error (bad_argument) with field, value and what is
// allowed. Internal to the C interface.
#pragma once

#include <string>
#include <vector>

#include "decoder/c_api/hone_decoder.h"
#include "decoder/chat/conversation.h"
#include "decoder/engine/engine.h"
#include "decoder/tokenizer/tokenizer.h"

namespace hone::decoder::c_api {

[[nodiscard]] ModelOptions options_from(const char* folder, const hone_decoder_options& given);
/// Of a submit or an encode.
[[nodiscard]] EncodeOptions encode_options_from(std::uint32_t flags);
/// `max_context`: of the decoder.
[[nodiscard]] TextRequest request_from(const hone_decoder_request& given, const Tokenizer& tokenizer,
                                       int max_context);
[[nodiscard]] Conversation conversation_from(const char* const* roles, const char* const* contents,
                                             std::size_t count);
[[nodiscard]] std::vector<std::string> stops_from(const hone_decoder_request& given);

/// Chances of tokens as C has them: each has as many of the likeliest.
struct LogProbabilities {
    LogProbabilities() = default;
    explicit LogProbabilities(const std::vector<TokenChances>& chances);
    std::int32_t likeliest = 0;
    std::vector<double> of_tokens{};
    std::vector<std::int32_t> likeliest_ids{};
    std::vector<double> of_likeliest{};
};

/// Throws Error (bad_argument) for flags that are not among `known`.
void check_flags(std::uint32_t flags, std::uint32_t known, const char* allowed);

}  // namespace hone::decoder::c_api
