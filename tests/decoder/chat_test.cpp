// Chat templates, against what transformers makes of conversations by the templates of models
// (data/chats.json, made by make_chats.py). The templates themselves are their makers'; here is what they are
// known by.
#include <doctest/doctest.h>

#include "decoder/chat/chat_template.h"
#include "decoder/error.h"
#include "tests/decoder/support.h"

using namespace hone;
using namespace hone::decoder;
using namespace hone::test;
using nlohmann::json;

namespace {

/// Words of a model's template by which it is known.
const std::map<std::string, std::string>& outlines() {
    static const std::map<std::string, std::string> outlines{
        {"llama3",
         R"({{ '<|start_header_id|>' + role + '<|end_header_id|>' + content | trim + '<|eot_id|>' }})"},
        {"llama3.1",
         R"({%- set date_string = "26 Jul 2024" %}{{- "<|start_header_id|>system<|end_header_id|>" }})"
         R"({{- "Cutting Knowledge Date: December 2023\n" }}{{- "Today Date: " + date_string }}{{ "<|eot_id|>" }})"},
        {"llama3.2",
         R"({%- set date_string = strftime_now("%d %b %Y") %}{{- "<|start_header_id|>system<|end_header_id|>" }})"
         R"({{- "Cutting Knowledge Date: December 2023\n" }}{{- "Today Date: " + date_string }}{{ "<|eot_id|>" }})"},
        {"qwen2",
         "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{{ '<|im_start|>assistant\n' "
         "}}"},
        {"qwen2.5",
         R"({{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}{{- '<|im_start|>system\n)"
         R"(You are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n' }})"
         R"({{ '<|im_start|>assistant\n' }})"},
        {"qwen3",
         R"({{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}{{ ns.last_query_index }})"
         R"({{ '</think>' }}{{- '<|im_start|>assistant\n' }}{%- if enable_thinking is false %})"},
        {"mistral0.1",
         "{{ 'roles must alternate' }}{{ '[INST] ' + content + ' [/INST]' }}{{ content + eos_token }}"},
        {"mistral0.2",
         R"({{ 'roles must alternate' }}{%- if loop.first and system_message is defined %})"
         R"({{ " [INST] " + content + " [/INST]" }}{{ " " + message["content"] + eos_token }})"},
        {"mistral0.3",
         R"({{ 'roles must alternate' }}{%- if loop.last and system_message is defined %})"
         R"({{ "[INST] " + content + "[/INST]" }}{{ " " + message["content"]|trim + eos_token }})"},
        {"mistral-nemo", R"({{ 'roles must alternate' }}{%- if loop.last and system_message is defined %})"
                         R"({{ "[INST]" + content + "[/INST]" }}{{ message["content"] + eos_token }})"},
        {"gemma2",
         "{{ 'System role not supported' }}{{ 'roles must alternate' }}{{ '<start_of_turn>' + role }}"
         "{{ '<end_of_turn>' }}{{ '<start_of_turn>model' }}"},
        {"phi3",
         "{% if message['role'] == 'system' %}{{ '<|system|>' }}{{ '<|user|>' }}{{ '<|assistant|>' }}{{ "
         "'<|end|>' }}"},
        {"phi3.5",
         "{% if message['role'] == 'system' and message['content'] %}{{ '<|system|>' }}{{ '<|user|>' }}"
         "{{ '<|assistant|>' }}{{ '<|end|>' }}"},
    };
    return outlines;
}

/// What templates let through although their own words say otherwise: nothing to answer, and a system message
/// in the assistant's turn.
const std::vector<std::string> refused_here{
    "refused: there is no message of the user",
    "refused: message 1 is of the system; this model knows no system messages",
};

Conversation conversation_of(const json& messages) {
    Conversation conversation;
    for (const json& message : messages)
        conversation.push_back({role_of(message.at("role").get<std::string>()).value(),
                                message.at("content").get<std::string>()});
    return conversation;
}

std::string text_or_refusal(const ChatFormat& format, const json& messages, const ChatWords& words) {
    try {
        return chat_text(format, conversation_of(messages), words);
    } catch (const DecoderError& error) {
        return std::string("refused: ") + error.what();
    }
}

/// A folder with Qwen's kind of tokenizer and this configuration.
class Folder : public ModelFolder {
  public:
    explicit Folder(const json& config) {
        with("tokenizer.json", json_of(data_folder("qwen") / "tokenizer.json"));
        with("tokenizer_config.json", config);
    }
};

std::string refusal(const Folder& folder) {
    try {
        static_cast<void>(ChatTemplate::load(folder.path(), folder.load()));
        return "none";
    } catch (const runtime::InputError& error) {
        return error.what();
    }
}

}  // namespace

TEST_CASE("conversations become the text that transformers makes of them") {
    const json chats = json_of(data_folder("chats.json"));
    CHECK(chats.size() == outlines().size());
    for (const auto& [name, outline] : outlines()) {
        const json& chat = chats.at(name);
        const ChatFormat format = read_chat_format(outline);
        const ChatWords words{.bos = chat.at("bos"), .eos = chat.at("eos"), .today = "05 Jan 2026"};
        REQUIRE(chat.at("cases").size() > 20);
        for (const json& expected : chat.at("cases")) {
            CAPTURE(name);
            CAPTURE(expected.at("messages").dump());
            const std::string text = text_or_refusal(format, expected.at("messages"), words);
            if (expected.contains("error")) {
                CHECK(text.starts_with("refused: "));
            } else if (std::ranges::count(refused_here, text) == 0) {
                CHECK(text == expected.at("text").get<std::string>());
            }
        }
    }
}

TEST_CASE("a folder's template is found, and its conversations have the tokens of the folder") {
    const Folder folder(json{{"chat_template", outlines().at("qwen2")}, {"eos_token", "<|im_end|>"}});
    const Tokenizer tokenizer = folder.load();
    const ChatTemplate chat = ChatTemplate::load(folder.path(), tokenizer);
    const std::string text = chat.render({{Role::user, "Hello"}});
    CHECK(text ==
          "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
          "<|im_start|>assistant\n");
    CHECK(tokenizer.encode(text, {.add_special_tokens = false}).front() == tokenizer.id_of("<|im_start|>"));
    CHECK(chat.turn_end() == tokenizer.id_of("<|im_end|>"));

    const json named = json::array({{{"name", "tools"}, {"template", "x"}},
                                    {{"name", "default"}, {"template", outlines().at("qwen2")}}});
    const Folder several(json{{"chat_template", named}});
    CHECK(ChatTemplate::load(several.path(), several.load()).render({{Role::user, "Hello"}}) == text);

    Folder with_file(json{{"chat_template", "not this one"}});
    with_file.with("chat_template.jinja", std::string_view(outlines().at("qwen2")));
    CHECK(ChatTemplate::load(with_file.path(), with_file.load()).render({{Role::user, "Hello"}}) == text);
}

TEST_CASE("no template, an unknown one, and a tokenizer that lacks its tokens are refused") {
    CHECK(refusal(Folder(json::object()))
              .ends_with(" has no chat template: a base model, which continues texts"));
    const std::string unknown = refusal(Folder(json{{"chat_template", "{{ '### User:' + messages[0] }}"}}));
    CHECK(unknown.find("tokenizer_config.json: the chat template is not known (none of their tokens is in "
                       "it): \"{{ '### "
                       "User:") != std::string::npos);
    CHECK(unknown.ends_with(
        "known are those of Llama 3, ChatML (Qwen2, Qwen2.5, Qwen3), Mistral, Gemma 2 and Phi-3"));
    CHECK(refusal(Folder(json{{"chat_template", outlines().at("phi3")}}))
              .ends_with("the chat template needs the special token <|end|>, which the tokenizer lacks"));
    CHECK(refusal(Folder(json{{"chat_template", outlines().at("mistral0.1")}}))
              .ends_with("the chat template needs a BOS token, which the folder does not name"));
    CHECK(refusal(Folder(json{{"chat_template", 5}})).find("chat_template: 5: ") != std::string::npos);
    CHECK(refusal(Folder(json{{"chat_template", json::array()}}))
              .ends_with("it has none that is called \"default\""));
}

TEST_CASE("kin of a known template that do something else are refused") {
    const std::vector<std::string> kin{
        outlines().at("mistral0.1") + "{{ '<<SYS>>' }}",
        outlines().at("mistral0.1") + "{{ '[SYSTEM_PROMPT]' }}",
        outlines().at("qwen2") + "{{ '</think>' }}",
        outlines().at("qwen2") + "{{ bos_token }}",
        outlines().at("llama3") + "{% set system_message = 'x' %}",
        "{{ '<start_of_turn>model' + first_user_prefix + '<end_of_turn>' }}",
        "{{ bos_token + '<|user|>' + '<|end|>' + '<|assistant|>' }}",
    };
    for (const std::string& text : kin) {
        CAPTURE(text);
        CHECK_THROWS_AS(static_cast<void>(read_chat_format(text)), DecoderError);
    }
}
