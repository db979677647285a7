// Chat templates: what a folder's template makes of conversations, against what Jinja set up as transformers
// does it makes of them (data/chats.json, made by make_chats.py).
#include "decoder/chat/chat_template.h"

#include <fmt/format.h>

#include "decoder/error.h"
#include "decoder/text/utf8.h"
#include "tests/decoder/support.h"

using namespace hone;
using namespace hone::decoder;
using namespace hone::test;
using nlohmann::json;

namespace {

const json& chats() {
    static const json chats = json_of(data_folder("chats.json")).at("chats");
    return chats;
}

std::string template_of(const std::string& name) { return chats().at(name).at("template"); }

Conversation conversation_of(const json& messages) {
    Conversation conversation;
    for (const json& message : messages)
        conversation.push_back({role_of(message.at("role").get<std::string>()).value(),
                                message.at("content").get<std::string>()});
    return conversation;
}

/// A folder with Qwen's kind of tokenizer and this configuration.
class Folder : public ModelFolder {
  public:
    explicit Folder(const json& config) {
        with("tokenizer.json", json_of(data_folder("qwen") / "tokenizer.json"));
        with("tokenizer_config.json", config);
    }
    explicit Folder(const std::string& text) : Folder(json{{"chat_template", text}}) {}
    explicit Folder(const char* text) : Folder(std::string(text)) {}
    [[nodiscard]] ChatTemplate chat() const { return ChatTemplate::load(path(), load()); }
};

std::string text_of(const std::string& text, const Conversation& conversation,
                    const ChatVariables& variables = {}) {
    return Folder(text).chat().render(conversation, variables);
}

std::string text_or_refusal(const ChatTemplate& chat, const Conversation& conversation) {
    try {
        return chat.render(conversation);
    } catch (const DecoderError& error) {
        return std::string("refused: ") + error.what();
    }
}

std::string refusal(const Folder& folder) {
    try {
        static_cast<void>(folder.chat());
        return "none";
    } catch (const runtime::InputError& error) {
        return error.what();
    }
}

/// As messages stand in a list: "user:Hello;".
const std::string listing = "{% for m in messages %}{{ m.role ~ ':' ~ m.content ~ ';' }}{% endfor %}";

}  // namespace

TEST_CASE("conversations become the text that transformers makes of them") {
    CHECK(chats().size() > 25);
    for (const auto& [name, chat] : chats().items()) {
        CAPTURE(name);
        json config{{"chat_template", chat.at("template")}};
        for (const char* word : {"bos", "eos"}) config[std::string(word) + "_token"] = chat.at(word);
        const ChatTemplate loaded = Folder(config).chat();
        REQUIRE(chat.at("cases").size() > 20);
        for (const json& expected : chat.at("cases")) {
            CAPTURE(expected.at("messages").dump());
            const Conversation conversation = conversation_of(expected.at("messages"));
            if (name == "llama3.2" || name == "granite") {  // today's date is in them
                static_cast<void>(text_or_refusal(loaded, conversation));
            } else if (expected.contains("error")) {
                CHECK(text_or_refusal(loaded, conversation) ==
                      "refused: the model's chat template refuses the conversation: " +
                          expected.at("error").get<std::string>());
            } else {
                CHECK(loaded.render(conversation) == expected.at("text").get<std::string>());
            }
        }
    }
}

TEST_CASE("today's date stands where a template asks for it") {
    const std::string text = text_of("{{ strftime_now('%Y-%m-%d') }}", {{decoder::Role::user, "Hello"}});
    CHECK(text.size() == 10);
    CHECK(text.starts_with("20"));
}

TEST_CASE("a folder's template is found, and its conversations have the tokens of the folder") {
    const Folder folder(json{{"chat_template", template_of("qwen2")}, {"eos_token", "<|endoftext|>"}});
    const Tokenizer tokenizer = folder.load();
    const ChatTemplate chat = ChatTemplate::load(folder.path(), tokenizer);
    const std::string text = chat.render({{decoder::Role::user, "Hello"}});
    CHECK(text ==
          "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
          "<|im_start|>assistant\n");
    CHECK(tokenizer.encode(text, {.add_special_tokens = false}).front() == tokenizer.id_of("<|im_start|>"));

    const json named = json::array(
        {{{"name", "tools"}, {"template", "x"}}, {{"name", "default"}, {"template", template_of("qwen2")}}});
    CHECK(Folder(json{{"chat_template", named}}).chat().render({{decoder::Role::user, "Hello"}}) == text);

    Folder with_file("not this one");
    with_file.with("chat_template.jinja", std::string_view(template_of("qwen2")));
    CHECK(with_file.chat().render({{decoder::Role::user, "Hello"}}) == text);
}

TEST_CASE("no template, and one that is none, are refused with file and line") {
    CHECK(refusal(Folder(json::object()))
              .ends_with(" has no chat template: a base model, which continues texts"));
    CHECK(refusal(Folder("a\n{% if b %}"))
              .ends_with("tokenizer_config.json: chat_template: line 2: the template ends where {% endif %} "
                         "is needed"));
    Folder with_file("not this one");
    with_file.with("chat_template.jinja", std::string_view("{{ x | nofilter }}"));
    CHECK(refusal(with_file).ends_with("chat_template.jinja: line 1: there is no filter \"nofilter\""));
    CHECK(refusal(Folder(json{{"chat_template", 5}})).find("chat_template: 5: ") != std::string::npos);
    const Folder half_loaded(template_of("qwen2"));
    std::filesystem::create_symlink("../blobs/0123", half_loaded.path() / "chat_template.jinja");
    CHECK(refusal(half_loaded).ends_with("chat_template.jinja: a link to a file that is not there"));
    CHECK(refusal(Folder(json{{"chat_template", json::array()}}))
              .ends_with("it has none that is called \"default\""));
    CHECK(refusal(Folder(std::string((std::size_t{1} << 20) + 1, 'x')))
              .ends_with("longer than 1048576 bytes, the most that is read"));
}

TEST_CASE("a template that fails while a text is made names itself") {
    const Folder folder("{{ messages[0].content }}\n{{ messages[7].content }}");
    CHECK(text_or_refusal(folder.chat(), {{decoder::Role::user, "a"}})
              .ends_with("tokenizer_config.json: chat_template: line 2: list object has no element 7"));
    CHECK(text_or_refusal(folder.chat(), {}) == "refused: the conversation is empty");
    CHECK(text_or_refusal(
              Folder("{% for i in range(99999) %}{{ messages[0].content * 99 }}{% endfor %}").chat(),
              {{decoder::Role::user, std::string(1000, 'a')}})
              .find("the template ") != std::string::npos);
}

TEST_CASE("a template finds the special tokens that the folder names, and those alone") {
    const std::string words =
        "{{ bos_token }}|{{ eos_token }}|{{ unk_token }}|{{ pad_token is defined }}|{{ tools }}{{ documents "
        "}}|"
        "{{ add_generation_prompt }}";
    const json config{{"chat_template", words},
                      {"bos_token", {{"__type", "AddedToken"}, {"content", "<s>"}}},
                      {"eos_token", "<|endoftext|>"},
                      {"pad_token", nullptr}};
    Folder folder(config);
    const Conversation hello{{decoder::Role::user, "Hello"}};
    CHECK(folder.chat().render(hello) == "<s>|<|endoftext|>||False|NoneNone|True");
    folder.with("special_tokens_map.json", json{{"bos_token", "other"}, {"unk_token", "<unk>"}});
    CHECK(folder.chat().render(hello) == "<s>|<|endoftext|>|<unk>|False|NoneNone|True");
    // Nobody names them: the tokenizer's ids count. A null says that there is none.
    Folder silent(words);
    silent.with("generation_config.json", json{{"bos_token_id", 0}, {"eos_token_id", json::array({1, 2})}});
    const Tokenizer tokenizer = silent.load();
    CHECK(silent.chat().render(hello).starts_with(
        fmt::format("{}|{}|", *tokenizer.token_of(0), *tokenizer.token_of(1))));
    Folder without(json{{"chat_template", words}, {"bos_token", nullptr}});
    without.with("generation_config.json", json{{"bos_token_id", 0}});
    CHECK(without.chat().render(hello).starts_with("|"));
}

TEST_CASE("messages are data, whatever stands in them, and bytes that are no characters become U+FFFD") {
    CHECK(text_of(listing, {{decoder::Role::user, "{{ bos_token }}{% raise %}{# x"}}) ==
          "user:{{ bos_token }}{% raise %}{# x;");
    const ChatTemplate chat = Folder("{{ messages[0].content | trim }}").chat();
    for (const char* cut : {"\xE2\x80", "\xE2", " \xE3\x80", "\xC2", "x\xE2\x80", "\xFF \xE2\x80"}) {
        CAPTURE(cut);
        std::string copy = cut;  // with nothing behind it that would make a space of it
        copy.shrink_to_fit();
        const std::string text = chat.render({{decoder::Role::user, copy}});
        CHECK(is_utf8(text));
        CHECK(text.ends_with("\xEF\xBF\xBD"));
    }
}

TEST_CASE("variables of a template change what it writes where it reads them, and nothing elsewhere") {
    const Conversation talk{{decoder::Role::user, "1"},
                            {decoder::Role::assistant, "<think>\nhm\n</think>\n\n2"},
                            {decoder::Role::user, "3"}};
    const ChatVariables variables{{"enable_thinking", false}, {"date_string", "01 Feb 2025"}};
    for (const char* name : {"llama3", "llama3.1", "qwen2", "qwen3", "gemma2", "phi3"}) {
        CAPTURE(name);
        const ChatTemplate chat = Folder(template_of(name)).chat();
        std::string expected = chat.render(talk);
        if (chat.mentions("enable_thinking")) expected += "<think>\n\n</think>\n\n";
        if (chat.mentions("date_string")) {
            const std::string_view date = "26 Jul 2024";
            REQUIRE(expected.find(date) != std::string::npos);
            expected.replace(expected.find(date), date.size(), "01 Feb 2025");
        }
        CHECK(chat.render(talk, variables) == expected);
    }
    CHECK(text_of("{{ level }}{{ list[1].a }}{{ messages | length }}", {{decoder::Role::user, "1"}},
                  {{"level", 2.5}, {"list", json::array({nullptr, {{"a", "b"}}})}, {"messages", 5}}) ==
          "2.5b1");
}

TEST_CASE("an answer's thoughts beside its content stand where those in its content would") {
    const auto answer = [&](const std::string& name, const std::string& content, const std::string& thoughts,
                            bool is_last = false) {
        Conversation talk{{decoder::Role::user, "1"},
                          {decoder::Role::assistant, content, thoughts},
                          {decoder::Role::assistant, "z"}};
        if (is_last) talk.pop_back();
        const std::string text = text_of(template_of(name), talk);
        const std::size_t begin = text.find("assistant\n") + 10;
        return text.substr(begin, text.find("<|im_end|>", begin) - begin);
    };
    CHECK(answer("qwen3", "\n2", "\n\nhm\n") == "<think>\nhm\n</think>\n\n2");
    CHECK(answer("qwen3", "<think>a</think>2", "b") == "<think>\nb\n</think>\n\n<think>a</think>2");
    CHECK(answer("qwen3", "2", "\n") == "<think>\n\n</think>\n\n2");
    CHECK(answer("qwen3", "<think>a</think>2", "") == "<think>a</think>2");
    CHECK(answer("qwen3", "2", "", true) == "<think>\n\n</think>\n\n2");
    CHECK(answer("qwen2", "2", "b") == "2");
}

TEST_CASE("what ends an answer is found by what the template writes behind one") {
    const auto turn_end = [](const std::string& text, const std::string& eos = "<|endoftext|>") {
        const Folder folder(json{{"chat_template", text}, {"eos_token", eos}});
        const std::optional<int> id = folder.chat().turn_end();
        return id ? std::string(*folder.load().token_of(*id)) : "";
    };
    CHECK(turn_end(template_of("chatml")) == "<|im_end|>");
    CHECK(turn_end(template_of("qwen3")) == "<|im_end|>");
    CHECK(turn_end(template_of("chatml"), "<|im_end|>").empty());  // it ends all texts
    CHECK(turn_end(template_of("mistral0.1")).empty());            // EOS
    CHECK(turn_end(template_of("falcon")).empty());                // no token at all
    CHECK(turn_end(template_of("phi3")).empty());                  // none that the tokenizer has
    CHECK(turn_end("{{ raise_exception('no') }}").empty());
    // The next one's role, where nothing else is.
    CHECK(turn_end("{% for m in messages %}{{ '<|im_start|>' + m.content + '\n' }}{% endfor %}") ==
          "<|im_start|>");
}
