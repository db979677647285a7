#include "decoder/chat/chat_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "decoder/error.h"
#include "decoder/text/utf8.h"

namespace hone::decoder {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
    constexpr std::size_t shown = 80;
    throw DecoderError(
        fmt::format("the chat template is not known ({}): {:?}...; known are those of Llama 3, ChatML "
                    "(Qwen2, Qwen2.5, Qwen3), Mistral, Gemma 2 and Phi-3",
                    why, lossy_utf8(text.substr(0, shown))));
}

/// A fragment of the template; Jinja takes either quote.
bool has(std::string_view text, std::string_view fragment) {
    return text.find(fragment) != std::string_view::npos;
}

bool has_all(std::string_view text, std::initializer_list<std::string_view> fragments) {
    return std::ranges::all_of(fragments, [&](std::string_view fragment) { return has(text, fragment); });
}

/// Line ends as the text has them that the template makes: published templates have them as they are, or as
/// "\n".
std::string with_line_ends(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool escaped = text.substr(i, 2) == "\\n";
        out += escaped ? '\n' : text[i];
        i += escaped ? 1 : 0;
    }
    return out;
}

/// The string literal around a place: 'text' or "text".
std::string_view literal_around(std::string_view text, std::size_t place) {
    const std::size_t quote = text.find_last_of("'\"", place);
    if (quote == std::string_view::npos) return {};
    const std::size_t end = text.find(text[quote], quote + 1);
    return end == std::string_view::npos ? std::string_view() : text.substr(quote + 1, end - quote - 1);
}

ChatFormat read_llama3(std::string_view text) {
    ChatFormat format{.family = ChatFamily::llama3, .begins_with_bos = true};
    format.says_dates = has(text, "Cutting Knowledge Date: ");
    if (!format.says_dates) {
        if (has(text, "raise_exception") || has(text, "system_message"))
            refuse(text, "of Llama 3's kind, with more");
        return format;
    }
    if (!has_all(text, {"Cutting Knowledge Date: December 2023\\n", "\"Today Date: \" + date_string"}))
        refuse(text, "with other dates than Llama 3.1's");
    if (has(text, "strftime_now")) return format;
    constexpr std::string_view fixed = "set date_string = \"";
    const std::size_t at = text.find(fixed);
    if (at == std::string_view::npos) refuse(text, "without a date");
    format.date = literal_around(text, at + fixed.size() - 1);
    return format;
}

ChatFormat read_chatml(std::string_view text) {
    ChatFormat format{.family = ChatFamily::chatml};
    format.drops_thoughts = has(text, "</think>");
    if (format.drops_thoughts && !has_all(text, {"enable_thinking is false", "last_query_index"}))
        refuse(text, "of ChatML's kind, thinking otherwise than Qwen3's");
    if (has(text, "bos_token") || has(text, "|trim") || has(text, "| trim"))
        refuse(text, "of ChatML's kind, with more");
    const std::string whole = with_line_ends(text);
    constexpr std::string_view begin = "<|im_start|>system\n";
    constexpr std::string_view end = "<|im_end|>";
    for (std::size_t at = whole.find(begin); at != std::string::npos; at = whole.find(begin, at + 1)) {
        const std::size_t from = at + begin.size();
        const std::size_t to = whole.find(end, from);
        if (to == std::string::npos ||
            whole.substr(from, to - from).find_first_of("'\"{") != std::string::npos)
            continue;
        format.has_default_system = true;
        format.default_system = whole.substr(from, to - from);
    }
    return format;
}

ChatFormat read_mistral(std::string_view text) {
    ChatFormat format{.family = ChatFamily::mistral, .begins_with_bos = true};
    if (!has(text, "roles must alternate") || has(text, "<<SYS>>") || has(text, "[SYSTEM_PROMPT]"))
        refuse(text, "with [INST], but not Mistral's");
    format.open = literal_around(text, text.find("[INST]"));
    format.close = literal_around(text, text.find("[/INST]"));
    if (has(text, "system_message"))
        format.system = has(text, "loop.first and system_message") ? ChatFormat::System::with_first
                                                                   : ChatFormat::System::with_last;
    const bool spaced = has(text, "\" \" + message[\"content\"]") || has(text, "' ' + message['content']");
    format.before_answer = spaced ? " " : "";
    format.trims_answer = has(text, "|trim + eos_token") || has(text, "| trim + eos_token");
    const bool begins = format.open.ends_with("[INST]") || format.open.ends_with("[INST] ");
    if (!begins || !format.close.ends_with("[/INST]")) refuse(text, "with [INST], but not Mistral's");
    return format;
}

ChatFormat read_gemma(std::string_view text) {
    if (!has_all(text, {"System role not supported", "roles must alternate"}))
        refuse(text, "of Gemma's kind, but not Gemma 2's");
    return {.family = ChatFamily::gemma, .begins_with_bos = true};
}

ChatFormat read_phi3(std::string_view text) {
    if (!has(text, "<|system|>") || has(text, "bos_token"))
        refuse(text, "of Phi's kind, but not Phi-3's of July 2024");
    return {.family = ChatFamily::phi3, .skips_empty_system = has(text, "'system' and message['content']")};
}

}  // namespace

ChatFormat read_chat_format(std::string_view text) {
    if (has_all(text, {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"})) return read_llama3(text);
    if (has_all(text, {"<|im_start|>", "<|im_end|>", "<|im_start|>assistant"})) return read_chatml(text);
    if (has_all(text, {"[INST]", "[/INST]"})) return read_mistral(text);
    if (has_all(text, {"<start_of_turn>", "<end_of_turn>", "<start_of_turn>model"})) return read_gemma(text);
    if (has_all(text, {"<|user|>", "<|assistant|>", "<|end|>"})) return read_phi3(text);
    refuse(text, "none of their tokens is in it");
}

}  // namespace hone::decoder
