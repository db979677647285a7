// The server on a scripted engine, over real sockets: what it answers, to whom it says no, and how it ends.
// Starts threads: the thread sanitizer runs this file, too.
#include <doctest/doctest.h>
#include <link.h>

#include <map>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

#include "decoder/http/library.h"
#include "tests/decoder/serve_support.h"

using namespace hone;
using namespace hone::test;
using nlohmann::json;

namespace {

constexpr const char* script = "Hello, world! And more.";

/// The number that a line of the metrics ends with.
double metric(const MadeServer& server, const std::string& name) {
    const std::string text = "\n" + server.get("/metrics").body;
    const std::size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

}  // namespace

TEST_CASE("a completion has the text, why it ended, and what was used") {
    MadeServer server(script);
    const HttpResponse response =
        server.complete({{"prompt", "Once"}, {"max_tokens", 100}, {"model", "made"}});
    CHECK(response.status == 200);
    CHECK(response.head.find("Content-Type: application/json") != std::string::npos);
    const json answer = response.json();
    CHECK(answer["object"] == "text_completion");
    CHECK(answer["model"] == "made");
    CHECK(answer["id"].get<std::string>().starts_with("cmpl-"));
    REQUIRE(answer["choices"].size() == 1);
    CHECK(answer["choices"][0]["text"] == script);
    CHECK(answer["choices"][0]["finish_reason"] == "stop");
    CHECK(answer["choices"][0]["index"] == 0);
    CHECK(answer["usage"]["prompt_tokens"] == server.tokens("Once"));
    CHECK(answer["usage"]["completion_tokens"] == server.tokens(script) + 1);
    CHECK(answer["usage"]["total_tokens"] == server.tokens("Once") + server.tokens(script) + 1);
}

TEST_CASE("what is asked for reaches the engine") {
    MadeServer server(script);
    CHECK(server
              .complete({{"prompt", {5, 6, 7}},
                         {"max_tokens", 3},
                         {"temperature", 0.5},
                         {"top_p", 0.25},
                         {"top_k", 7},
                         {"min_p", 0.125},
                         {"seed", 42}})
              .status == 200);
    decoder::TextRequest asked = server.engine().last_request();
    CHECK(asked.prompt == std::vector<int>{5, 6, 7});
    CHECK(asked.max_new_tokens == 3);
    CHECK(asked.wishes.temperature == 0.5F);
    CHECK(asked.wishes.top_p == 0.25F);
    CHECK(asked.wishes.top_k == 7);
    CHECK(asked.wishes.min_p == 0.125F);
    CHECK(asked.wishes.seed == 42);
    CHECK(asked.end_ids == server.tokenizer().eos_ids());

    CHECK(server.complete({{"prompt", "a"}, {"ignore_eos", true}, {"something_new", {1, 2}}}).status == 200);
    asked = server.engine().last_request();
    CHECK(asked.max_new_tokens == 16);
    CHECK(asked.wishes.temperature == 1);
    CHECK(asked.end_ids.empty());
}

TEST_CASE("a text ends at its length, and before a stop that it reaches") {
    MadeServer server(script);
    json answer = server.complete({{"prompt", "Once"}, {"max_tokens", 2}}).json();
    CHECK(answer["choices"][0]["finish_reason"] == "length");
    CHECK(answer["usage"]["completion_tokens"] == 2);
    answer =
        server.complete({{"prompt", "Once"}, {"max_tokens", 100}, {"stop", {"nothing", "ld! A"}}}).json();
    CHECK(answer["choices"][0]["text"] == "Hello, wor");
    CHECK(answer["choices"][0]["finish_reason"] == "stop");
    CHECK(server.complete({{"prompt", "Once"}, {"max_tokens", 100}, {"stop", "lo"}})
              .json()["choices"][0]["text"] == "Hel");
    CHECK(server.wait_for_running(0));
}

TEST_CASE("several prompts and choices are answered in their order") {
    MadeServer server(script);
    const json answer =
        server.complete({{"prompt", {"Once", "and again"}}, {"n", 2}, {"max_tokens", 4}, {"seed", 7}}).json();
    REQUIRE(answer["choices"].size() == 4);
    for (std::size_t i = 0; i < 4; ++i) CHECK(answer["choices"][i]["index"] == i);
    CHECK(answer["usage"]["completion_tokens"] == 16);
    CHECK(answer["usage"]["prompt_tokens"] == server.tokens("Once") + server.tokens("and again"));
    CHECK(server.engine().last_request().wishes.seed == 10);
}

TEST_CASE("a stream has the same text in pieces, and at its end what was used and [DONE]") {
    MadeServer server(script);
    const HttpResponse response = server.complete({{"prompt", "Once"},
                                                   {"max_tokens", 100},
                                                   {"stream", true},
                                                   {"stream_options", {{"include_usage", true}}}});
    CHECK(response.status == 200);
    CHECK(response.whole);
    CHECK(response.head.find("Content-Type: text/event-stream") != std::string::npos);
    bool done = false;
    const std::vector<json> pieces = events(response.body, done);
    CHECK(done);
    REQUIRE(pieces.size() >= 2);
    std::string text;
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
        CHECK(pieces[i]["usage"].is_null());
        REQUIRE(pieces[i]["choices"].size() == 1);
        text += pieces[i]["choices"][0]["text"].get<std::string>();
        CHECK(pieces[i]["choices"][0]["finish_reason"].is_null() == (i + 2 < pieces.size()));
        CHECK(pieces[i]["id"] == pieces[0]["id"]);
    }
    CHECK(text == script);
    CHECK(pieces[pieces.size() - 2]["choices"][0]["finish_reason"] == "stop");
    CHECK(pieces.back()["choices"].empty());
    CHECK(pieces.back()["usage"]["completion_tokens"] == server.tokens(script) + 1);
}

TEST_CASE("pieces come while the rest is still being made") {
    MadeServer server(script);
    server.engine().set_step(std::chrono::milliseconds(20));
    HttpClientSocket client(server.port());
    client.send("POST", "/v1/completions",
                R"({"prompt": "Once", "stream": true, "max_tokens": 200, "ignore_eos": true})");
    CHECK(client.wait_for("data: "));
    CHECK(server.engine().state().running == 1);
}

TEST_CASE("a client of HTTP/1.0 gets a stream without the marks of pieces, to the connection's end") {
    const MadeServer server;
    const std::string body = R"({"prompt": "a", "max_tokens": 64, "stream": true})";
    for (const char* connection : {"", "Connection: keep-alive\r\n"}) {
        CAPTURE(connection);
        HttpClientSocket client(server.port());
        client.send_text(fmt::format("POST /v1/completions HTTP/1.0\r\n{}Content-Length: {}\r\n\r\n{}",
                                     connection, body.size(), body));
        const HttpResponse response = client.response_to_the_end();
        CHECK(response.status == 200);
        CHECK(response.head.find("Transfer-Encoding") == std::string::npos);
        bool done = false;
        std::string text;
        for (const json& event : events(response.body, done))
            text += event["choices"][0]["text"].get<std::string>();
        CHECK(done);
        CHECK(text == "Hello, world! And more.");
    }
}

TEST_CASE("a stream of several texts ends each of them once") {
    MadeServer server(script);
    const HttpResponse response =
        server.complete({{"prompt", "Once"}, {"n", 3}, {"max_tokens", 100}, {"stream", true}});
    bool done = false;
    std::vector<std::string> texts(3);
    std::vector<int> ends(3);
    for (const json& piece : events(response.body, done)) {
        const json& choice = piece["choices"][0];
        const auto index = choice["index"].get<std::size_t>();
        texts.at(index) += choice["text"].get<std::string>();
        ends.at(index) += choice["finish_reason"].is_null() ? 0 : 1;
        CHECK_FALSE(piece.contains("usage"));
    }
    CHECK(done);
    CHECK(texts == std::vector<std::string>(3, script));
    CHECK(ends == std::vector<int>(3, 1));
}

TEST_CASE("a chat is answered, as a whole and in pieces") {
    MadeServer server(script);
    const json messages{
        {{"role", "user"}, {"content", "Hello"}},
        {{"role", "assistant"}, {"content", "Hi"}},
        {{"role", "user"},
         {"content", {{{"type", "text"}, {"text", "And "}}, {{"type", "text"}, {"text", "now?"}}}}}};
    const json answer = server.chat({{"messages", messages}}).json();
    CHECK(answer["object"] == "chat.completion");
    CHECK(answer["choices"][0]["message"] == json{{"role", "assistant"}, {"content", script}});
    CHECK(answer["choices"][0]["finish_reason"] == "stop");
    const decoder::TextRequest asked = server.engine().last_request();
    const std::string text =
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
        "<|im_start|>assistant\nHi<|im_end|>\n<|im_start|>user\nAnd now?<|im_end|>\n<|im_start|>assistant\n";
    CHECK(asked.prompt == server.tokenizer().encode(text, {.add_special_tokens = false}));
    CHECK(asked.max_new_tokens == 256 - static_cast<int>(asked.prompt.size()));
    CHECK(asked.end_ids == std::vector<int>{*server.tokenizer().id_of("<|endoftext|>"),
                                            *server.tokenizer().id_of("<|im_end|>")});

    bool done = false;
    const std::vector<json> pieces =
        events(server.chat({{"messages", messages}, {"stream", true}}).body, done);
    CHECK(done);
    CHECK(pieces[0]["object"] == "chat.completion.chunk");
    CHECK(pieces[0]["choices"][0]["delta"]["role"] == "assistant");
    std::string whole;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const json& delta = pieces[i]["choices"][0]["delta"];
        CHECK(delta.contains("role") == (i == 0));
        whole += delta.value("content", "");
    }
    CHECK(whole == script);
}

TEST_CASE("chat_template_kwargs reach the template, and those that it does not read change nothing") {
    const std::string thinks =
        "{% if enable_thinking is defined and enable_thinking is false %}"
        "{{ '<think>\n\n</think>\n\n' }}{% endif %}";
    MadeServer server(script, {}, 256, made_model(thinks));
    const std::string text =
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";
    const auto prompt_with = [&](MadeServer& asked, const json& values) {
        const json messages{{{"role", "user"}, {"content", "Hello"}}};
        const HttpResponse response = asked.chat({{"messages", messages}, {"chat_template_kwargs", values}});
        CHECK(response.status == 200);
        return asked.engine().last_request().prompt;
    };
    const auto ids = [&](const std::string& of) {
        return server.tokenizer().encode(of, {.add_special_tokens = false});
    };
    for (const json& values : {json(), json::object(), json{{"enable_thinking", true}},
                               json{{"enable_thinking", nullptr}}, json{{"thinking_budget", 5}}})
        CHECK(prompt_with(server, values) == ids(text));
    CHECK(prompt_with(server, {{"enable_thinking", false}}) == ids(text + "<think>\n\n</think>\n\n"));
    // Any value of JSON reaches a template that reads it.
    MadeServer reads(script, {}, 256, made_model("{{ style.words[1] ~ level }}"));
    CHECK(prompt_with(reads, {{"style", {{"words", {"a", "b"}}}}, {"level", 2.5}}) == ids(text + "b2.5"));
    MadeServer without(script);
    CHECK(prompt_with(without, {{"enable_thinking", false}}) == ids(text));
    CHECK(server.complete({{"prompt", "a"}, {"chat_template_kwargs", {{"enable_thinking", false}}}}).status ==
          200);
}

TEST_CASE(
    "an answer's thoughts beside its content reach the template, and fields of messages that change "
    "nothing") {
    MadeServer server(
        script, {}, 256,
        made_model({},
                   "{% if m.reasoning_content is string %}"
                   "{{ '<think>\n' + m.reasoning_content.strip('\n') + '\n</think>\n\n' }}{% endif %}"));
    json messages{{{"role", "user"}, {"content", "1"}, {"name", "someone"}},
                  {{"role", "assistant"}, {"content", "2"}, {"tool_calls", json::array()}, {"prefix", false}},
                  {{"role", "user"}, {"content", "3"}},
                  {{"role", "assistant"}, {"content", "4"}, {"reasoning_content", "\nhm\n"}}};
    CHECK(server.chat({{"messages", messages}}).status == 200);
    const std::string text =
        "<|im_start|>system\nBe "
        "brief.<|im_end|>\n<|im_start|>user\n1<|im_end|>\n<|im_start|>assistant\n2<|im_end|>\n"
        "<|im_start|>user\n3<|im_end|>\n<|im_start|>assistant\n<think>\nhm\n</think>\n\n4<|im_end|>\n"
        "<|im_start|>assistant\n";
    CHECK(server.engine().last_request().prompt ==
          server.tokenizer().encode(text, {.add_special_tokens = false}));
    MadeServer without(script);
    messages.push_back({{"role", "user"}, {"content", "5"}});
    CHECK(without.chat({{"messages", messages}}).status == 200);
    CHECK(without.tokenizer()
              .decode(without.engine().last_request().prompt, {.skip_special_tokens = false})
              .find("hm") == std::string::npos);
}

TEST_CASE("add_special_tokens says whether a prompt begins with the model's tokens") {
    ModelFolder folder;
    folder.with("tokenizer.json", json_of(data_folder("llama3") / "tokenizer.json"));
    folder.with("tokenizer_config.json", json{{"eos_token", "<|endoftext|>"}});
    MadeServer server(script, {}, 256, {.name = "made", .tokenizer = folder.load()});
    const auto prompt_with = [&](const json& said) {
        json body{{"prompt", "Hello"}};
        body.update(said);
        CHECK(server.complete(body).status == 200);
        return server.engine().last_request().prompt;
    };
    const std::vector<int> bare = server.tokenizer().encode("Hello", {.add_special_tokens = false});
    const std::vector<int> whole = server.tokenizer().encode("Hello");
    REQUIRE(bare != whole);
    CHECK(prompt_with(json::object()) == whole);
    CHECK(prompt_with({{"add_special_tokens", true}}) == whole);
    CHECK(prompt_with({{"add_special_tokens", false}}) == bare);
}

TEST_CASE("one connection serves one request after the other") {
    MadeServer server(script);
    HttpClientSocket client(server.port());
    for (int i = 0; i < 3; ++i) {
        client.send("POST", "/v1/completions", json{{"prompt", "Once"}, {"max_tokens", 3}}.dump());
        CHECK(client.response().json()["usage"]["completion_tokens"] == 3);
        client.send("POST", "/v1/completions",
                    json{{"prompt", "Once"}, {"max_tokens", 3}, {"stream", true}}.dump());
        CHECK(client.response().body.ends_with("data: [DONE]\n\n"));
    }
}

TEST_CASE("a client that asks for the connection to be closed has it closed, however it spells that") {
    const MadeServer server(script, {.http = {.idle_timeout = std::chrono::milliseconds(60'000)}});
    const auto asks = [&](const std::string& headers) {
        HttpClientSocket client(server.port());
        client.send_text("GET /health HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n");
        const HttpResponse response = client.response();
        CHECK(response.status == 200);
        const std::size_t at = response.head.find("Connection: close");
        CHECK(at == response.head.rfind("Connection: close"));  // said once
        client.send("GET", "/health");
        CHECK(client.wait_for("HTTP/1.1") == (at == std::string::npos));
        return at != std::string::npos;
    };
    for (const char* headers : {"Connection: close\r\n", "Connection: Close\r\n", "connection: CLOSE\r\n",
                                "Connection: keep-alive, Close\r\n", "Connection: close ,\tTE\r\n",
                                "Connection: keep-alive\r\nConnection: ,close\r\n"}) {
        CAPTURE(headers);
        CHECK(asks(headers));
    }
    for (const char* headers : {"", "Connection: keep-alive\r\n", "Connection: closed\r\n",
                                "Connection: clos, e\r\n", "Connection:\r\n", "X-Connection: close\r\n"}) {
        CAPTURE(headers);
        CHECK_FALSE(asks(headers));
    }
}

TEST_CASE("a target may name the server in front of its path, as clients of proxies do") {
    const MadeServer server(script);
    const auto asks = [&](const std::string& target) {
        HttpClientSocket client(server.port());
        client.send_text("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n");
        return client.response();
    };
    for (const char* host : {"http://127.0.0.1:8000", "HTTP://somewhere.example", "https://[::1]:80"}) {
        CAPTURE(host);
        CHECK(asks(std::string(host) + "/health").json()["status"] == "ok");
        CHECK(asks(std::string(host) + "/v1/models?x=1").json()["object"] == "list");
        CHECK(asks(host).status == 404);
        CHECK(asks(host).message().starts_with("there is no /; "));
    }
    CHECK(asks("http:///health").status == 404);
    CHECK(asks("http://").status == 404);
    CHECK(asks("ftp://host/health").status == 404);
    CHECK(asks("/http://host/health").status == 404);
    HttpClientSocket client(server.port());
    const std::string body = R"({"prompt": "a", "max_tokens": 2})";
    client.send_text(
        fmt::format("POST http://host/v1/completions HTTP/1.1\r\nHost: host\r\nContent-Length: {}\r\n\r\n{}",
                    body.size(), body));
    CHECK(client.response().json()["usage"]["completion_tokens"] == 2);
}

TEST_CASE("the model, health, and who asks for something else") {
    MadeServer server(script);
    CHECK(server.get("/health").json()["status"] == "ok");
    const json models = server.get("/v1/models").json();
    CHECK(models["data"][0]["id"] == "made");
    CHECK(models["data"][0]["max_model_len"] == 256);
    CHECK(server.get("/v1/models/made").json()["object"] == "model");
    CHECK(server.get("/v1/models/other").status == 404);
    CHECK(server.get("/v1/models/other").json()["error"]["code"] == "model_not_found");
    CHECK(
        server.get("/v1").message() ==
        "there is no /v1; there are /v1/completions, /v1/chat/completions, /v1/models, /health and /metrics");
    const HttpResponse wrong = server.get("/v1/completions");
    CHECK(wrong.status == 405);
    CHECK(wrong.head.find("Allow: POST") != std::string::npos);
    CHECK(request(server.port(), "POST", "/health", "{}").status == 405);
    CHECK(request(server.port(), "DELETE", "/v1/models/made").status == 405);
}

TEST_CASE("a client that leaves frees its pages, whether it reads a stream or waits") {
    MadeServer server(script);
    server.engine().set_step(std::chrono::milliseconds(10));
    for (const bool streams : {true, false}) {
        {
            HttpClientSocket client(server.port());
            client.send(
                "POST", "/v1/completions",
                json{{"prompt", "a"}, {"max_tokens", 250}, {"ignore_eos", true}, {"stream", streams}}.dump());
            REQUIRE(server.wait_for_running(1));
            CHECK(server.engine().state().pages_used == 2);
        }
        CHECK(server.wait_for_running(0));
        CHECK(server.engine().state().pages_used == 0);
    }
    CHECK(server.engine().cancelled() == 2);
    while (metric(server, "hone_requests_active") > 0) std::this_thread::yield();
    CHECK(metric(server, "hone_requests_total{outcome=\"left\"}") == 2);
}

TEST_CASE("a client that has closed its own side reads that its answer is not whole") {
    MadeServer server;
    server.engine().hold(true);
    HttpClientSocket client(server.port());
    client.send("POST", "/v1/completions", R"({"prompt": "a"})");
    REQUIRE(server.wait_for_running(1));
    client.close_writing();
    const HttpResponse response = client.response();
    CHECK(response.status == 400);
    CHECK(response.json()["error"]["code"] == "client_left");
    CHECK(server.wait_for_running(0));
}

TEST_CASE("a client that waits for its turn and leaves is cancelled, too") {
    MadeServer server(script);
    server.engine().hold(true);
    {
        HttpClientSocket client(server.port());
        client.send("POST", "/v1/completions", R"({"prompt": "Once"})");
        REQUIRE(server.wait_for_running(1));
    }
    CHECK(server.wait_for_running(0));
}

TEST_CASE("more requests than allowed are refused with 429, and taken again later") {
    MadeServer server(script, {.service = {.max_requests = 2}});
    server.engine().hold(true);
    HttpClientSocket first(server.port());
    HttpClientSocket second(server.port());
    first.send("POST", "/v1/completions", R"({"prompt": "Once"})");
    second.send("POST", "/v1/completions", R"({"prompt": "Once", "stream": true})");
    REQUIRE(server.wait_for_running(2));
    const HttpResponse third = server.complete({{"prompt", "Once"}});
    CHECK(third.status == 429);
    CHECK(third.head.find("Retry-After: 1") != std::string::npos);
    CHECK(third.json()["error"]["type"] == "rate_limit_error");
    CHECK(third.message() ==
          "2 requests are being answered, as many as this server takes at a time; try again");
    CHECK(server.get("/health").status == 200);
    server.engine().hold(false);
    CHECK(first.response().status == 200);
    CHECK(second.response().whole);
    while (metric(server, "hone_requests_active") > 0) std::this_thread::yield();
    CHECK(server.complete({{"prompt", "Once"}}).status == 200);
    CHECK(metric(server, "hone_requests_total{outcome=\"too_many\"}") == 1);
}

TEST_CASE("metrics count requests, tokens and times") {
    MadeServer server(script);
    const auto tokens = static_cast<double>(server.tokens(script) + 1);
    for (int i = 0; i < 3; ++i)
        CHECK(server.complete({{"prompt", "Once"}, {"max_tokens", 100}}).status == 200);
    CHECK(server.complete({{"prompt", 1}}).status == 400);
    while (metric(server, "hone_requests_active") > 0) std::this_thread::yield();
    CHECK(metric(server, "hone_requests_total{outcome=\"completed\"}") == 3);
    CHECK(metric(server, "hone_requests_total{outcome=\"refused\"}") == 1);
    CHECK(metric(server, "hone_generated_tokens_total") == 3 * tokens);
    CHECK(metric(server, "hone_prompt_tokens_total") == 3.0 * static_cast<double>(server.tokens("Once")));
    CHECK(metric(server, "hone_cache_pages") == 1000);
    CHECK(metric(server, "hone_cache_pages_used") == 0);
    CHECK(metric(server, "hone_sequences_running") == 0);
    CHECK(metric(server, "hone_time_to_first_token_seconds_count") == 3);
    CHECK(metric(server, "hone_time_between_tokens_seconds_count") == 3 * (tokens - 1));
    CHECK(metric(server, "hone_time_between_tokens_seconds_bucket{le=\"+Inf\"}") == 3 * (tokens - 1));
    CHECK(server.get("/metrics").head.find("Content-Type: text/plain; version=0.0.4") != std::string::npos);
}

TEST_CASE("metrics have Prometheus' form: each family is described once, in front of its samples") {
    MadeServer server(script);
    const auto tokens = static_cast<double>(server.tokens(script) + 1);
    for (int i = 0; i < 3; ++i)
        CHECK(server.complete({{"prompt", "Once"}, {"max_tokens", 100}}).status == 200);
    const std::string text = server.get("/metrics").body;
    REQUIRE(text.ends_with('\n'));
    std::map<std::string, std::string> types;
    std::map<std::string, double> last;  // the latest bucket of a histogram
    std::string family;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        CAPTURE(line);
        std::istringstream words(line);
        std::string word, name, what;
        words >> word;
        if (word == "#") {
            words >> what >> name;
            REQUIRE((what == "HELP" || what == "TYPE"));
            if (what == "HELP") CHECK_FALSE(types.contains(name));
            if (what == "TYPE") words >> types[name];
            family = name;
            continue;
        }
        double value = -1;
        REQUIRE_FALSE((words >> value).fail());
        CHECK(value >= 0);
        REQUIRE(words.eof());
        name = word.substr(0, word.find('{'));
        CHECK((word.size() == name.size() || word.ends_with("\"}")));
        if (types.at(family) != "histogram") {
            CHECK(name == family);
            CHECK(((types.at(family) == "counter") == name.ends_with("_total")));
            continue;
        }
        CHECK(name.starts_with(family));
        const std::string kind = name.substr(family.size());
        if (kind == "_bucket") {
            CHECK(value >= last[family]);
            last[family] = value;
        } else if (kind == "_count") {
            CHECK(value == last[family]);  // of the bucket without an end, which comes last
            CHECK(value == (family == "hone_time_to_first_token_seconds" ? 3 : 3 * (tokens - 1)));
        } else {
            CHECK(kind == "_sum");
        }
    }
    CHECK(types.size() == 21);
}

TEST_CASE("a GPU that fails: 503 to all, and the server ends with the reason") {
    MadeServer server(script, {.farewell = std::chrono::seconds(5)});
    server.engine().set_step(std::chrono::milliseconds(20));
    HttpClientSocket waits(server.port());
    waits.send("POST", "/v1/completions", R"({"prompt": "Once", "max_tokens": 200, "ignore_eos": true})");
    HttpClientSocket streams(server.port());
    streams.send("POST", "/v1/completions",
                 R"({"prompt": "Once", "max_tokens": 200, "ignore_eos": true, "stream": true})");
    REQUIRE(server.wait_for_running(2));
    REQUIRE(streams.wait_for("data: "));
    server.engine().fail("the GPU has fallen off the bus");
    const HttpResponse response = waits.response();
    CHECK(response.status == 503);
    CHECK(response.message() == "the GPU has fallen off the bus");
    CHECK(response.json()["error"]["type"] == "server_error");
    bool done = false;
    CHECK(events(streams.response().body, done).back()["error"]["code"] == "engine_failed");
    CHECK_FALSE(done);
    CHECK(server.complete({{"prompt", "Once"}}).status == 503);
    CHECK(server.get("/health").status == 503);
    CHECK(server.get("/health").json()["reason"] == "the GPU has fallen off the bus");
    CHECK(server.end() == "the GPU has fallen off the bus");
    CHECK_FALSE(HttpClientSocket(server.port()).connected());
}

TEST_CASE("asked to stop, it finishes what runs and takes nothing new") {
    MadeServer server(script);
    server.engine().hold(true);
    HttpClientSocket client(server.port());
    client.send("POST", "/v1/completions", R"({"prompt": "Once", "max_tokens": 15, "ignore_eos": true})");
    REQUIRE(server.wait_for_running(1));
    server.stop();
    while (server.get("/health").status != 503) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(server.complete({{"prompt", "Once"}}).message() == "the server is stopping");
    server.engine().hold(false);
    CHECK(client.response().json()["usage"]["completion_tokens"] == 15);
    CHECK(server.end().empty());
}

TEST_CASE("what does not finish within the grace is ended with a reason") {
    MadeServer server(script, {.grace = std::chrono::milliseconds(100)});
    server.engine().hold(true);
    HttpClientSocket waits(server.port());
    waits.send("POST", "/v1/completions", R"({"prompt": "Once"})");
    HttpClientSocket streams(server.port());
    streams.send("POST", "/v1/completions", R"({"prompt": "Once", "stream": true})");
    REQUIRE(server.wait_for_running(2));
    server.stop();
    CHECK(waits.response().status == 503);
    bool done = false;
    CHECK(events(streams.response().body, done).back()["error"]["message"] == "the server is stopping");
    CHECK_FALSE(done);
    CHECK(server.end().empty());
    CHECK(server.engine().state().running == 0);
}

TEST_CASE("two servers cannot have one port, and hosts that are none are named") {
    const MadeServer server(script);
    try {
        const decoder::HttpServer second({.port = server.port()}, {});
        FAIL("it listens");
    } catch (const decoder::ListenError& error) {
        CHECK(error.what() ==
              fmt::format("port {} of 127.0.0.1 is in use: another server runs there; another --port, "
                          "or 0 for one that is free",
                          server.port()));
    }
    CHECK_THROWS_WITH_AS(
        decoder::HttpServer({.host = "256.1.1.1", .port = 0}, {}),
        "cannot listen at 256.1.1.1, port 0: no such host or address; allowed: one of this machine",
        decoder::ListenError);
}

TEST_CASE("what the module for HTTP knows of a thread is made with it, and not at its first request") {
    static_cast<void>(decoder::HttpLibrary::get());
    bool is_found = false;
    const auto look = [](dl_phdr_info* object, std::size_t, void* found) {
        if (std::string_view(object->dlpi_name).find("libhone_http") == std::string_view::npos) return 0;
        for (const ElfW(Phdr) & part : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
            if (part.p_type != PT_DYNAMIC) continue;
            for (const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object->dlpi_addr + part.p_vaddr);
                 entry->d_tag != DT_NULL; ++entry) {
                if (entry->d_tag == DT_FLAGS)
                    *static_cast<bool*>(found) = (entry->d_un.d_val & DF_STATIC_TLS) != 0;
            }
        }
        return 1;
    };
    dl_iterate_phdr(look, &is_found);
    CHECK(is_found);
}

TEST_CASE("many clients at a time each get their own text") {
    MadeServer server(script, {.service = {.max_requests = 64}});
    std::vector<std::future<bool>> clients;
    for (int i = 0; i < 24; ++i) {
        clients.push_back(std::async(std::launch::async, [&server, i] {
            bool fine = true;
            for (int round = 0; round < 4; ++round) {
                const int tokens = 1 + (i * 7 + round) % 23;
                const json answer =
                    server.complete({{"prompt", "Once"}, {"max_tokens", tokens}, {"ignore_eos", true}})
                        .json();
                fine = fine && answer["usage"]["completion_tokens"] == tokens;
            }
            return fine;
        }));
    }
    for (std::future<bool>& client : clients) CHECK(client.get());
    CHECK(server.wait_for_running(0));
}
