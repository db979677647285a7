#include "decoder/serve/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <span>

#include "decoder/forward/token_chances.h"
#include "decoder/serve/api_error.h"
#include "decoder/serve/fields.h"

namespace hone::decoder {
namespace {

using nlohmann::json;

/// A field that would change the answer, and the values of it that change nothing.
struct Undone {
    const char* name;
    bool (*changes_nothing)(const json&);
    const char* allowed;
};

bool is_nothing(const json&) { return false; }
bool is_true(const json& value) { return value == true; }
bool is_false(const json& value) { return value == false; }
bool is_false_or_0(const json& value) { return value == false || value == 0; }
bool is_0(const json& value) { return value.is_number() && value == 0; }
bool is_1(const json& value) { return value.is_number() && value == 1; }
bool is_empty(const json& value) { return value.is_structured() && value.empty(); }
bool is_no_text(const json& value) { return value == ""; }
bool is_plain_text(const json& value) {
    return value.is_object() && (value.empty() || value.value("type", json()) == "text");
}
bool is_none(const json& value) { return value == "none" || value == "auto"; }

constexpr Undone undone[]{
    {"prompt_logprobs", is_false_or_0, "none: a completion has them with echo and logprobs"},
    {"suffix", is_no_text, "none: texts are continued, not filled in"},
    {"best_of", is_1, "1"},
    {"presence_penalty", is_0, "0"},
    {"frequency_penalty", is_0, "0"},
    {"repetition_penalty", is_1, "1"},
    {"logit_bias", is_empty, "none"},
    {"response_format", is_plain_text, "{\"type\": \"text\"}: answers are free text"},
    {"tools", is_empty, "none: no tools are called"},
    {"functions", is_empty, "none: no functions are called"},
    {"tool_choice", is_none, "\"none\" or \"auto\": no tools are called"},
    // What other servers know beside OpenAI's fields.
    {"bad_words", is_empty, "none: no word is kept out"},
    {"allowed_token_ids", is_empty, "none: all tokens are allowed"},
    {"use_beam_search", is_false, "false: tokens are drawn"},
    {"length_penalty", is_1, "1"},
    {"typical_p", is_1, "1"},
    {"truncate_prompt_tokens", is_nothing, "none: prompts are not cut"},
    {"skip_special_tokens", is_true, "true: control tokens are not shown"},
    {"include_stop_str_in_output", is_false, "false: a text ends before its stop"},
    {"guided_json", is_nothing, "none: answers are free text"},
    {"guided_regex", is_nothing, "none: answers are free text"},
    {"guided_choice", is_nothing, "none: answers are free text"},
    {"guided_grammar", is_nothing, "none: answers are free text"},
    {"structured_outputs", is_nothing, "none: answers are free text"},
    {"structural_tag", is_nothing, "none: answers are free text"},
    {"json_schema", is_nothing, "none: answers are free text"},
    {"regex", is_nothing, "none: answers are free text"},
    {"ebnf", is_nothing, "none: answers are free text"},
    {"stop_regex", is_empty, "none: stop has texts"},
    {"no_stop_trim", is_false, "false: a text ends before its stop"},
    {"lora_path", is_nothing, "none: the model is taken as it is"},
    {"chat_template", is_nothing, "none: the folder's is taken"},
    {"add_generation_prompt", is_true, "true: the assistant answers"},
    {"continue_final_message", is_false, "false: the assistant begins a new message"},
};

constexpr Undone undone_of_completions[]{
    {"top_logprobs", is_0, "none: logprobs of a completion says how many"},
};

constexpr Undone undone_of_chats[]{
    {"echo", is_false, "false: the conversation is not repeated"},
};

constexpr int most_likeliest_of_completions = 5;

/// `place`: "prompt", or "prompt[2]", of the field `name`.
std::vector<int> read_ids(const json& list, const char* name, const std::string& place) {
    std::vector<int> ids;
    ids.reserve(list.size());
    for (const json& id : list) {
        if (!id.is_number_integer() || id < 0 || id > INT_MAX)
            throw ApiError(400,
                           fmt::format("{}[{}] is {}; allowed: the id of a token, 0 to {}", place, ids.size(),
                                       shown(id), INT_MAX),
                           name);
        ids.push_back(id.get<int>());
    }
    return ids;
}

std::vector<int> read_end_ids(const Fields& fields) {
    const json* ids = fields.find("stop_token_ids");
    if (ids == nullptr) return {};
    if (!ids->is_array() || ids->size() > max_end_ids)
        fields.refuse("stop_token_ids", fmt::format("an array of up to {} ids", max_end_ids));
    return read_ids(*ids, "stop_token_ids", "stop_token_ids");
}

/// A text that nothing ends before max_tokens has as many as that, and more than the least.
void refuse_least_tokens(const Fields& fields) {
    const json* least = fields.find("min_tokens");
    const bool goes_on =
        fields.boolean("ignore_eos") && fields.find("stop") == nullptr && read_end_ids(fields).empty();
    if (least == nullptr || is_0(*least) || (goes_on && least->is_number_unsigned())) return;
    fields.refuse("min_tokens",
                  "0: a text ends where the model ends it, or with ignore_eos and nothing else that stops it "
                  "at max_tokens");
}

void refuse_undone(const Fields& fields, std::span<const Undone> known) {
    for (const Undone& field : known) {
        const json* value = fields.find(field.name);
        if (value != nullptr && !field.changes_nothing(*value)) fields.refuse(field.name, field.allowed);
    }
}

Wishes read_wishes(const Fields& fields, std::int64_t seed) {
    constexpr double least_share = 1e-6;  // below that of the likeliest of a million tokens: it stays alone
    const double temperature = fields.number("temperature", 0, 2).value_or(1);
    const double top_p = fields.number("top_p", 0, 1).value_or(1);
    return {.temperature = static_cast<float>(top_p < least_share ? 0 : temperature),
            .top_k = static_cast<std::int32_t>(
                std::max<std::int64_t>(0, fields.integer("top_k", -1, INT32_MAX).value_or(0))),
            .top_p = static_cast<float>(std::max(top_p, least_share)),
            .min_p = static_cast<float>(fields.number("min_p", 0, 1).value_or(0)),
            .seed = fields.integer("seed", INT64_MIN / 2, INT64_MAX / 2).value_or(seed)};
}

std::vector<std::string> read_stops(const Fields& fields) {
    const json* stop = fields.find("stop");
    if (stop == nullptr) return {};
    const std::string allowed =
        fmt::format("a text, or up to {} texts, each of 1 to {} bytes", max_stops, max_stop_bytes);
    const json list = stop->is_array() ? *stop : json::array({*stop});
    if (list.size() > max_stops) fields.refuse("stop", allowed);
    std::vector<std::string> stops;
    for (const json& text : list) {
        if (!text.is_string()) fields.refuse("stop", allowed);
        stops.push_back(text.get<std::string>());
        if (stops.back().empty() || stops.back().size() > max_stop_bytes) fields.refuse("stop", allowed);
    }
    return stops;
}

void read_stream(const Fields& fields, ApiRequest& request) {
    request.stream = fields.boolean("stream");
    const json* options = fields.find("stream_options");
    if (options == nullptr) return;
    if (!options->is_object()) fields.refuse("stream_options", "an object");
    request.include_usage = Fields(*options, "stream_options.").boolean("include_usage");
    if (!request.stream) fields.refuse("stream_options", "with \"stream\": true alone");
}

std::optional<int> read_max_tokens(const Fields& fields, int least) {
    for (const char* name : {"max_completion_tokens", "max_tokens"}) {
        if (const auto tokens = fields.integer(name, least, INT_MAX)) return static_cast<int>(*tokens);
    }
    return std::nullopt;
}

std::optional<bool> read_special_tokens(const Fields& fields) {
    if (fields.find("add_special_tokens") == nullptr) return std::nullopt;
    return fields.boolean("add_special_tokens");
}

/// Of a completion: how many of the likeliest, which asks for log probabilities, also with 0.
std::optional<int> read_completion_likeliest(const Fields& fields) {
    const json* value = fields.find("logprobs");
    if (value == nullptr || is_false(*value)) return std::nullopt;
    return static_cast<int>(*fields.integer("logprobs", 0, most_likeliest_of_completions));
}

std::optional<int> read_chat_likeliest(const Fields& fields) {
    const auto likeliest = static_cast<int>(fields.integer("top_logprobs", 0, most_likeliest).value_or(0));
    if (fields.boolean("logprobs")) return likeliest;
    if (likeliest > 0) fields.refuse("top_logprobs", "0, or with \"logprobs\": true");
    return std::nullopt;
}

/// What both have; `least_tokens`: of max_tokens.
ApiRequest read_common(const Fields& fields, std::int64_t seed, int least_tokens) {
    refuse_least_tokens(fields);
    refuse_undone(fields, undone);
    ApiRequest request{.model = fields.text("model").value_or(""),
                       .max_tokens = read_max_tokens(fields, least_tokens),
                       .wishes = read_wishes(fields, seed),
                       .stops = read_stops(fields),
                       .end_ids = read_end_ids(fields),
                       .special_tokens = read_special_tokens(fields),
                       .choices = static_cast<int>(fields.integer("n", 1, max_choices).value_or(1)),
                       .ignore_end = fields.boolean("ignore_eos")};
    read_stream(fields, request);
    return request;
}

constexpr const char* prompt_forms = "a text, an array of ids, or an array of texts or of arrays of ids";

std::vector<Prompt> read_prompts(const Fields& fields) {
    const json* prompt = fields.find("prompt");
    if (prompt == nullptr || (!prompt->is_string() && !prompt->is_array()) || prompt->empty())
        fields.refuse("prompt", prompt_forms);
    if (prompt->is_string()) return {prompt->get<std::string>()};
    if (prompt->front().is_number()) return {read_ids(*prompt, "prompt", "prompt")};
    if (prompt->size() > max_choices) fields.refuse("prompt", fmt::format("up to {} prompts", max_choices));
    std::vector<Prompt> prompts;
    for (const json& one : *prompt) {
        if (one.is_string()) {
            prompts.emplace_back(one.get<std::string>());
        } else if (one.is_array()) {
            prompts.emplace_back(read_ids(one, "prompt", fmt::format("prompt[{}]", prompts.size())));
        } else {
            fields.refuse("prompt", prompt_forms);
        }
    }
    return prompts;
}

/// A text, or parts that are texts.
std::string read_content(const Fields& message, const std::string& place) {
    const json* content = message.find("content");
    if (content != nullptr && content->is_string()) return content->get<std::string>();
    if (content == nullptr || !content->is_array())
        message.refuse("content", "a text, or an array of {\"type\": \"text\", \"text\": ...}");
    std::string whole;
    for (std::size_t i = 0; i < content->size(); ++i) {
        const json& part = content->at(i);
        const Fields fields(part, fmt::format("{}content[{}].", place, i));
        if (!part.is_object() || part.value("type", json()) != "text")
            message.refuse("content",
                           fmt::format("parts of the type \"text\" alone, and part {} is none", i));
        const auto text = fields.text("text");
        if (!text) fields.refuse("text", "a text");
        whole += *text;
    }
    return whole;
}

constexpr Undone undone_of_messages[]{
    {"tool_calls", is_empty, "none: no tools are called"},
    {"function_call", is_nothing, "none: no functions are called"},
    {"audio", is_nothing, "none: messages are texts"},
    {"prefix", is_false, "false: the assistant begins a new message"},
};

Conversation read_messages(const Fields& fields) {
    const json* messages = fields.find("messages");
    if (messages == nullptr || !messages->is_array() || messages->empty())
        fields.refuse("messages", "an array of messages");
    Conversation conversation;
    for (std::size_t i = 0; i < messages->size(); ++i) {
        const std::string place = fmt::format("messages[{}].", i);
        if (!messages->at(i).is_object())
            fields.refuse("messages", fmt::format("objects, and number {} is none", i));
        const Fields message(messages->at(i), place);
        const std::string role = message.text("role").value_or("");
        const std::optional<Role> known = role_of(role);
        if (!known) message.refuse("role", "\"system\", \"user\" or \"assistant\"");
        refuse_undone(message, undone_of_messages);
        conversation.push_back({*known, read_content(message, place), message.text("reasoning_content")});
    }
    return conversation;
}

}  // namespace

ApiRequest read_completion(std::string_view body, std::int64_t seed) {
    const json object = read_object(body);
    const Fields fields(object, "");
    const bool echo = fields.boolean("echo");
    ApiRequest request = read_common(fields, seed, echo ? 0 : 1);
    refuse_undone(fields, undone_of_completions);
    request.echo = echo;
    request.likeliest = read_completion_likeliest(fields);
    request.prompts = read_prompts(fields);
    if (request.prompts.size() * static_cast<std::size_t>(request.choices) > max_choices)
        fields.refuse("n", fmt::format("up to {} texts, for all prompts together", max_choices));
    return request;
}

ApiRequest read_chat(std::string_view body, std::int64_t seed) {
    const json object = read_object(body);
    const Fields fields(object, "");
    ApiRequest request = read_common(fields, seed, 1);
    refuse_undone(fields, undone_of_chats);
    request.is_chat = true;
    request.likeliest = read_chat_likeliest(fields);
    request.conversation = read_messages(fields);
    if (const json* values = fields.find("chat_template_kwargs")) {
        if (!values->is_object() || values->size() > max_template_values)
            fields.refuse("chat_template_kwargs",
                          fmt::format("an object: up to {} variables of the chat template, by name",
                                      max_template_values));
        request.template_values = *values;
    }
    return request;
}

ChatVariables read_variables(const json& values, const ChatTemplate& chat) {
    const Fields fields(values, "chat_template_kwargs.");
    ChatVariables variables = json::object();
    for (const auto& [name, value] : values.items()) {
        if (value.is_null() || !chat.mentions(name)) continue;
        if (is_own_variable(name)) fields.refuse(name.c_str(), "none: the request itself says that");
        if (name == "enable_thinking") static_cast<void>(fields.boolean(name.c_str()));
        if (name == "date_string") static_cast<void>(fields.text(name.c_str()));
        variables[name] = value;
    }
    return variables;
}

}  // namespace hone::decoder
