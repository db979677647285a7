// What a client asks for, read from the JSON of OpenAI's completions and chat completions. Unknown fields are
// passed over, as there; what is known and not done here is refused by name.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "decoder/chat/chat_template.h"
#include "decoder/chat/conversation.h"
#include "decoder/forward/step_inputs.h"

namespace hone::decoder {

/// A text, or the ids of its tokens.
using Prompt = std::variant<std::string, std::vector<int>>;

struct ApiRequest {
    bool is_chat = false;
    std::string model{};  ///< empty: not said
    std::vector<Prompt> prompts{};
    Conversation conversation{};                                ///< of a chat, in place of prompts
    nlohmann::json template_values = nlohmann::json::object();  ///< and variables for its template, by name
    std::optional<int> max_tokens{};                            ///< new ones; 0: with echo alone
    Wishes wishes{};
    std::vector<std::string> stops{};
    std::vector<int> end_ids{};            ///< of tokens that end a text, beside the model's
    std::optional<int> likeliest{};        ///< TextRequest's: log probabilities are asked for
    bool echo = false;                     ///< the prompt is repeated in front of the text
    std::optional<bool> special_tokens{};  ///< of the prompt's beginning; not said: of a text's, not a chat's
    int choices = 1;                       ///< texts for each prompt
    bool ignore_end = false;               ///< the text goes on behind the model's end token
    bool stream = false;
    bool include_usage = false;  ///< at the end of a stream
};

/// Texts of a request, for all prompts together.
inline constexpr int max_choices = 16;
inline constexpr int max_stops = 16;
inline constexpr std::size_t max_end_ids = 64;
inline constexpr std::size_t max_template_values = 64;
inline constexpr std::size_t max_stop_bytes = 1024;

/// Throw ApiError. `seed` is that of a request which has none.
[[nodiscard]] ApiRequest read_completion(std::string_view body, std::int64_t seed);
[[nodiscard]] ApiRequest read_chat(std::string_view body, std::int64_t seed);

/// What a request's `chat_template_kwargs` come to with this template: those that it does not read are passed
/// over, and nulls. Throws ApiError for those that the request's own fields say.
[[nodiscard]] ChatVariables read_variables(const nlohmann::json& values, const ChatTemplate& chat);

}  // namespace hone::decoder
