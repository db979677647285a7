// What the server refuses: bodies that are not as they should be, and bytes that are no request.
// Starts threads: the thread sanitizer runs this file, too.
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/decoder/serve_support.h"
#include "tests/support/sanitized.h"

using namespace hone;
using namespace hone::test;
using nlohmann::json;

namespace {

struct Refusal {
    const char* body;
    const char* message;
    const char* param;
};

/// A request whose JSON is many times its size.
std::string body_of_lists(std::size_t bytes) {
    std::string body = R"({"prompt": "a", "max_tokens": 1, "unknown": [0)";
    while (body.size() < bytes) body += ",[[[[[[[[]]]]]]]]";
    return body + "]}";
}

/// Memory of this process that is there, not only asked for.
std::size_t resident_bytes() {
    std::size_t all_pages = 0;
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> all_pages >> pages;
    return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("bad requests get 400 with the field, its value and what is allowed") {
    const MadeServer server;
    const std::vector<Refusal> refusals{
        {R"([])", "the body is an array of 0; allowed: a JSON object", nullptr},
        {R"({})",
         "prompt is missing; it has to be a text, an array of ids, or an array of texts or of arrays of ids",
         "prompt"},
        {R"({"prompt": 5})",
         "prompt is 5; allowed: a text, an array of ids, or an array of texts or of arrays of ids", "prompt"},
        {R"({"prompt": []})",
         "prompt is an array of 0; allowed: a text, an array of ids, or an array of texts or of arrays of "
         "ids",
         "prompt"},
        {R"({"prompt": [1, -2]})", "prompt[1] is -2; allowed: the id of a token, 0 to 2147483647", "prompt"},
        {R"({"prompt": [1, "a"]})", "prompt[1] is \"a\"; allowed: the id of a token, 0 to 2147483647",
         "prompt"},
        {R"({"prompt": [[1], [1, 2.5]]})", "prompt[1][1] is 2.5; allowed: the id of a token, 0 to 2147483647",
         "prompt"},
        {R"({"prompt": [1, 18446744073709551615]})",
         "prompt[1] is 18446744073709551615; allowed: the id of a token, 0 to 2147483647", "prompt"},
        {R"({"prompt": [5, 100000]})", "the prompt has a token that the model does not know", "prompt"},
        {R"({"prompt": ""})", "the prompt is empty", "prompt"},
        {R"({"prompt": "a", "max_tokens": 0})", "max_tokens is 0; allowed: an integer from 1 to 2147483647",
         "max_tokens"},
        {R"({"prompt": "a", "max_tokens": 1.5})",
         "max_tokens is 1.5; allowed: an integer from 1 to 2147483647", "max_tokens"},
        {R"({"prompt": "a", "max_tokens": 18446744073709551615})",
         "max_tokens is 18446744073709551615; allowed: an integer from 1 to 2147483647", "max_tokens"},
        {R"({"prompt": "a", "max_completion_tokens": "5"})",
         "max_completion_tokens is \"5\"; allowed: an integer from 1 to 2147483647", "max_completion_tokens"},
        {R"({"prompt": "a", "temperature": 2.5})", "temperature is 2.5; allowed: a number from 0 to 2",
         "temperature"},
        {R"({"prompt": "a", "temperature": "hot"})", "temperature is \"hot\"; allowed: a number from 0 to 2",
         "temperature"},
        {R"({"prompt": "a", "top_p": -0.1})", "top_p is -0.1; allowed: a number from 0 to 1", "top_p"},
        {R"({"prompt": "a", "min_p": -0.5})", "min_p is -0.5; allowed: a number from 0 to 1", "min_p"},
        {R"({"prompt": "a", "top_k": -2})", "top_k is -2; allowed: an integer from -1 to 2147483647",
         "top_k"},
        {R"({"prompt": "a", "seed": "x"})",
         "seed is \"x\"; allowed: an integer from -4611686018427387904 to 4611686018427387903", "seed"},
        {R"({"prompt": "a", "stop": [""]})",
         "stop is an array of 1; allowed: a text, or up to 16 texts, each of 1 to 1024 bytes", "stop"},
        {R"({"prompt": "a", "stop": 3})",
         "stop is 3; allowed: a text, or up to 16 texts, each of 1 to 1024 bytes", "stop"},
        {R"({"prompt": "a", "n": 17})", "n is 17; allowed: an integer from 1 to 16", "n"},
        {R"({"prompt": ["a", "b", "c"], "n": 6})",
         "n is 6; allowed: up to 16 texts, for all prompts together", "n"},
        {R"({"prompt": "a", "stream": 1})", "stream is 1; allowed: true or false", "stream"},
        {R"({"prompt": "a", "stream_options": {"include_usage": true}})",
         "stream_options is an object; allowed: with \"stream\": true alone", "stream_options"},
        {R"({"prompt": "a", "logprobs": 6})", "logprobs is 6; allowed: an integer from 0 to 5", "logprobs"},
        {R"({"prompt": "a", "logprobs": -1})", "logprobs is -1; allowed: an integer from 0 to 5", "logprobs"},
        {R"({"prompt": "a", "logprobs": true})", "logprobs is true; allowed: an integer from 0 to 5",
         "logprobs"},
        {R"({"prompt": "a", "logprobs": 1.0})", "logprobs is 1.0; allowed: an integer from 0 to 5",
         "logprobs"},
        {R"({"prompt": "a", "logprobs": 1, "top_logprobs": 1})",
         "top_logprobs is 1; allowed: none: logprobs of a completion says how many", "top_logprobs"},
        {R"({"prompt": "a", "prompt_logprobs": 1})",
         "prompt_logprobs is 1; allowed: none: a completion has them with echo and logprobs",
         "prompt_logprobs"},
        {R"({"prompt": "a", "echo": 1})", "echo is 1; allowed: true or false", "echo"},
        {R"({"prompt": "a", "echo": true, "max_tokens": -1})",
         "max_tokens is -1; allowed: an integer from 0 to 2147483647", "max_tokens"},
        {R"({"prompt": "a", "stop_token_ids": 7})", "stop_token_ids is 7; allowed: an array of up to 64 ids",
         "stop_token_ids"},
        {R"({"prompt": "a", "stop_token_ids": [7, "8"]})",
         "stop_token_ids[1] is \"8\"; allowed: the id of a token, 0 to 2147483647", "stop_token_ids"},
        {R"({"prompt": "a", "min_tokens": 3, "ignore_eos": true, "stop_token_ids": [7]})",
         "min_tokens is 3; allowed: 0: a text ends where the model ends it, or with ignore_eos and nothing "
         "else that stops it at max_tokens",
         "min_tokens"},
        {R"({"prompt": "a", "best_of": 3})", "best_of is 3; allowed: 1", "best_of"},
        {R"({"prompt": "a", "suffix": "z"})",
         "suffix is \"z\"; allowed: none: texts are continued, not filled in", "suffix"},
        {R"({"prompt": "a", "presence_penalty": 0.5})", "presence_penalty is 0.5; allowed: 0",
         "presence_penalty"},
        {R"({"prompt": "a", "logit_bias": {"5": 1}})", "logit_bias is an object; allowed: none",
         "logit_bias"},
        {R"({"prompt": "a", "response_format": {"type": "json_object"}})",
         "response_format is an object; allowed: {\"type\": \"text\"}: answers are free text",
         "response_format"},
        {R"({"prompt": "a", "max_tokens": 256})",
         "the prompt has 1 tokens and max_tokens is 256; the context takes 256 together, so up to 255",
         "max_tokens"},
    };
    for (const Refusal& refusal : refusals) {
        CAPTURE(refusal.body);
        const HttpResponse response = request(server.port(), "POST", "/v1/completions", refusal.body);
        CHECK(response.status == 400);
        CHECK(response.message() == refusal.message);
        const json error = response.json()["error"];
        CHECK(error["type"] == "invalid_request_error");
        CHECK(error["param"] == (refusal.param == nullptr ? json() : json(refusal.param)));
    }
}

TEST_CASE("fields that change nothing are no reason to refuse") {
    MadeServer server;
    CHECK(server
              .complete({{"prompt", "a"},
                         {"logprobs", nullptr},
                         {"echo", false},
                         {"best_of", 1},
                         {"suffix", nullptr},
                         {"presence_penalty", 0},
                         {"frequency_penalty", 0.0},
                         {"logit_bias", json::object()},
                         {"tools", json::array()},
                         {"response_format", {{"type", "text"}}},
                         {"user", "someone"}})
              .status == 200);
    CHECK(server
              .complete({{"prompt", "a"},
                         {"min_tokens", 0},
                         {"stop_token_ids", json::array()},
                         {"use_beam_search", false},
                         {"length_penalty", 1.0},
                         {"skip_special_tokens", true},
                         {"guided_json", nullptr},
                         {"chat_template_kwargs", {{"enable_thinking", true}}},
                         {"no_stop_trim", false},
                         {"add_generation_prompt", true},
                         {"continue_final_message", false}})
              .status == 200);
    const json goes_on{{"prompt", "a"}, {"ignore_eos", true}, {"min_tokens", 3}, {"max_tokens", 3}};
    CHECK(server.complete(goes_on).status == 200);
    json may_stop = goes_on;
    may_stop["stop"] = "b";
    CHECK(server.complete(may_stop).status == 400);
}

TEST_CASE("fields of other servers that would change the answer are refused, and not passed over") {
    MadeServer server;
    const std::vector<std::pair<const char*, json>> fields{
        {"min_tokens", 5},
        {"bad_words", {"no"}},
        {"allowed_token_ids", {1, 2}},
        {"use_beam_search", true},
        {"length_penalty", 0.5},
        {"typical_p", 0.9},
        {"truncate_prompt_tokens", 3},
        {"skip_special_tokens", false},
        {"include_stop_str_in_output", true},
        {"guided_json", json::object()},
        {"guided_regex", "a+"},
        {"guided_choice", {"a", "b"}},
        {"guided_grammar", "root ::= a"},
        {"json_schema", "{}"},
        {"regex", "a+"},
        {"lora_path", "adapter"},
        {"structured_outputs", {{"regex", "a"}}},
        {"chat_template", "{{ messages }}"},
        {"chat_template_kwargs", true},
        {"add_generation_prompt", false},
        {"continue_final_message", true},
    };
    for (const auto& [name, value] : fields) {
        CAPTURE(name);
        const HttpResponse response =
            server.chat({{"messages", {{{"role", "user"}, {"content", "a"}}}}, {name, value}});
        CHECK(response.status == 400);
        CHECK(response.json()["error"]["param"] == name);
        CHECK(response.message().find("; allowed: ") != std::string::npos);
    }
}

TEST_CASE("variables of the chat template that a request says otherwise, or wrongly, are refused") {
    const MadeServer server(
        "text", {}, 256,
        made_model("{% if enable_thinking is false or date_string == '' or tools %}{{ 'x' }}{% endif %}"));
    json many = json::object();
    for (int i = 0; i < 65; ++i) many["variable" + std::to_string(i)] = i;
    const std::vector<std::pair<json, const char*>> refusals{
        {{{"enable_thinking", "false"}},
         R"(chat_template_kwargs.enable_thinking is "false"; allowed: true or false)"},
        {{{"enable_thinking", 0}}, "chat_template_kwargs.enable_thinking is 0; allowed: true or false"},
        {{{"date_string", 5}}, "chat_template_kwargs.date_string is 5; allowed: a text"},
        {{{"messages", 1}},
         "chat_template_kwargs.messages is 1; allowed: none: the request itself says that"},
        {{{"tools", json::array()}},
         "chat_template_kwargs.tools is an array of 0; allowed: none: the request itself says that"},
        {json::array({1}),
         "chat_template_kwargs is an array of 1; allowed: an object: up to 64 variables of the "
         "chat template, by name"},
        {many,
         "chat_template_kwargs is an object; allowed: an object: up to 64 variables of the chat template, "
         "by name"},
    };
    for (const auto& [values, message] : refusals) {
        CAPTURE(values.dump());
        const HttpResponse response = server.chat(
            {{"messages", {{{"role", "user"}, {"content", "a"}}}}, {"chat_template_kwargs", values}});
        CHECK(response.status == 400);
        CHECK(response.message() == message);
    }
}

TEST_CASE("a prompt over the context, another model, a body that is no JSON") {
    MadeServer server;
    const HttpResponse response = server.complete({{"prompt", std::vector<int>(256, 1)}});
    CHECK(response.status == 400);
    CHECK(response.message() ==
          "the prompt has 256 tokens; the context of 256 tokens takes 255, and new ones");
    CHECK(response.json()["error"]["code"] == "context_length_exceeded");
    CHECK(server.complete({{"prompt", std::vector<int>(250, 1)}}).json()["usage"]["completion_tokens"] == 6);
    CHECK(server.complete({{"prompt", "a"}, {"model", "gpt-4"}}).status == 404);
    for (const char* body : {"", "{", "{\"prompt\": \"\xFF\"}", "nul", "{\"prompt\": \"a\"} x"}) {
        CAPTURE(body);
        const HttpResponse refused = request(server.port(), "POST", "/v1/completions", body);
        CHECK(refused.status == 400);
        CHECK(refused.message().starts_with("the body is no JSON: parse error at line"));
    }
    CHECK(request(server.port(), "POST", "/v1/completions", std::string_view("{\"prompt\": \"a\"}\0{", 17))
              .message() == "the body: byte 16 is zero, which JSON has nowhere");
    const std::string deep = std::string(100'000, '[');
    CHECK(request(server.port(), "POST", "/v1/completions", deep).message() ==
          "the body: nested deeper than 16 levels");
    CHECK(request(server.port(), "POST", "/v1/completions", R"({"prompt": "a", "prompt": "b"})").message() ==
          "the body: key \"prompt\" stands twice");
}

TEST_CASE("a body of very many values is read in no time") {
    MadeServer server;
    std::string body = R"({"prompt": "a", "max_tokens": 1, "unknown": [{})";
    for (int i = 0; i < 300'000; ++i) body += ",{}";
    const auto start = std::chrono::steady_clock::now();
    CHECK(request(server.port(), "POST", "/v1/completions", body + "]}").status == 200);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
}

namespace {

/// Of a body that is large: under sanitizers one is read so slowly that clients would give up.
constexpr std::size_t large_body_bytes = is_sanitized ? std::size_t{128} << 10 : std::size_t{1} << 20;

}  // namespace

TEST_CASE("what large bodies take does not stay with the threads that read them") {
    const MadeServer server;
    const std::string body = body_of_lists(large_body_bytes);
    const auto send = [&] { return request(server.port(), "POST", "/v1/completions", body).status; };
    REQUIRE(send() == 200);
    const std::size_t before = resident_bytes();
    std::vector<std::future<int>> sent;
    for (int i = 0; i < 12; ++i) sent.push_back(std::async(std::launch::async, send));
    for (std::future<int>& status : sent) CHECK(status.get() == 200);
    // As JSON a body takes some 40 MiB.
    if (!is_sanitized) CHECK(resident_bytes() < before + (std::size_t{120} << 20));
}

TEST_CASE("small requests do not wait for large ones to be read") {
    const MadeServer server;
    const std::string body = body_of_lists(2 * large_body_bytes);
    std::atomic<int> answered{0};
    const auto send = [&] {
        CHECK(request(server.port(), "POST", "/v1/completions", body).status == 200);
        ++answered;
    };
    std::vector<std::future<void>> sent;
    for (int i = 0; i < 8; ++i) sent.push_back(std::async(std::launch::async, send));
    while (answered == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (int i = 0; i < 10; ++i) CHECK(server.complete({{"prompt", "a"}, {"max_tokens", 1}}).status == 200);
    CHECK(answered < 8);
    for (std::future<void>& large : sent) large.get();
}

TEST_CASE("a model without a template refuses chats with the reason") {
    decoder::ServedModel model = made_model();
    model.chat.reset();
    model.no_chat = "it has no template";
    const MadeServer server("text", {}, 256, std::move(model));
    const HttpResponse response = server.chat({{"messages", {{{"role", "user"}, {"content", "a"}}}}});
    CHECK(response.status == 400);
    CHECK(response.message() == "made takes no chats: it has no template; use /v1/completions");
    CHECK(response.json()["error"]["code"] == "no_chat_template");
}

TEST_CASE("what the model's template says of a conversation that it refuses reaches the client") {
    const MadeServer server("text", {}, 256, made_model("{{ raise_exception('Roles, please!') }}"));
    const HttpResponse response = server.chat({{"messages", {{{"role", "user"}, {"content", "a"}}}}});
    CHECK(response.status == 400);
    CHECK(response.message() == "the model's chat template refuses the conversation: Roles, please!");
    CHECK(response.json()["error"]["param"] == "messages");
}

TEST_CASE("bad messages get 400 with their place") {
    const MadeServer server;
    const std::vector<std::pair<const char*, const char*>> refusals{
        {R"({})", "messages is missing; it has to be an array of messages"},
        {R"({"messages": []})", "messages is an array of 0; allowed: an array of messages"},
        {R"({"messages": "Hello"})", "messages is \"Hello\"; allowed: an array of messages"},
        {R"({"messages": ["Hello"]})", "messages is an array of 1; allowed: objects, and number 0 is none"},
        {R"({"messages": [{"content": "a"}]})",
         "messages[0].role is missing; it has to be \"system\", \"user\" or \"assistant\""},
        {R"({"messages": [{"role": "user", "content": "a"}, {"role": "tool", "content": "a"}]})",
         "messages[1].role is \"tool\"; allowed: \"system\", \"user\" or \"assistant\""},
        {R"({"messages": [{"role": "user"}]})",
         "messages[0].content is missing; it has to be a text, or an array of {\"type\": \"text\", \"text\": "
         "...}"},
        {R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
         "messages[0].content is an array of 1; allowed: parts of the type \"text\" alone, and part 0 is "
         "none"},
        {R"({"messages": [{"role": "user", "content": [{"type": "text"}]}]})",
         "messages[0].content[0].text is missing; it has to be a text"},
        {R"({"messages": [{"role": "assistant", "content": "a", "tool_calls": [{"id": "1"}]}]})",
         "messages[0].tool_calls is an array of 1; allowed: none: no tools are called"},
        {R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "a", "prefix": true}]})",
         "messages[1].prefix is true; allowed: false: the assistant begins a new message"},
        {R"({"messages": [{"role": "assistant", "content": "a", "reasoning_content": 5}]})",
         "messages[0].reasoning_content is 5; allowed: a text"},
        {R"({"messages": [{"role": "user", "content": "a"}], "add_special_tokens": "no"})",
         "add_special_tokens is \"no\"; allowed: true or false"},
        {R"({"messages": [{"role": "user", "content": "a"}], "logprobs": 1})",
         "logprobs is 1; allowed: true or false"},
        {R"({"messages": [{"role": "user", "content": "a"}], "logprobs": true, "top_logprobs": 21})",
         "top_logprobs is 21; allowed: an integer from 0 to 20"},
        {R"({"messages": [{"role": "user", "content": "a"}], "top_logprobs": 2})",
         "top_logprobs is 2; allowed: 0, or with \"logprobs\": true"},
        {R"({"messages": [{"role": "user", "content": "a"}], "echo": true})",
         "echo is true; allowed: false: the conversation is not repeated"},
        {R"({"messages": [{"role": "user", "content": "a"}], "max_tokens": 0})",
         "max_tokens is 0; allowed: an integer from 1 to 2147483647"},
        {R"({"messages": [{"role": "user", "content": "a"}], "tools": [{}]})",
         "tools is an array of 1; allowed: none: no tools are called"},
    };
    for (const auto& [body, message] : refusals) {
        CAPTURE(body);
        const HttpResponse response = request(server.port(), "POST", "/v1/chat/completions", body);
        CHECK(response.status == 400);
        CHECK(response.message() == message);
    }
}

TEST_CASE("a body above the limit is 413, however it comes") {
    const MadeServer server("text", {.service = {.max_body_bytes = 4096}});
    const std::string body = R"({"prompt": ")" + std::string(5000, 'a') + "\"}";
    const HttpResponse response = request(server.port(), "POST", "/v1/completions", body);
    CHECK(response.status == 413);
    CHECK(response.message() == "the body is longer than 4096 bytes");

    HttpClientSocket pieces(server.port());
    pieces.send_text("POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 3; ++i) pieces.send_text("7d0\r\n" + std::string(2000, ' ') + "\r\n");
    pieces.send_text("0\r\n\r\n");
    CHECK(pieces.response().status == 413);

    HttpClientSocket endless(server.port());
    endless.send_text("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\n");
    for (int i = 0; i < 100; ++i) endless.send_text(std::string(10'000, ' '));
    CHECK(endless.response().status == 413);
    CHECK(server.get("/health").status == 200);
}

TEST_CASE("a body that is announced as far too long is refused at once") {
    const MadeServer server("text", {.service = {.max_body_bytes = 4096}});
    for (const char* length : {"16385", "9223372036854775808", "99999999999999999999999"}) {
        CAPTURE(length);
        HttpClientSocket client(server.port());
        const auto begin = std::chrono::steady_clock::now();
        client.send_text(
            fmt::format("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{{", length));
        const HttpResponse response = client.response();
        CHECK(response.status == 413);
        CHECK(response.message() == "the body is too long");
        CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
    }
}

TEST_CASE("headers without end are not kept") {
    const MadeServer server;
    HttpClientSocket client(server.port());
    client.send_text("GET /health HTTP/1.1\r\nHost: x\r\n");
    std::string many;
    for (int i = 0; i < 20'000; ++i) many += "a:b\r\n";
    client.send_text(many + "\r\n");
    const HttpResponse response = client.response();
    CHECK(response.status == 431);
    CHECK(response.message() == "the headers are too long");
    CHECK_FALSE(client.wait_for("HTTP/1.1"));
    // What is within the limit goes, behind a request that had much, too.
    HttpClientSocket other(server.port());
    const std::string some = many.substr(0, 50'000);
    for (int i = 0; i < 3; ++i) {
        const std::string body =
            R"({"prompt": "a", "max_tokens": 1, "user": ")" + std::string(100'000, 'u') + "\"}";
        other.send_text("POST /v1/completions HTTP/1.1\r\nHost: x\r\n" + some +
                        fmt::format("Content-Length: {}\r\n\r\n", body.size()) + body);
        CHECK(other.response().status == 200);
    }
}

TEST_CASE("a first line without end is refused, and not kept") {
    const MadeServer server;
    HttpClientSocket client(server.port());
    client.send_text("GET /" + std::string(100'000, 'a'));
    const HttpResponse response = client.response();
    CHECK(response.status == 414);
    CHECK(response.message() == "the path is too long");
    CHECK(response.head.find("Connection: close") != std::string::npos);
    CHECK_FALSE(client.wait_for("HTTP/1.1"));
    CHECK(server.get("/health").status == 200);
}

TEST_CASE("what a client said is given back beyond a zero byte") {
    const MadeServer server;
    CHECK(server.get("/health%00x").message().find("; there are /v1/completions") != std::string::npos);
    CHECK(server.complete({{"prompt", "a"}, {"model", std::string("a\0b", 3)}})
              .message()
              .ends_with("; there is made"));
}

TEST_CASE("a body in pieces is read as one") {
    const MadeServer server;
    HttpClientSocket client(server.port());
    client.send_text("POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send_text("b\r\n{\"prompt\": \r\n");
    client.send_text("4\r\n\"a\"}\r\n0\r\n\r\n");
    CHECK(client.response().status == 200);
}

TEST_CASE("fields behind the last piece of a body are passed over, whatever cuts them") {
    const MadeServer server("text");
    const std::string body =
        "POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        "f\r\n{\"prompt\": \"a\"}\r\n0;last\r\n";
    const std::string much = "A: " + std::string(60'000, 'a') + "\r\n";
    HttpClientSocket client(server.port());
    for (const std::string& trailers :
         {std::string("Checksum: 5\r\nX-Empty:\r\n"),
          std::string("Connection: close\r\nContent-Encoding: gzip\r\n"), much}) {
        CAPTURE(trailers.substr(0, 60));
        const std::string text = body + trailers + "\r\n";
        for (const std::size_t piece : {text.size(), std::size_t{7}}) {
            for (std::size_t at = 0; at < text.size(); at += piece) client.send_text(text.substr(at, piece));
            CHECK(client.response().status == 200);  // and the connection goes on
        }
    }
    for (const std::string& trailers :
         {std::string("no colon\r\n"), std::string("Na me: x\r\n"), std::string(": x\r\n"),
          std::string("A: x\r\n folded\r\n"), std::string("A: x\n"), std::string("A: x\rB: y\r\n"),
          std::string("Content-Length: 5\r\n"), std::string("A: x\r\ntransfer-encoding: chunked\r\n"),
          much + much}) {
        CAPTURE(trailers.substr(0, 60));
        HttpClientSocket refused(server.port());
        refused.send_text(body + trailers + "\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n");
        const HttpResponse response = refused.response();
        CHECK(response.status == 400);
        CHECK(response.message() == "the body did not come as a whole");
        CHECK_FALSE(refused.wait_for("HTTP/1.1"));
    }
}

TEST_CASE("a body that does not come in time is refused, and the connection closed") {
    const MadeServer server("text", {.http = {.request_timeout = std::chrono::milliseconds(200)}});
    HttpClientSocket client(server.port());
    client.send_text("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
    const HttpResponse response = client.response();
    CHECK(response.status == 400);
    CHECK(response.message() == "the body did not come as a whole");
    CHECK_FALSE(client.wait_for("HTTP/1.1"));
    HttpClientSocket silent(server.port());
    silent.send_text("POST /v1/comp");
    CHECK_FALSE(silent.wait_for("HTTP/1.1 200"));
}

TEST_CASE("what a client sends is not sent back as a whole") {
    const MadeServer server;
    const std::string much(100'000, 'm');
    const std::vector<std::pair<std::string, int>> bodies{
        {R"({"model": ")" + much + R"(", "prompt": "a"})", 404},
        {R"({"prompt": "a", "max_tokens": )" + std::string(100'000, '1') + "}", 400},
        {R"({"prompt": ")" + much, 400},
        {R"({"prompt": "a", "stop": 5, "seed": ")" + much + "\"}", 400},
        {R"({"prompt": "a", ")" + much, 400},
    };
    for (const auto& [body, status] : bodies) {
        CAPTURE(body.substr(0, 40));
        const HttpResponse response = request(server.port(), "POST", "/v1/completions", body);
        CHECK(response.status == status);
        CHECK(!response.message().empty());
        CHECK(response.body.size() < 500);
    }
}

TEST_CASE("a body that is packed or a form is refused before it is read") {
    const MadeServer server;
    for (const char* header : {"Content-Encoding: gzip", "Content-Encoding: br",
                               "Content-Type: multipart/form-data; boundary=a"}) {
        CAPTURE(header);
        HttpClientSocket client(server.port());
        client.send_text(std::string("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\n") +
                         header + "\r\n\r\n{\"prompt\": \"a\"}");
        const HttpResponse response = client.response();
        CHECK(response.status == 415);
        CHECK(response.message() == "the body comes packed or as a form; allowed: JSON as it is");
    }
}

TEST_CASE("behind what is no request nothing is taken for one") {
    const MadeServer server("text", {.http = {.idle_timeout = std::chrono::milliseconds(60'000)}});
    const std::string hidden = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
    const std::string post = "POST /v1/completions HTTP/1.1\r\nHost: x\r\n";
    const std::string body = R"({"prompt": "a"})";
    const std::string length = "Content-Length: 15\r\n\r\n";
    const std::string pieces = post + "Transfer-Encoding: chunked\r\n\r\n";
    const std::vector<std::string> attempts{
        "GET /health\r\n\r\n" + hidden,
        "GET /" + std::string(5000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n" + hidden,
        post + "Content-Length: 0\r\nContent-Length: 15\r\n\r\n" + hidden,
        post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nf\r\n" + body + "\r\n0\r\n\r\n" +
            hidden,
        post + "Content-Length: +15\r\n\r\n" + body + hidden,
        post + "Content-Length: 0x0f\r\n\r\n" + body + hidden,
        post + "Content-Length:\r\n\r\n" + hidden,
        post + "Content-Length : 15\r\n\r\n" + body + hidden,
        post + "Transfer-Encoding : chunked\r\n\r\n" + hidden,
        post + "Transfer-Encoding: identity\r\n\r\n" + body + hidden,
        post + "Transfer-Encoding: gzip, chunked\r\n\r\nf\r\n" + body + "\r\n0\r\n\r\n" + hidden,
        post + "Transfer-Encoding:\r\n chunked\r\n\r\nf\r\n" + body + "\r\n0\r\n\r\n" + hidden,
        // Lines that cpp-httplib passes over, and a proxy may not.
        post + "Transfer-Encoding:\r\n chunked\r\n" + length + body + hidden,
        post + "Transfer-Encoding:\r\n" + length + body + hidden,
        post + "Transfer-Encoding chunked\r\n" + length + body + hidden,
        post + ": chunked\r\n" + length + body + hidden,
        post + "X: y\r\n Content-Length: 5\r\n" + length + body + hidden,
        post + "X: y\rTransfer-Encoding: chunked\r\n" + length + body + hidden,
        post + "X: y\nTransfer-Encoding: chunked\r\n" + length + body + hidden,
        post + std::string("Transfer-Encoding\0: chunked\r\n", 29) + length + body + hidden,
        post + std::string("Content-Length: 15\0\r\n\r\n", 23) + body + hidden,
        post + "Content-Length: 5\r\ncontent-length:\r\n\r\n" + body + hidden,
        "GET /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\n\r\nf\r\n" + body +
            "\r\n0\r\n\r\n" + hidden,
        "POST /v1/completions HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\nf\r\n" + body + "\r\n0\r\n\r\n" +
            hidden,
        // Sizes of pieces that are none to the letter, and pieces that do not end where they say.
        pieces + "0xf\r\n" + body + "\r\n0\r\n\r\n" + hidden,
        pieces + " f\r\n" + body + "\r\n0\r\n\r\n" + hidden,
        pieces + "+f\r\n" + body + "\r\n0\r\n\r\n" + hidden,
        pieces + "f_\r\n" + body + "\r\n0\r\n\r\n" + hidden,
        pieces + "f\n" + body + "\n0\n\n" + hidden,
        pieces + "f\r\n" + body + "xx0\r\n\r\n" + hidden,
        pieces + "f;a\nb\r\n" + body + "\r\n0\r\n\r\n" + hidden,
        pieces + "f x\r\n" + body + "\r\n0\r\n\r\n" + hidden,
        post + "Transfer-Encoding: %63hunked\r\n\r\nf\r\n" + body + "\r\n0\r\n\r\n" + hidden,
        post + "Content-Length: %31%35\r\n\r\n" + body + hidden,
        pieces + ";a\r\n" + body + "\r\n0\r\n\r\n" + hidden,
    };
    for (const std::string& attempt : attempts) {
        CAPTURE(attempt.substr(0, 120));
        HttpClientSocket client(server.port());
        client.send_text(attempt);
        const HttpResponse response = client.response();
        CHECK(response.status >= 400);
        CHECK(response.status < 500);
        CHECK_FALSE(client.wait_for("HTTP/1.1"));  // closed long before it would be for saying nothing
    }
}

TEST_CASE("bodies in pieces and lines of any header are read, wherever they are cut on their way") {
    const MadeServer server("text");
    const std::string head =
        "POST /v1/completions HTTP/1.1\r\nHost: x\r\nX-Any!#$%&'*+.^_`|~9:\t\"\xC3\xA4\" \r\nEmpty:\r\n";
    const std::string of_pieces =
        head +
        "tRANSFER-eNCODING: Chunked\r\n\r\n5;name=\"a b\"\r\n{\"pro\r\n00B\r\nmpt\": \"\r\n\"}\r\n0\r\n\r\n";
    const std::string whole = head + "CONTENT-LENGTH: 15\r\n\r\n{\"prompt\": \"a\"}";
    for (const std::string& text : {of_pieces, whole}) {
        CAPTURE(text);
        HttpClientSocket client(server.port());
        for (const std::size_t piece : {text.size(), std::size_t{1}, std::size_t{7}}) {
            for (std::size_t at = 0; at < text.size(); at += piece) client.send_text(text.substr(at, piece));
            // A line end within a text is no JSON: it has come as it was sent.
            const HttpResponse response = client.response();
            CHECK(response.status == (text == whole ? 200 : 400));
            if (text != whole) CHECK(response.message().find("control character") != std::string::npos);
        }
    }
}

TEST_CASE("connections that say nothing do not keep others waiting") {
    decoder::ServeOptions options{.http = {.idle_timeout = std::chrono::milliseconds(60'000)}};
    options.service.max_requests = 2;
    const MadeServer server("text", options);
    std::vector<std::unique_ptr<HttpClientSocket>> silent;
    for (int i = 0; i < 100; ++i) silent.push_back(std::make_unique<HttpClientSocket>(server.port()));
    const auto begin = std::chrono::steady_clock::now();
    CHECK(server.get("/health").status == 200);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}

TEST_CASE("requests that come slowly do not keep others waiting, and have their time where nobody waits") {
    decoder::ServeOptions options{.http = {.request_timeout = std::chrono::milliseconds(60'000)}};
    options.service.max_requests = 2;
    const MadeServer server("text", options);
    const std::string body = R"({"prompt": "a", "max_tokens": 1})";
    const std::string head = "POST /v1/completions HTTP/1.1\r\nHost: x\r\n";
    const std::string length = fmt::format("Content-Length: {}\r\n\r\n", body.size());
    HttpClientSocket patient(server.port());
    patient.send_text(head);
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // longer than among many
    patient.send_text(length + body);
    CHECK(patient.response().status == 200);

    std::vector<std::unique_ptr<HttpClientSocket>> slow;
    for (int i = 0; i < 40; ++i) {  // twice as many as there are threads
        slow.push_back(std::make_unique<HttpClientSocket>(server.port()));
        slow.back()->send_text(i % 2 == 0 ? head : head + length + "{");
    }
    const auto begin = std::chrono::steady_clock::now();
    CHECK(server.get("/health").status == 200);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
    // Two at a time are read; which, and whom they leave no place, is as threads come.
    bool was_cut = false;
    for (std::size_t i = 1; i < slow.size() && !was_cut; i += 2) {
        const std::string message = slow[i]->response().message();
        was_cut = message == "the body did not come as a whole";
        if (!was_cut) CHECK(message.starts_with("2 requests are being answered"));
    }
    CHECK(was_cut);
}

TEST_CASE("bytes that are no request end their connection and nothing else") {
    const MadeServer server("text", {.http = {.request_timeout = std::chrono::milliseconds(200),
                                              .idle_timeout = std::chrono::milliseconds(200)}});
    const std::vector<std::string> attempts{
        "\r\n\r\n",
        "GET\r\n\r\n",
        std::string(100'000, 'A'),
        "GET /" + std::string(5000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /health HTTP/1.1\r\n" + std::string(200'000, 'h') + ": x\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        "POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n",
        "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Encoding: gzip\r\n\r\nabcd",
        std::string("\x16\x03\x01\x00\x00\x00", 6),
    };
    for (const std::string& attempt : attempts) {
        CAPTURE(attempt.substr(0, 60));
        HttpClientSocket client(server.port());
        client.send_text(attempt);
        CHECK_FALSE(client.wait_for("HTTP/1.1 200"));
        CHECK(server.get("/health").status == 200);
    }
}

TEST_CASE("parts of a reply are not given out, and a query is no part of the path") {
    const MadeServer server;
    HttpClientSocket client(server.port());
    client.send_text(
        "GET /health?x=1 HTTP/1.1\r\nHost: x\r\nRange: bytes=0-3\r\nAccept-Encoding: gzip\r\n\r\n");
    const HttpResponse response = client.response();
    CHECK(response.status == 200);
    CHECK(response.json()["status"] == "ok");
    client.send_text("HEAD /health HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(client.wait_for("HTTP/1.1 200"));
}
