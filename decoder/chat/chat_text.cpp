#include "decoder/chat/chat_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "decoder/error.h"
#include "decoder/text/utf8.h"

namespace hone::decoder {
namespace {

const char* name_of(Role role) {
    return role == Role::system ? "system" : role == Role::user ? "user" : "assistant";
}

/// What Python's str.isspace() says.
bool is_space(char32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
           c == 0x3000;
}

/// Without spaces at both ends. The text is well-formed.
std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_space(first_code_point(text))) text.remove_prefix(first_length(text));
    while (!text.empty()) {
        std::size_t last = text.size() - 1;
        while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
        if (!is_space(first_code_point(text.substr(last)))) break;
        text = text.substr(0, last);
    }
    return text;
}

std::string_view without_leading_lines(std::string_view text) {
    return text.substr(std::min(text.size(), text.find_first_not_of('\n')));
}

std::string_view without_lines(std::string_view text) {
    text = without_leading_lines(text);
    return text.substr(0, text.find_last_not_of('\n') + 1);
}

bool begins_with_system(const Conversation& conversation) {
    return !conversation.empty() && conversation.front().role == Role::system;
}

/// User and assistant take turns from `first` on.
void require_turns(const Conversation& conversation, std::size_t first) {
    for (std::size_t i = first; i < conversation.size(); ++i) {
        if ((conversation[i].role == Role::user) == ((i - first) % 2 == 0)) continue;
        throw DecoderError(
            fmt::format("message {} is of the {}; with this model user and assistant take turns, the user "
                        "first",
                        i, name_of(conversation[i].role)));
    }
}

void refuse_system(const Conversation& conversation, std::size_t first) {
    for (std::size_t i = first; i < conversation.size(); ++i) {
        if (conversation[i].role == Role::system)
            throw DecoderError(
                fmt::format("message {} is of the system; this model knows {}", i,
                            first == 0 ? "no system messages" : "one system message alone, the first"));
    }
}

std::string llama3_message(std::string_view role, std::string_view content) {
    return fmt::format("<|start_header_id|>{}<|end_header_id|>\n\n{}<|eot_id|>", role, content);
}

std::string llama3_text(const ChatFormat& format, const Conversation& conversation, const ChatWords& words,
                        const ChatVariables& variables) {
    std::string text = words.bos;
    std::size_t first = 0;
    if (format.says_dates) {
        first = begins_with_system(conversation) ? 1 : 0;
        const std::string_view system =
            first == 1 ? trimmed(conversation.front().content) : std::string_view();
        const bool has_own_date = format.takes_date && !variables.date_string.empty();
        const std::string& date = has_own_date          ? variables.date_string
                                  : format.date.empty() ? words.today
                                                        : format.date;
        text += llama3_message(
            "system",
            fmt::format("Cutting Knowledge Date: December 2023\nToday Date: {}\n\n{}", date, system));
    }
    for (std::size_t i = first; i < conversation.size(); ++i)
        text += llama3_message(name_of(conversation[i].role), trimmed(conversation[i].content));
    return text + "<|start_header_id|>assistant<|end_header_id|>\n\n";
}

/// The last message of the user that is no answer of a tool.
std::size_t last_query(const Conversation& conversation) {
    for (std::size_t i = conversation.size(); i-- > 0;) {
        const std::string& content = conversation[i].content;
        const bool is_tool = content.starts_with("<tool_response>") && content.ends_with("</tool_response>");
        if (conversation[i].role == Role::user && !is_tool) return i;
    }
    return conversation.size() - 1;
}

/// An answer of Qwen3's: thoughts stay where no question followed.
std::string thoughtful_answer(const Message& message, bool takes_thoughts, bool follows_query, bool is_last) {
    constexpr std::string_view begin = "<think>";
    constexpr std::string_view end = "</think>";
    std::string_view content = message.content;
    std::string_view thought;
    if (takes_thoughts && message.thoughts) {
        thought = *message.thoughts;
    } else if (const std::size_t at = content.find(end); at != std::string_view::npos) {
        thought = content.substr(0, at);
        if (const std::size_t from = thought.rfind(begin); from != std::string_view::npos)
            thought = thought.substr(from + begin.size());
        thought = without_lines(thought);
        content = without_leading_lines(content.substr(content.rfind(end) + end.size()));
    }
    if (!follows_query || (!is_last && thought.empty())) return std::string(content);
    return fmt::format("<think>\n{}\n</think>\n\n{}", without_lines(thought), without_leading_lines(content));
}

std::string separated_text(const Conversation& conversation) {
    std::string text;
    for (const Message& message : conversation)
        text += fmt::format("<|im_start|>{}<|im_sep|>{}<|im_end|>", name_of(message.role), message.content);
    return text + "<|im_start|>assistant<|im_sep|>";
}

std::string opened_text(const ChatFormat& format, const Conversation& conversation) {
    const bool has_own = begins_with_system(conversation);
    std::string text;
    if (has_own || format.has_default_system)
        text = fmt::format("<|im_start|>system\n{}<|im_end|>\n",
                           has_own ? conversation.front().content : format.default_system);
    refuse_system(conversation, 1);
    require_turns(conversation, has_own ? 1 : 0);
    if (conversation.back().role != Role::user)
        throw DecoderError("there is no message of the user to answer");
    for (const Message& message : conversation) {
        if (message.role == Role::user)
            text += fmt::format("<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n", message.content);
        if (message.role == Role::assistant) text += message.content + "<|im_end|>\n";
    }
    return text;
}

std::string chatml_text(const ChatFormat& format, const Conversation& conversation,
                        const ChatVariables& variables) {
    if (format.has_separator) return separated_text(conversation);
    if (format.opens_answers) return opened_text(format, conversation);
    std::string text;
    if (format.has_default_system && !begins_with_system(conversation))
        text = fmt::format("<|im_start|>system\n{}<|im_end|>\n", format.default_system);
    const std::size_t query = format.drops_thoughts ? last_query(conversation) : 0;
    for (std::size_t i = 0; i < conversation.size(); ++i) {
        const Message& message = conversation[i];
        const bool thinks = format.drops_thoughts && message.role == Role::assistant;
        text += fmt::format("<|im_start|>{}\n{}<|im_end|>\n", name_of(message.role),
                            thinks ? thoughtful_answer(message, format.takes_thoughts, i > query,
                                                       i + 1 == conversation.size())
                                   : message.content);
    }
    if (format.continues_answers && conversation.back().role == Role::assistant) return text;
    text += "<|im_start|>assistant\n";
    return variables.enable_thinking ? text : text + format.no_thoughts;
}

std::string mistral_text(const ChatFormat& format, const Conversation& conversation, const ChatWords& words) {
    const bool takes_system = format.system != ChatFormat::System::refused;
    const std::size_t first = takes_system && begins_with_system(conversation) ? 1 : 0;
    refuse_system(conversation, first);
    require_turns(conversation, first);
    if (first == conversation.size()) throw DecoderError("there is no message of the user");
    const std::size_t with_system =
        format.system == ChatFormat::System::with_first ? first : conversation.size() - 1;
    std::string text = words.bos;
    for (std::size_t i = first; i < conversation.size(); ++i) {
        const std::string& content = conversation[i].content;
        if (conversation[i].role == Role::assistant) {
            text += format.before_answer;
            text += format.trims_answer ? trimmed(content) : content;
            text += words.eos + format.behind_answer;
            continue;
        }
        text += format.open;
        if (first == 1 && i == with_system) text += conversation.front().content + "\n\n";
        text += content + format.close;
    }
    return text;
}

std::string gemma_text(const Conversation& conversation, const ChatWords& words) {
    refuse_system(conversation, 0);
    require_turns(conversation, 0);
    std::string text = words.bos;
    for (const Message& message : conversation)
        text += fmt::format("<start_of_turn>{}\n{}<end_of_turn>\n",
                            message.role == Role::user ? "user" : "model", trimmed(message.content));
    return text + "<start_of_turn>model\n";
}

std::string phi3_text(const ChatFormat& format, const Conversation& conversation) {
    std::string text;
    for (const Message& message : conversation) {
        if (format.skips_empty_system && message.role == Role::system && message.content.empty()) continue;
        text += fmt::format("<|{}|>\n{}<|end|>\n", name_of(message.role), message.content);
    }
    return text + "<|assistant|>\n";
}

}  // namespace

std::string chat_text(const ChatFormat& format, const Conversation& said, const ChatWords& words,
                      const ChatVariables& variables) {
    if (said.empty()) throw DecoderError("the conversation is empty");
    Conversation conversation = said;
    for (Message& message : conversation) {  // a terminal and C send what they like
        if (!is_utf8(message.content)) message.content = lossy_utf8(message.content);
        if (message.thoughts && !is_utf8(*message.thoughts)) message.thoughts = lossy_utf8(*message.thoughts);
    }
    switch (format.family) {
        case ChatFamily::llama3: return llama3_text(format, conversation, words, variables);
        case ChatFamily::chatml: return chatml_text(format, conversation, variables);
        case ChatFamily::mistral: return mistral_text(format, conversation, words);
        case ChatFamily::gemma: return gemma_text(conversation, words);
        case ChatFamily::phi3: return phi3_text(format, conversation);
    }
    return {};
}

}  // namespace hone::decoder
