#include "decoder/serve/shown_tokens.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "decoder/text/utf8.h"

namespace hone::decoder {
namespace {

using nlohmann::json;

/// As OpenAI has it: JSON knows no infinity, and clients want a number.
double number(double log_probability) {
    constexpr double as_good_as_never = -9999;
    return std::isfinite(log_probability) ? log_probability : as_good_as_never;
}

/// Bytes that are no characters as "\xE2".
std::string spelt(std::string_view bytes) {
    std::string text;
    while (!bytes.empty()) {
        const Sequence sequence = first_sequence(bytes);
        if (sequence.state == SequenceState::whole) {
            text += bytes.substr(0, sequence.length);
        } else {
            for (const char byte : bytes.substr(0, sequence.length))
                text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
        }
        bytes.remove_prefix(sequence.length);
    }
    return text;
}

std::string completion_token(const Tokenizer& tokenizer, int id) {
    const std::string bytes = tokenizer.bytes_of(id);
    return is_utf8(bytes) ? bytes : "bytes:" + spelt(bytes);
}

/// Several that are spelt alike are as likely as the likeliest of them.
json completion_likeliest(const Tokenizer& tokenizer, const ShownToken& token) {
    json likeliest = json::object();
    for (const TokenChance& chance : token.chances->likeliest)
        likeliest.emplace(completion_token(tokenizer, chance.token), number(chance.log_probability));
    likeliest.emplace(completion_token(tokenizer, token.id), number(token.chances->log_probability));
    return likeliest;
}

json chat_token(const Tokenizer& tokenizer, const TokenChance& chance) {
    const std::string bytes = tokenizer.bytes_of(chance.token);
    json numbers = json::array();
    for (const char byte : bytes) numbers.push_back(static_cast<unsigned char>(byte));
    return {
        {"token", spelt(bytes)}, {"logprob", number(chance.log_probability)}, {"bytes", std::move(numbers)}};
}

}  // namespace

json completion_logprobs(const Tokenizer& tokenizer, std::span<const ShownToken> tokens) {
    json texts = json::array();
    json chances = json::array();
    json likeliest = json::array();
    json offsets = json::array();
    for (const ShownToken& token : tokens) {
        texts.push_back(completion_token(tokenizer, token.id));
        chances.push_back(token.chances ? json(number(token.chances->log_probability)) : json());
        likeliest.push_back(token.chances ? completion_likeliest(tokenizer, token) : json());
        offsets.push_back(token.offset);
    }
    return {{"tokens", std::move(texts)},
            {"token_logprobs", std::move(chances)},
            {"top_logprobs", std::move(likeliest)},
            {"text_offset", std::move(offsets)}};
}

json chat_logprobs(const Tokenizer& tokenizer, std::span<const ShownToken> tokens) {
    json content = json::array();
    for (const ShownToken& token : tokens) {
        json one = chat_token(tokenizer, {token.id, token.chances->log_probability});
        json& likeliest = one["top_logprobs"] = json::array();
        for (const TokenChance& chance : token.chances->likeliest)
            likeliest.push_back(chat_token(tokenizer, chance));
        content.push_back(std::move(one));
    }
    return {{"content", std::move(content)}, {"refusal", nullptr}};
}

}  // namespace hone::decoder
