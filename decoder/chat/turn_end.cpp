#include "decoder/chat/turn_end.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "decoder/chat/chat_template.h"
#include "decoder/error.h"

namespace hone::decoder {
namespace {

constexpr std::string_view question = "first-question";
constexpr std::string_view answer = "first-answer";
constexpr std::string_view next_question = "second-question";

/// What stands between the answer and the next question.
std::string behind_answer(const ChatTemplate& chat) {
    const Conversation conversation{{.role = Role::user, .content = std::string(question)},
                                    {.role = Role::assistant, .content = std::string(answer)},
                                    {.role = Role::user, .content = std::string(next_question)}};
    std::string text;
    try {
        text = chat.render(conversation);
    } catch (const DecoderError&) {
        return {};
    }
    const std::size_t end = text.rfind(next_question);
    const std::size_t begin = end == std::string::npos ? end : text.rfind(answer, end);
    if (begin == std::string::npos) return {};
    return text.substr(begin + answer.size(), end - begin - answer.size());
}

/// Some folders do not call their control tokens special.
bool is_control(const Tokenizer& tokenizer, int id, std::string_view text) {
    const std::string_view token = tokenizer.token_of(id).value_or("");
    return tokenizer.is_special(id) || (token.size() > 3 && token.starts_with('<') && token.ends_with('>') &&
                                        text.find(token) != std::string_view::npos);
}

}  // namespace

std::optional<int> find_turn_end(const ChatTemplate& chat, const Tokenizer& tokenizer) {
    const std::string text = behind_answer(chat);
    const std::vector<int> ids = tokenizer.encode(text, {.add_special_tokens = false});
    const auto first = std::ranges::find_if(ids, [&](int id) { return is_control(tokenizer, id, text); });
    if (first == ids.end()) return std::nullopt;
    const bool ends_all = std::ranges::find(tokenizer.eos_ids(), *first) != tokenizer.eos_ids().end();
    return ends_all ? std::nullopt : std::optional(*first);
}

}  // namespace hone::decoder
