#include "decoder/chat/chat_template.h"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <vector>

#include "decoder/chat/template_code.h"
#include "decoder/error.h"
#include "decoder/tokenizer/json_file.h"
#include "decoder/tokenizer/json_place.h"
#include "runtime/system/text_file.h"

namespace hone::decoder {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_template_bytes = std::size_t{1} << 20;

struct Source {
    std::string place;  ///< how messages begin
    std::string text;
};

std::string template_text(const JsonPlace& json) {
    std::string text = json.text();
    if (text.size() > max_template_bytes)
        json.refuse(fmt::format("longer than {} bytes, the most that is read", max_template_bytes));
    return text;
}

/// One text, or several with names, of which "default" counts.
std::string named_default(const JsonPlace& json) {
    if (!json.value().is_array()) return template_text(json);
    for (std::size_t i = 0; i < json.array_size(); ++i) {
        const JsonPlace one = json.at(i);
        if (one.at("name").text() == "default") return template_text(one.at("template"));
    }
    json.refuse("it has none that is called \"default\"");
}

Source read_source(const fs::path& folder) {
    if (const fs::path file = folder / "chat_template.jinja"; runtime::has_entry(file))
        return {place_of(file), runtime::read_text_file(file, max_template_bytes)};
    const fs::path file = folder / "tokenizer_config.json";
    if (runtime::has_entry(file)) {
        const nlohmann::json json = read_json_file(file);
        const JsonPlace place(json, place_of(file));
        if (const std::optional<JsonPlace> found = place.find("chat_template"))
            return {place_of(file), named_default(*found)};
    }
    throw DecoderError(
        fmt::format("{} has no chat template: a base model, which continues texts", folder.string()));
}

/// The tokens that messages are made of, the one that ends a turn first. Mistral's may be plain text.
std::vector<const char*> tokens_of(const ChatFormat& format) {
    if (format.has_separator) return {"<|im_end|>", "<|im_start|>", "<|im_sep|>"};
    switch (format.family) {
        case ChatFamily::llama3: return {"<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>"};
        case ChatFamily::chatml: return {"<|im_end|>", "<|im_start|>"};
        case ChatFamily::mistral: return {};
        case ChatFamily::gemma: return {"<end_of_turn>", "<start_of_turn>"};
        case ChatFamily::phi3: return {"<|end|>", "<|user|>", "<|assistant|>", "<|system|>"};
    }
    return {};
}

std::string text_of_token(const Tokenizer& tokenizer, std::optional<int> id, const Source& source,
                          const char* name) {
    if (!id)
        throw DecoderError(
            fmt::format("{}the chat template needs {}, which the folder does not name", source.place, name));
    return std::string(tokenizer.token_of(*id).value_or(""));
}

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    std::array<char, 32> text{};
    localtime_r(&now, &local);
    return {text.data(), std::strftime(text.data(), text.size(), "%d %b %Y", &local)};
}

ChatFormat read_format(const Source& source) {
    try {
        return read_chat_format(source.text);
    } catch (const DecoderError& error) {
        throw DecoderError(source.place + error.what());
    }
}

}  // namespace

ChatTemplate ChatTemplate::load(const fs::path& folder, const Tokenizer& tokenizer) {
    const Source source = read_source(folder);
    ChatTemplate loaded;
    loaded.format_ = read_format(source);
    loaded.code_ = template_code(source.text).code;
    for (const char* token : tokens_of(loaded.format_)) {
        const std::optional<int> id = tokenizer.id_of(token);
        if (!id || !tokenizer.is_special(*id))
            throw DecoderError(
                fmt::format("{}the chat template needs the special token {}, which the tokenizer lacks",
                            source.place, token));
        if (!loaded.turn_end_) loaded.turn_end_ = id;
    }
    if (loaded.format_.begins_with_bos)
        loaded.words_.bos = text_of_token(tokenizer, tokenizer.bos_id(), source, "a BOS token");
    if (loaded.format_.family != ChatFamily::mistral) return loaded;
    const std::vector<int>& ends = tokenizer.eos_ids();
    loaded.words_.eos = text_of_token(tokenizer, ends.empty() ? std::nullopt : std::optional(ends.front()),
                                      source, "an EOS token");
    return loaded;
}

std::optional<ChatTemplate> ChatTemplate::find(const std::filesystem::path& folder,
                                               const Tokenizer& tokenizer, std::string& why_none) {
    try {
        return load(folder, tokenizer);
    } catch (const runtime::InputError& error) {
        why_none = error.what();
        return std::nullopt;
    }
}

std::string ChatTemplate::render(const Conversation& conversation, const ChatVariables& variables) const {
    ChatWords words = words_;
    words.today = today();
    return chat_text(format_, conversation, words, variables);
}

bool ChatTemplate::mentions(std::string_view word) const {
    const auto is_of_name = [](char c) {
        return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    std::string_view left = code_;
    while (!left.empty()) {
        if (left.front() == '`') {  // a literal
            left.remove_prefix(std::min(left.find('`', 1), left.size() - 1) + 1);
            continue;
        }
        const auto end = std::ranges::find_if_not(left, is_of_name);
        const auto length = static_cast<std::size_t>(end - left.begin());
        if (length > 0 && left.substr(0, length) == word) return true;
        left.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return false;
}

}  // namespace hone::decoder
