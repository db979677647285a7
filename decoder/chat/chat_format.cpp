#include "decoder/chat/chat_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "decoder/chat/template_code.h"
#include "decoder/error.h"
#include "decoder/text/utf8.h"

namespace hone::decoder {
namespace {

struct Template {
    std::string_view text;  ///< as its makers have it
    std::string_view code;
};

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
    constexpr std::size_t shown = 80;
    throw DecoderError(
        fmt::format("the chat template is not known ({}): {:?}...; known are those of Llama 3, ChatML "
                    "(Qwen2, Qwen2.5, Qwen3), Mistral, Gemma 2, Phi-3 and Phi-4",
                    why, lossy_utf8(text.substr(0, shown))));
}

bool has(std::string_view text, std::string_view fragment) {
    return text.find(fragment) != std::string_view::npos;
}

bool has_all(std::string_view text, std::initializer_list<std::string_view> fragments) {
    return std::ranges::all_of(fragments, [&](std::string_view fragment) { return has(text, fragment); });
}

/// The statements that write: what stands between "{{" and "}}".
std::vector<std::string_view> outputs_of(std::string_view code) {
    std::vector<std::string_view> outputs;
    for (std::size_t at = code.find("{{"); at != std::string_view::npos;) {
        const std::size_t from = at + 2;
        const std::size_t end = std::min(code.find("}}", from), code.size());
        outputs.push_back(code.substr(from, end - from));
        at = code.find("{{", end);
    }
    return outputs;
}

/// Refuses a template that writes something else than `known`, or never the first of these, which answers
/// follow. One that knows tools writes more for them, but not the tokens `marks`.
void require_outputs(const Template& from, const std::vector<std::string>& known,
                     std::initializer_list<std::string_view> marks) {
    const bool knows_tools = has(from.code, "tool");
    const std::vector<std::string_view> outputs = outputs_of(from.code);
    if (std::ranges::find(outputs, known.front()) == outputs.end())
        refuse(from.text, fmt::format("it never writes {:?}", known.front()));
    for (const std::string_view output : outputs) {
        const bool has_mark =
            std::ranges::any_of(marks, [&](std::string_view mark) { return has(output, mark); });
        if (output.starts_with("raise_exception(") || (knows_tools && !has_mark) ||
            std::ranges::find(known, output) != known.end())
            continue;
        constexpr std::size_t shown = 120;
        refuse(from.text, fmt::format("it writes {:?}", lossy_utf8(output.substr(0, shown))));
    }
}

/// The literal behind `name`, which a template sets: empty where it is no literal.
std::string literal_behind(std::string_view code, std::string_view name) {
    const std::size_t at = code.find(name);
    if (at == std::string_view::npos) return {};
    const std::size_t begin = at + name.size();
    return std::string(code.substr(begin, code.find('`', begin) - begin));
}

void read_dates(const Template& from, ChatFormat& format) {
    if (!has_all(from.code, {"{{`Cutting Knowledge Date: December 2023\n`}}", "`Today Date: `+date_string"}))
        refuse(from.text, "with other dates than Llama 3.1's");
    format.takes_date = has(from.code, "{%if not date_string is defined%}");
    if (has(from.code, "strftime_now")) return;
    format.date = literal_behind(from.code, "set date_string=`");
    if (format.date.empty()) refuse(from.text, "without a date");
}

std::vector<std::string> llama3_outputs(const ChatFormat& format) {
    constexpr const char* message = "<|end_header_id|>\n\n`+message.content|trim+`<|eot_id|>`";
    std::vector<std::string> known{"`<|start_header_id|>assistant<|end_header_id|>\n\n`", "bos_token",
                                   fmt::format("`<|start_header_id|>`+message.role+`{}", message)};
    for (const char* role : {"system", "user", "assistant"})
        known.push_back(fmt::format("`<|start_header_id|>{}{}", role, message));
    if (!format.says_dates) return known;
    for (const char* role : {"system", "user", "ipython"})  // the first with the dates
        known.push_back(fmt::format("`<|start_header_id|>{}<|end_header_id|>\n\n`", role));
    return known;
}

ChatFormat read_llama3(const Template& from) {
    ChatFormat format{.family = ChatFamily::llama3, .begins_with_bos = has(from.code, "bos_token")};
    format.says_dates = has(from.code, "Cutting Knowledge Date: ");
    if (format.says_dates)
        read_dates(from, format);
    else if (has(from.code, "raise_exception") || has(from.code, "system_message"))
        refuse(from.text, "of Llama 3's kind, with more");
    std::vector<std::string> known = llama3_outputs(format);
    // The first one's way: "content" is set, and written.
    std::string code(from.code);
    const std::size_t set = code.find("{%set content=`");
    if (const std::size_t end = code.find("%}", set); set != std::string::npos && end != std::string::npos) {
        code.replace(end, 2, "}}").replace(set, 14, "{{");
        known.emplace_back("content");
    }
    if (!has(code, "message.content|trim")) refuse(from.text, "of Llama 3's kind, without messages");
    require_outputs({from.text, code}, known, {"<|start_header_id|>"});
    return format;
}

/// The system message of conversations without one, as it is written.
std::string read_default_system(const Template& from, ChatFormat& format) {
    constexpr std::string_view begin = "`<|im_start|>system\n";
    constexpr std::string_view end = "<|im_end|>\n`";
    std::string written;
    for (const std::string_view output : outputs_of(from.code)) {
        const bool is_literal = output.find('`', 1) + 1 == output.size();
        if (!is_literal || !output.starts_with(begin) || !output.ends_with(end)) continue;
        if (format.has_default_system && output != written)
            refuse(from.text, "of ChatML's kind, with several default system messages");
        written = output;
        format.has_default_system = true;
        format.default_system = output.substr(begin.size(), output.size() - begin.size() - end.size());
    }
    return written;
}

std::vector<std::string> chatml_outputs(bool thinks) {
    std::vector<std::string> known{"`<|im_start|>assistant\n`", "`<|im_end|>\n`",
                                   "`<|im_start|>system\n`+messages[0].content+`<|im_end|>\n`",
                                   // With tools alone.
                                   "`<|im_start|>`+message.role", "`<|im_start|>system\n`",
                                   "`<|im_start|>user`"};
    for (const char* content : {"message.content", "content"}) {
        known.push_back(fmt::format("`<|im_start|>`+message.role+`\n`+{}", content));
        known.push_back(fmt::format("`<|im_start|>`+message.role+`\n`+{}+`<|im_end|>\n`", content));
        for (const char* role : {"system", "user", "assistant"})
            known.push_back(fmt::format("`<|im_start|>{}\n`+{}+`<|im_end|>\n`", role, content));
    }
    if (thinks)
        known.emplace_back(
            "`<|im_start|>`+message.role+`\n<think>\n`+reasoning_content.strip(`\n`)+`\n</think>\n\n`+"
            "content.lstrip(`\n`)");
    return known;
}

/// Phi-4, where each role has its statement.
ChatFormat read_separated(const Template& from) {
    std::vector<std::string> known{"`<|im_start|>assistant<|im_sep|>`"};
    for (const char* role : {"system", "user", "assistant"})
        known.push_back(fmt::format("`<|im_start|>{}<|im_sep|>`+message.content+`<|im_end|>`", role));
    require_outputs(from, known, {"<|im_start|>", "<|im_sep|>", "<|im_end|>"});
    return {.family = ChatFamily::chatml, .has_separator = true};
}

/// What LLaMA-Factory writes for models that it fine-tunes: a system message that is set, questions that open
/// their answers, and other messages left out.
ChatFormat read_opened(const Template& from) {
    ChatFormat format{.family = ChatFamily::chatml, .opens_answers = true};
    constexpr std::string_view set = "set system_message=";
    constexpr std::string_view own = "set system_message=messages[0].content%}";
    if (from.code.find(own) != from.code.rfind(set) || has(from.code, "|trim") || has(from.code, "bos_token"))
        refuse(from.text, "of ChatML's kind, with system messages of another form");
    format.has_default_system = from.code.find(set) != from.code.rfind(set);
    if (format.has_default_system) format.default_system = literal_behind(from.code, "set system_message=`");
    require_outputs(from,
                    {"`<|im_start|>user\n`+content+`<|im_end|>\n<|im_start|>assistant\n`",
                     "`<|im_start|>system\n`+system_message+`<|im_end|>\n`", "content+`<|im_end|>\n`"},
                    {"<|im_start|>", "<|im_end|>"});
    return format;
}

ChatFormat read_chatml(const Template& from) {
    const std::string_view code = from.code;
    if (has(code, "<|im_sep|>")) return read_separated(from);
    if (has(code, "+system_message+")) return read_opened(from);
    ChatFormat format{.family = ChatFamily::chatml};
    format.drops_thoughts = has(code, "</think>");
    if (format.drops_thoughts) {
        format.takes_thoughts = has(code, "message.reasoning_content is ");
        format.no_thoughts = literal_behind(code, "enable_thinking is false%}{{`");
        if (format.no_thoughts.empty() || !has(code, "last_query_index"))
            refuse(from.text, "of ChatML's kind, thinking otherwise than Qwen3's");
    }
    if (has(code, "bos_token") || has(code, "|trim") || has(code, ".strip()") || has(code, "{%macro"))
        refuse(from.text, "of ChatML's kind, with more");
    std::vector<std::string> known = chatml_outputs(format.drops_thoughts);
    if (format.drops_thoughts) known.push_back(fmt::format("`{}`", format.no_thoughts));
    known.push_back(read_default_system(from, format));
    require_outputs(from, known, {"<|im_start|>"});
    format.continues_answers = has(code, "messages[-1].role!=`assistant`");
    return format;
}

void read_mistral_system(const Template& from, ChatFormat& format) {
    if (!has(from.code, "system_message")) return;
    const bool with_first = has(from.code, "loop.first and system_message");
    const bool is_own = has(from.code, "set system_message=messages[0].content%}") &&
                        from.code.find("set system_message=") == from.code.rfind("set system_message=");
    if (!is_own || (!with_first && !has(from.code, "loop.last and system_message")))
        refuse(from.text, "with [INST], but with system messages otherwise than Mistral's");
    format.system = with_first ? ChatFormat::System::with_first : ChatFormat::System::with_last;
}

/// The literal that has the first `token`.
std::string literal_with(std::string_view code, std::string_view token) {
    const std::size_t at = code.find(token);
    const std::size_t begin = code.rfind('`', at) + 1;
    return std::string(code.substr(begin, code.find('`', at) - begin));
}

/// What the answers' statement is, with its spaces.
std::string read_mistral_answer(const Template& from, ChatFormat& format) {
    for (const std::string_view output : outputs_of(from.code)) {
        if (!has(output, "eos_token") || !has(output, "message.content")) continue;
        format.before_answer = output.starts_with("` `+") ? " " : "";
        format.behind_answer = output.ends_with("+` `") ? " " : "";
        format.trims_answer = has(output, "|trim");
        break;
    }
    return fmt::format("{}message.content{}+eos_token{}", format.before_answer.empty() ? "" : "` `+",
                       format.trims_answer ? "|trim" : "", format.behind_answer.empty() ? "" : "+` `");
}

ChatFormat read_mistral(const Template& from) {
    const std::string_view code = from.code;
    ChatFormat format{.family = ChatFamily::mistral, .begins_with_bos = has(code, "bos_token")};
    if (!has(code, "roles must alternate") || has(code, "<<SYS>>") || has(code, "[SYSTEM_PROMPT]"))
        refuse(from.text, "with [INST], but not Mistral's");
    format.open = literal_with(code, "[INST]");
    format.close = literal_with(code, "[/INST]");
    const bool begins = format.open.ends_with("[INST]") || format.open.ends_with("[INST] ");
    if (!begins || !format.close.ends_with("[/INST]")) refuse(from.text, "with [INST], but not Mistral's");
    read_mistral_system(from, format);
    require_outputs(
        from,
        {fmt::format("`{}`+message.content+`{}`", format.open, format.close), "bos_token",
         fmt::format("`{}`+system_message+`\n\n`+message.content+`{}`", format.open, format.close),
         read_mistral_answer(from, format), "`]`+eos_token"},
        {"[INST]", "eos_token"});
    return format;
}

ChatFormat read_gemma(const Template& from) {
    if (!has_all(from.code, {"System role not supported", "roles must alternate"}))
        refuse(from.text, "of Gemma's kind, but not Gemma 2's");
    require_outputs(from,
                    {"`<start_of_turn>model\n`", "bos_token",
                     "`<start_of_turn>`+role+`\n`+message.content|trim+`<end_of_turn>\n`"},
                    {"<start_of_turn>", "<end_of_turn>"});
    return {.family = ChatFamily::gemma, .begins_with_bos = has(from.code, "bos_token")};
}

ChatFormat read_phi3(const Template& from) {
    if (!has(from.code, "<|system|>") || has(from.code, "bos_token"))
        refuse(from.text, "of Phi's kind, but not Phi-3's of July 2024");
    std::vector<std::string> known{"`<|assistant|>\n`", "eos_token"};  // the latter where nothing is asked
    for (const char* role : {"system", "user", "assistant"})
        known.push_back(fmt::format("`<|{}|>\n`+message.content+`<|end|>\n`", role));
    require_outputs(from, known, {"<|user|>", "<|assistant|>", "<|system|>", "<|end|>"});
    return {.family = ChatFamily::phi3, .skips_empty_system = has(from.code, "`system`and message.content")};
}

ChatFormat read_known(const Template& from) {
    if (has_all(from.text, {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}))
        return read_llama3(from);
    if (has_all(from.text, {"<|im_start|>", "<|im_end|>", "<|im_start|>assistant"})) return read_chatml(from);
    if (has_all(from.text, {"[INST]", "[/INST]"})) return read_mistral(from);
    if (has_all(from.text, {"<start_of_turn>", "<end_of_turn>", "<start_of_turn>model"}))
        return read_gemma(from);
    if (has_all(from.text, {"<|user|>", "<|assistant|>", "<|end|>"})) return read_phi3(from);
    refuse(from.text, "none of their tokens is in it");
}

}  // namespace

ChatFormat read_chat_format(std::string_view text) {
    const TemplateCode read = template_code(text);
    ChatFormat format = read_known({text, read.code});
    if (read.has_text) refuse(text, "with text between its statements");
    return format;
}

}  // namespace hone::decoder
