#include "decoder/chat/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>
#include <vector>

#include "decoder/chat/turn_end.h"
#include "decoder/error.h"
#include "decoder/jinja/limits.h"
#include "decoder/jinja/refused.h"
#include "decoder/text/utf8.h"
#include "decoder/tokenizer/json_file.h"
#include "decoder/tokenizer/json_place.h"
#include "decoder/tokenizer/special_tokens.h"
#include "runtime/system/text_file.h"

namespace hone::decoder {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct Source {
    std::string place;
    std::string text;
};

/// One text, or several with names, of which "default" counts.
std::string named_default(const JsonPlace& json) {
    if (!json.value().is_array()) return json.text();
    for (std::size_t i = 0; i < json.array_size(); ++i) {
        const JsonPlace one = json.at(i);
        if (one.at("name").text() == "default") return one.at("template").text();
    }
    json.refuse("it has none that is called \"default\"");
}

Source read_source(const fs::path& folder) {
    if (const fs::path file = folder / "chat_template.jinja"; runtime::has_entry(file))
        return {place_of(file), runtime::read_text_file(file, jinja::max_template_bytes)};
    const fs::path file = folder / "tokenizer_config.json";
    if (runtime::has_entry(file)) {
        const nlohmann::json json = read_json_file(file);
        const JsonPlace place(json, place_of(file));
        if (const std::optional<JsonPlace> found = place.find("chat_template"))
            return {place_of(file) + "chat_template: ", named_default(*found)};
    }
    throw DecoderError(
        fmt::format("{} has no chat template: a base model, which continues texts", folder.string()));
}

/// The special tokens that the folder names, as transformers hands them to templates: those without a name
/// are no variables. Where the folder does not say a word of BOS or EOS, the tokenizer's count.
ordered_json read_words(const fs::path& folder, const Tokenizer& tokenizer) {
    static constexpr std::array<const char*, 7> names{"bos_token", "eos_token", "unk_token", "sep_token",
                                                      "pad_token", "cls_token", "mask_token"};
    ordered_json words = ordered_json::object();
    std::vector<std::string> said;
    for (const char* file_name : {"tokenizer_config.json", "special_tokens_map.json"}) {
        const fs::path file = folder / file_name;
        if (!runtime::has_entry(file)) continue;
        const nlohmann::json json = read_json_file(file);
        for (const char* name : names) {
            if (json.contains(name)) said.emplace_back(name);
            const std::optional<std::string> token = token_text(JsonPlace(json, place_of(file)), name);
            if (token && !words.contains(name)) words[name] = *token;
        }
    }
    const auto add = [&](const char* name, std::optional<int> id) {
        if (!id || std::ranges::find(said, name) != said.end()) return;
        words[name] = std::string(tokenizer.token_of(*id).value_or(""));
    };
    const std::vector<int>& ends = tokenizer.eos_ids();
    add("bos_token", tokenizer.bos_id());
    add("eos_token", ends.empty() ? std::nullopt : std::optional(ends.front()));
    return words;
}

std::tm now() {
    const std::time_t seconds = std::time(nullptr);
    std::tm local{};
    localtime_r(&seconds, &local);
    return local;
}

/// A terminal and C send what they like.
std::string as_text(const std::string& bytes) { return is_utf8(bytes) ? bytes : lossy_utf8(bytes); }

ordered_json messages_of(const Conversation& conversation) {
    ordered_json messages = ordered_json::array();
    for (const Message& message : conversation) {
        ordered_json& made = messages.emplace_back(ordered_json::object());
        made["role"] = name_of(message.role);
        made["content"] = as_text(message.content);
        if (message.thoughts) made["reasoning_content"] = as_text(*message.thoughts);
    }
    return messages;
}

jinja::Template read_template(const Source& source) {
    try {
        return jinja::Template::read(source.text);
    } catch (const DecoderError& error) {
        throw DecoderError(source.place + error.what());
    }
}

}  // namespace

bool is_own_variable(std::string_view name) {
    return name == "messages" || name == "tools" || name == "documents" || name == "add_generation_prompt";
}

ChatTemplate::ChatTemplate(std::string place, jinja::Template read, ordered_json words)
    : place_(std::move(place)), template_(std::move(read)), words_(std::move(words)) {}

ChatTemplate ChatTemplate::load(const fs::path& folder, const Tokenizer& tokenizer) {
    const Source source = read_source(folder);
    ChatTemplate loaded(source.place, read_template(source), read_words(folder, tokenizer));
    loaded.turn_end_ = find_turn_end(loaded, tokenizer);
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
    if (conversation.empty()) throw DecoderError("the conversation is empty");
    ordered_json given = words_;
    for (const auto& [name, value] : variables.items()) given[name] = value;
    given["messages"] = messages_of(conversation);
    given["tools"] = nullptr;
    given["documents"] = nullptr;
    given["add_generation_prompt"] = true;
    try {
        return template_.render(given, now());
    } catch (const jinja::Refused& refused) {
        throw DecoderError(std::string("the model's chat template refuses the conversation: ") +
                           refused.what());
    } catch (const DecoderError& error) {
        throw DecoderError(place_ + error.what());
    }
}

}  // namespace hone::decoder
