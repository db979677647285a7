// Chat templates, against what transformers makes of conversations by the templates of models
// (data/chats.json, made by make_chats.py). The templates themselves are their makers'; here are the
// statements that they are known by.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ctime>

#include "decoder/chat/chat_template.h"
#include "decoder/chat/template_code.h"
#include "decoder/error.h"
#include "decoder/text/utf8.h"
#include "tests/decoder/support.h"

using namespace hone;
using namespace hone::decoder;
using namespace hone::test;
using nlohmann::json;

namespace {

std::string llama3_dates() {
    return R"({{- "<|start_header_id|>system<|end_header_id|>\n\n" }}{{- "Cutting Knowledge Date: December 2023\n" }})"
           R"({{- "Today Date: " + date_string + "\n\n" }}{{- system_message }}{{- "<|eot_id|>" }}{%- if not tools %})"
           R"({{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }})"
           R"({%- endif %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }})";
}

std::string chatml_messages() {
    return R"({{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}})"
           R"({{ '<|im_start|>assistant\n' }})";
}

/// Qwen3's last statement.
std::string no_thoughts() {
    return R"({%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %})";
}

std::string mistral(const std::string& where, const std::string& open, const std::string& close,
                    const std::string& answer) {
    return R"({%- set system_message = messages[0]["content"] %}{{- raise_exception("roles must alternate") }})"
           R"({{- bos_token }}{%- if loop.)" +
           where + R"( and system_message is defined %}{{- )" + open +
           R"( + system_message + "\n\n" + message["content"] + )" + close + R"( }}{{- )" + open +
           R"( + message["content"] + )" + close + R"( }}{{- )" + answer + R"( + eos_token}})";
}

std::string phi3(const std::string& with_system) {
    return "{% if " + with_system +
           R"( %}{{'<|system|>\n' + message['content'] + '<|end|>\n'}}{{'<|user|>\n' + message['content'] + '<|end|>\n'}})"
           R"({{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{{ '<|assistant|>\n' }}{{ eos_token }})";
}

std::string phi4() {
    std::string text;
    for (const char* role : {"system", "user", "assistant"})
        text += fmt::format("{{{{'<|im_start|>{}<|im_sep|>' + message['content'] + '<|im_end|>'}}}}", role);
    return text + "{{ '<|im_start|>assistant<|im_sep|>' }}";
}

/// As LLaMA-Factory has it.
std::string opened(const std::string& default_system) {
    return default_system +
           "{% set system_message = messages[0]['content'] %}"
           "{{ '<|im_start|>system\n' + system_message + '<|im_end|>\n' }}{% set content = "
           "message['content'] %}{{ '<|im_start|>user\n' + content + "
           "'<|im_end|>\n<|im_start|>assistant\n' }}{{ content + '<|im_end|>' + '\n' }}";
}

/// The statements of a model's template by which it is known.
const std::map<std::string, std::string>& outlines() {
    static const std::map<std::string, std::string> outlines{
        {"llama3", R"({% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + )"
                   R"(message['content'] | trim + '<|eot_id|>' %}{% set content = bos_token + content %})"
                   R"({{ content }}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }})"},
        {"llama3.1",
         R"({{- bos_token }}{%- if not date_string is defined %}{%- set date_string = "26 Jul 2024" %}{%- endif %})" +
             llama3_dates()},
        {"llama3.2", R"({{- bos_token }}{%- set date_string = strftime_now("%d %b %Y") %})" + llama3_dates()},
        {"qwen2", "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}" + chatml_messages()},
        {"qwen2.5",
         R"({{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}{{- '<|im_start|>system\n)"
         R"(You are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n' }})" +
             chatml_messages()},
        {"qwen3",
         R"({{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}{%- set ns.last_query_index = 0 %})"
         R"({%- set content = (message.content.split('</think>')|last) %})" +
             chatml_messages() + no_thoughts()},
        {"mistral0.1",
         R"({{ bos_token }}{{ raise_exception('roles must alternate') }})"
         R"({{ '[INST] ' + message['content'] + ' [/INST]' }}{{ message['content'] + eos_token }})"},
        {"mistral0.2", mistral("first", R"(" [INST] ")", R"(" [/INST]")", R"(" " + message["content"])")},
        {"mistral0.3", mistral("last", R"("[INST] ")", R"("[/INST]")", R"(" " + message["content"]|trim)")},
        {"mistral-nemo", mistral("last", R"("[INST]")", R"("[/INST]")", R"(message["content"])")},
        {"gemma2", R"({{ bos_token }}{{ raise_exception('System role not supported') }})"
                   R"({{ raise_exception('roles must alternate') }})"
                   R"({{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }})"
                   R"({{'<start_of_turn>model\n'}})"},
        {"phi3", phi3("message['role'] == 'system'")},
        {"phi3.5", phi3("message['role'] == 'system' and message['content']")},
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
        "known are those of Llama 3, ChatML (Qwen2, Qwen2.5, Qwen3), Mistral, Gemma 2, Phi-3 and Phi-4"));
    CHECK(refusal(Folder(json{{"chat_template", outlines().at("phi3")}}))
              .ends_with("the chat template needs the special token <|end|>, which the tokenizer lacks"));
    CHECK(refusal(Folder(json{{"chat_template", outlines().at("mistral0.1")}}))
              .ends_with("the chat template needs a BOS token, which the folder does not name"));
    CHECK(refusal(Folder(json{{"chat_template", 5}})).find("chat_template: 5: ") != std::string::npos);
    const Folder half_loaded(json{{"chat_template", outlines().at("qwen2")}});
    std::filesystem::create_symlink("../blobs/0123", half_loaded.path() / "chat_template.jinja");
    CHECK(refusal(half_loaded).ends_with("chat_template.jinja: a link to a file that is not there"));
    CHECK(refusal(Folder(json{{"chat_template", json::array()}}))
              .ends_with("it has none that is called \"default\""));
}

TEST_CASE("kin of a known template that do something else are refused") {
    const std::string header = "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + ";
    const std::vector<std::string> kin{
        outlines().at("mistral0.1") + "{{ '<<SYS>>' }}",
        outlines().at("mistral0.1") + "{{ '[SYSTEM_PROMPT]' }}",
        outlines().at("qwen2") + "{% if '</think>' in content %}", outlines().at("qwen2") + "{{ bos_token }}",
        "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n'}}{# "
        "<|im_start|>assistant #}",
        outlines().at("llama3") + "{% set system_message = 'x' %}",
        "{{ '<start_of_turn>model' + first_user_prefix + '<end_of_turn>' }}",
        "{{ bos_token + '<|user|>' + '<|end|>' + '<|assistant|>' }}",
        outlines().at("qwen2") +
            "{% set ns.last_query_index = 0 %}{% if enable_thinking is false and '</think>' in content %}",
        phi4() + "{{ '<|im_start|>tool<|im_sep|>' + message['content'] + '<|im_end|>' }}",
        phi4() + chatml_messages(),
        // A default system message that is set, but questions that do not open their answers.
        "{% set system_message = 'You are a helpful assistant.' %}{{ '<|im_start|>system\n' + system_message "
        "+ "
        "'<|im_end|>\n' }}" +
            chatml_messages(),
        // Yi: the system message has no tokens around it.
        "{{ system_message }}" + chatml_messages(),
        outlines().at("qwen2") + "{{ '<|im_start|>system\nYou are another one.<|im_end|>\n' }}",
        chatml_messages() + "{{ '<|im_start|>assistant\n<think>\n' }}",
        chatml_messages() + "\n\n" + chatml_messages(),
        "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'].strip() + '<|im_end|>\\n' }}"
        "{{ '<|im_start|>assistant\\n' }}",
        "{{ bos_token }}{{ " + header + "message['content'] + '<|eot_id|>' }}",
        "{{ bos_token }}{{ " + header + "'Say: ' + message['content'] | trim + '<|eot_id|>' }}",
        outlines().at("mistral0.1") + "{{ ' [INST] ' + message['content'] + ' [/INST]' }}",
        outlines().at("mistral0.1") + "{{ ' ' + message['content'] + eos_token }}",
        mistral("index0 == 0", "'[INST] '", "' [/INST]'", "message['content']"),
        outlines().at("mistral0.2") + "{% set system_message = 'Be nice.' %}",
        opened("{% set system_message = 'Be brief.' %}") + "{{ '<|im_start|>assistant\n' }}",
        opened("{% set system_message = 'Be brief.' %}") + "{% set system_message = 'Be nice.' %}",
        outlines().at("gemma2") + "{{ '<start_of_turn>user\\n' + message['content'] + '<end_of_turn>\\n' }}",
        outlines().at("phi3") + "{{ '<|user|>' + message['content'] + '<|end|>' }}",
        outlines().at("llama3") + "{{ '{%set content=`' }}",  // no statement, and without an end
    };
    for (const std::string& text : kin) {
        CAPTURE(text);
        CHECK_THROWS_AS(static_cast<void>(read_chat_format(text)), DecoderError);
    }
}

TEST_CASE("bytes that are no characters become U+FFFD, wherever they end") {
    const ChatFormat format = read_chat_format(outlines().at("llama3"));
    for (const char* cut : {"\xE2\x80", "\xE2", " \xE3\x80", "\xC2", "x\xE2\x80", "\xFF \xE2\x80"}) {
        CAPTURE(cut);
        std::string copy = cut;  // with nothing behind it that would make a space of it
        copy.shrink_to_fit();
        const std::string text = chat_text(format, {{Role::user, copy}}, {});
        CHECK(is_utf8(text));
        CHECK(text.find("\xEF\xBF\xBD<|eot_id|>") != std::string::npos);
    }
}

TEST_CASE("a template is refused by what it writes") {
    std::string why;
    try {
        static_cast<void>(read_chat_format(chatml_messages() + R"({{ "It's " + message.role }})"));
    } catch (const DecoderError& error) {
        why = error.what();
    }
    CHECK(why.starts_with(R"(the chat template is not known (it writes "`It's `+message.role"): ")"));
}

TEST_CASE("what differs between templates of a family is read out of them") {
    const ChatWords words{.bos = "<s>", .eos = "</s>"};
    const Conversation talk{{Role::user, "1"}, {Role::assistant, "2"}, {Role::user, "3"}};
    const auto text = [&](const std::string& outline, const Conversation& conversation) {
        const ChatFormat format = read_chat_format(outline);
        return chat_text(format, conversation,
                         {.bos = format.begins_with_bos ? words.bos : "", .eos = words.eos});
    };
    CHECK(text("{{ bos_token }}{{ raise_exception('roles must alternate') }}"
               "{{ '[INST] ' + message['content'] + ' [/INST]' }}{{ message['content'] + eos_token + ' ' }}",
               talk) == "<s>[INST] 1 [/INST]2</s> [INST] 3 [/INST]");
    std::string without_bos = outlines().at("gemma2");
    without_bos.erase(0, std::string_view("{{ bos_token }}").size());
    CHECK(text(without_bos, {{Role::user, "1"}}) ==
          "<start_of_turn>user\n1<end_of_turn>\n<start_of_turn>model\n");
    // Qwen1.5: an answer at the end is not answered.
    const std::string last = "{% if messages[-1]['role'] != 'assistant' %}";
    CHECK(text(last + chatml_messages(), {{Role::user, "1"}, {Role::assistant, "2"}}) ==
          "<|im_start|>user\n1<|im_end|>\n<|im_start|>assistant\n2<|im_end|>\n");
    CHECK(text(last + chatml_messages(), {{Role::user, "1"}}) ==
          "<|im_start|>user\n1<|im_end|>\n<|im_start|>assistant\n");
    CHECK(text(phi4(), {{Role::system, "s"}, {Role::user, "1"}, {Role::assistant, "2"}, {Role::user, "3"}}) ==
          "<|im_start|>system<|im_sep|>s<|im_end|><|im_start|>user<|im_sep|>1<|im_end|>"
          "<|im_start|>assistant<|im_sep|>2<|im_end|><|im_start|>user<|im_sep|>3<|im_end|>"
          "<|im_start|>assistant<|im_sep|>");
    const std::string answered =
        "<|im_start|>user\n1<|im_end|>\n<|im_start|>assistant\n2<|im_end|>\n"
        "<|im_start|>user\n3<|im_end|>\n<|im_start|>assistant\n";
    const std::string with_default = opened("{% set system_message = 'You are helpful.' %}");
    CHECK(text(opened(""), talk) == answered);
    CHECK(text(with_default, talk) == "<|im_start|>system\nYou are helpful.<|im_end|>\n" + answered);
    CHECK(text(with_default, {{Role::system, "s"}, {Role::user, "1"}}) ==
          "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\n1<|im_end|>\n<|im_start|>assistant\n");
    CHECK_THROWS_AS(text(with_default, {{Role::user, "1"}, {Role::assistant, "2"}}), DecoderError);
    CHECK_THROWS_AS(text(with_default, {{Role::user, "1"}, {Role::user, "2"}}), DecoderError);
    CHECK_THROWS_AS(text(with_default, {{Role::system, "s"}}), DecoderError);
    // A quote in the default system message.
    CHECK(text(R"({{ "<|im_start|>system\nYou're \"it\".<|im_end|>\n" }})" + chatml_messages(),
               {{Role::user, "1"}})
              .starts_with("<|im_start|>system\nYou're \"it\".<|im_end|>\n"));
}

TEST_CASE("variables of a template change what it writes where it reads them, and nothing elsewhere") {
    const Conversation talk{
        {Role::user, "1"}, {Role::assistant, "<think>\nhm\n</think>\n\n2"}, {Role::user, "3"}};
    const ChatVariables variables{.enable_thinking = false, .date_string = "01 Feb 2025"};
    const ChatWords words{.bos = "<s>", .eos = "</s>", .today = "05 Jan 2026"};
    for (const auto& [name, outline] : outlines()) {
        CAPTURE(name);
        const ChatFormat format = read_chat_format(outline);
        std::string expected = chat_text(format, talk, words);
        if (name == "qwen3") expected += "<think>\n\n</think>\n\n";
        if (name == "llama3.1") {
            const std::string_view date = "26 Jul 2024";
            REQUIRE(expected.find(date) != std::string::npos);
            expected.replace(expected.find(date), date.size(), "01 Feb 2025");
        }
        CHECK(chat_text(format, talk, words, variables) == expected);
    }
    // What another model writes there is read out of its template.
    std::string kin = outlines().at("qwen3");
    kin.replace(kin.rfind(R"(<think>\n\n</think>)"), 19, "<think> </think>");
    CHECK(chat_text(read_chat_format(kin), talk, words, variables)
              .ends_with("assistant\n<think> </think>\n\n"));
}

TEST_CASE("an answer's thoughts beside its content stand where those in its content would") {
    const std::string reads = "{%- if message.reasoning_content is string %}{%- endif %}";
    const auto answer = [&](const std::string& outline, const std::string& content,
                            const std::string& thoughts, bool is_last = false) {
        Conversation talk{{Role::user, "1"}, {Role::assistant, content, thoughts}, {Role::assistant, "z"}};
        if (is_last) talk.pop_back();
        const std::string text = chat_text(read_chat_format(outline), talk, {});
        const std::size_t begin = text.find("assistant\n") + 10;
        return text.substr(begin, text.find("<|im_end|>", begin) - begin);
    };
    const std::string knows = outlines().at("qwen3") + reads;
    CHECK(answer(knows, "\n2", "\n\nhm\n") == "<think>\nhm\n</think>\n\n2");
    CHECK(answer(knows, "<think>a</think>2", "b") == "<think>\nb\n</think>\n\n<think>a</think>2");
    CHECK(answer(knows, "2", "\n") == "<think>\n\n</think>\n\n2");
    CHECK(answer(knows, "<think>a</think>2", "") == "<think>a</think>2");
    CHECK(answer(knows, "2", "", true) == "<think>\n\n</think>\n\n2");
    CHECK(answer(outlines().at("qwen3"), "2", "b") == "2");
    CHECK(answer(outlines().at("qwen2"), "2", "b") == "2");
}

TEST_CASE("a template of a megabyte that repeats itself is refused at once") {
    const auto repeated = [](std::string_view text) {
        std::string all;
        while (all.size() < (std::size_t{1} << 20)) all += text;
        return all;
    };
    const std::clock_t start = std::clock();  // CPU time: a busy machine gives less of it a second
    for (const std::string& text :
         {repeated("{% if a %}"), repeated("{{ a }}"), repeated("{{ '' }}"), repeated("{"), repeated("a\r\n"),
          "{{ '" + repeated("{{") + "' }}", "{{ " + repeated("'a'+") + "'b' }}",
          chatml_messages() + repeated("{# a #}") + repeated("{{ a['role'] }}")}) {
        CAPTURE(text.substr(0, 40));
        CHECK_THROWS_AS(static_cast<void>(read_chat_format(text)), DecoderError);
    }
    CHECK((std::clock() - start) / CLOCKS_PER_SEC < 10);  // with sanitizers, too
    const std::string longer = refusal(Folder(json{{"chat_template", repeated("{% if a %}") + "x"}}));
    CHECK(longer.ends_with("longer than 1048576 bytes, the most that is read"));
}

TEST_CASE("statements are read whatever their spelling, and text between them is noticed") {
    const auto code = [](std::string_view text) { return template_code(text).code; };
    CHECK(code(R"({{- 'a' + "b\n"  +  message [ 'role' ] }})") == "{{`ab\n`+message.role}}");
    CHECK(code("{%if  not  a%}{#- it's a comment -#}{{ 'it''s' }}{%- endif -%}") ==
          "{%if not a%}{{`it``s`}}{%endif%}");
    CHECK(code("{{ 'a\r\nb\rc' }}\r\n") == "{{`a\nb\nc`}}");
    CHECK_FALSE(template_code("{% a %}\r\n{% b %}\r\n").has_text);
    CHECK(code("{{ 'never closed") == "{{`never closed`}}");
    CHECK(code("{% raw") == "{%raw%}");
    for (const char* text : {"", "\n", "{% a %}\n{% b %}\n", "  {% a %}\n  {% b %}", "{{ a }}  \n\n {{- b }}",
                             "{{ a -}} \n {{ b }}", "{# a #}\n {%- b %}"}) {
        CAPTURE(text);
        CHECK_FALSE(template_code(text).has_text);
    }
    for (const char* text :
         {"x", "\n\n", "{{ a }}\n{{ b }}", "{% a %}\n\n{% b %}", "{% a %} {{ b }}", "{{ a }} {% b %}"}) {
        CAPTURE(text);
        CHECK(template_code(text).has_text);
    }
}
