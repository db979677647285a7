// Log probabilities, repeated prompts and tokens that end a text, as the server answers them.
// Starts threads: the thread sanitizer runs this file, too.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "decoder/text/utf8.h"
#include "tests/decoder/serve_support.h"

using namespace hone;
using namespace hone::test;
using nlohmann::json;

namespace {

constexpr const char* script = "Hello, wörld! And 🎉 more.";

std::string bytes_of(const json& token) {
    std::string bytes;
    for (const json& byte : token["bytes"]) bytes += static_cast<char>(byte.get<int>());
    return bytes;
}

/// What a completion's tokens say of themselves, and where they begin in the text.
void check_completion(const MadeServer& server, const json& logprobs, const std::vector<int>& ids,
                      int likeliest, std::size_t without = 0) {
    REQUIRE(logprobs["tokens"].size() == ids.size());
    REQUIRE(logprobs["token_logprobs"].size() == ids.size());
    REQUIRE(logprobs["top_logprobs"].size() == ids.size());
    REQUIRE(logprobs["text_offset"].size() == ids.size());
    decoder::TextStream stream = server.tokenizer().stream();
    std::size_t offset = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        CAPTURE(i);
        CHECK(logprobs["text_offset"][i] == offset);
        offset += decoder::count_characters(stream.push(ids[i]));
        const std::string bytes = server.tokenizer().bytes_of(ids[i]);
        const std::string token = logprobs["tokens"][i];
        CHECK((decoder::is_utf8(bytes) ? token == bytes : token.starts_with("bytes:")));
        if (i < without) {
            CHECK(logprobs["token_logprobs"][i].is_null());
            CHECK(logprobs["top_logprobs"][i].is_null());
            continue;
        }
        const decoder::TokenChances expected = ScriptedEngine::chances(ids[i], likeliest);
        CHECK(logprobs["token_logprobs"][i] == expected.log_probability);
        const json& top = logprobs["top_logprobs"][i];
        CHECK(top.size() >= static_cast<std::size_t>(likeliest));
        CHECK(top.size() <= static_cast<std::size_t>(likeliest) + 1);
        REQUIRE(top.contains(token));
        for (const decoder::TokenChance& one : expected.likeliest)
            CHECK(top[server.tokenizer().bytes_of(one.token)] == one.log_probability);
    }
}

/// The choices of a stream put together again.
struct Streamed {
    std::string text;
    std::vector<json> logprobs;
    std::string finish;
};

Streamed streamed(const HttpResponse& response, std::size_t index = 0) {
    bool done = false;
    Streamed whole;
    for (const json& piece : events(response.body, done)) {
        if (piece["choices"].empty() || piece["choices"][0]["index"] != index) continue;
        const json& choice = piece["choices"][0];
        whole.text += choice.contains("text") ? choice["text"] : choice["delta"].value("content", json(""));
        if (!choice["logprobs"].is_null()) whole.logprobs.push_back(choice["logprobs"]);
        if (!choice["finish_reason"].is_null()) whole.finish = choice["finish_reason"];
    }
    CHECK(done);
    return whole;
}

json together(const std::vector<json>& pieces) {
    json whole = json::object();
    for (const json& piece : pieces) {
        for (const auto& [key, list] : piece.items()) {
            if (!list.is_array()) continue;
            json& all = whole.emplace(key, json::array()).first.value();
            all.insert(all.end(), list.begin(), list.end());
        }
    }
    return whole;
}

json message(const char* text) { return {{{"role", "user"}, {"content", text}}}; }

}  // namespace

TEST_CASE("a token's bytes are what it adds to a text, also where that is a part of a character") {
    const MadeServer server(script);
    std::string whole;
    bool has_parts = false;
    for (const int id : server.tokenizer().encode(script)) {
        whole += server.tokenizer().bytes_of(id);
        has_parts = has_parts || !decoder::is_utf8(server.tokenizer().bytes_of(id));
    }
    CHECK(whole == script);
    CHECK(has_parts);
    CHECK(server.tokenizer().bytes_of(*server.tokenizer().id_of("<|im_end|>")) == "<|im_end|>");
    CHECK(server.tokenizer().bytes_of(server.tokenizer().end_id() + 5).empty());
}

TEST_CASE("a completion that asks has each token's log probability, and those of the likeliest") {
    MadeServer server(script);
    std::vector<int> ids = server.tokenizer().encode(script);
    ids.push_back(server.tokenizer().eos_ids().front());  // of what was made, though not of the text
    for (const int likeliest : {0, 1, 5}) {
        const json answer =
            server.complete({{"prompt", "Once"}, {"max_tokens", 100}, {"logprobs", likeliest}}).json();
        CHECK(answer["choices"][0]["text"] == script);
        check_completion(server, answer["choices"][0]["logprobs"], ids, likeliest);
        CHECK(answer["usage"]["completion_tokens"] == ids.size());
        const Streamed pieces = streamed(server.complete(
            {{"prompt", "Once"}, {"max_tokens", 100}, {"logprobs", likeliest}, {"stream", true}}));
        CHECK(pieces.text == script);
        CHECK(together(pieces.logprobs) == answer["choices"][0]["logprobs"]);
    }
    CHECK(server.engine().last_request().likeliest == 5);
    CHECK_FALSE(server.engine().last_request().scores_prompt);
    for (const json& none : {json(), json(false)}) {
        const json answer = server.complete({{"prompt", "Once"}, {"logprobs", none}}).json();
        CHECK(answer["choices"][0]["logprobs"].is_null());
        CHECK_FALSE(server.engine().last_request().likeliest);
    }
}

TEST_CASE("a chat that asks has each token with its bytes, and as many of the likeliest") {
    MadeServer server(script);
    const std::vector<int> ids = server.tokenizer().encode(script);
    for (const int likeliest : {0, 20}) {
        json asked{{"messages", message("Hi")}, {"logprobs", true}};
        if (likeliest > 0) asked["top_logprobs"] = likeliest;
        const json choice = server.chat(asked).json()["choices"][0];
        CHECK(choice["logprobs"]["refusal"].is_null());
        const json& content = choice["logprobs"]["content"];
        REQUIRE(content.size() == ids.size());
        std::string whole;
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const decoder::TokenChances expected = ScriptedEngine::chances(ids[i], likeliest);
            const std::string bytes = bytes_of(content[i]);
            CHECK(bytes == server.tokenizer().bytes_of(ids[i]));
            if (decoder::is_utf8(bytes)) {
                CHECK(content[i]["token"] == bytes);
            } else {
                CHECK(content[i]["token"].get<std::string>().starts_with("\\x"));
            }
            CHECK(content[i]["logprob"] == expected.log_probability);
            REQUIRE(content[i]["top_logprobs"].size() == static_cast<std::size_t>(likeliest));
            for (std::size_t k = 0; k < expected.likeliest.size(); ++k) {
                const json& one = content[i]["top_logprobs"][k];
                CHECK(bytes_of(one) == server.tokenizer().bytes_of(expected.likeliest[k].token));
                CHECK(one["logprob"] == expected.likeliest[k].log_probability);
            }
            whole += bytes;
        }
        CHECK(whole == script);
        asked["stream"] = true;
        const Streamed pieces = streamed(server.chat(asked));
        CHECK(pieces.text == script);
        CHECK(together(pieces.logprobs)["content"] == content);
        bool done = false;
        const json first = events(server.chat(asked).body, done).front()["choices"][0];
        CHECK(first["delta"] == json{{"role", "assistant"}, {"content", ""}});
        CHECK(first["logprobs"].is_null());  // as clients add what follows to what the first one has
    }
    CHECK(server.chat({{"messages", message("Hi")}}).json()["choices"][0]["logprobs"].is_null());
    CHECK(server.chat({{"messages", message("Hi")}, {"logprobs", false}, {"top_logprobs", 0}})
              .json()["choices"][0]["logprobs"]
              .is_null());
}

TEST_CASE("tokens of a stop are not in the answer, those that reach into it are, in a stream as in a whole") {
    MadeServer server("one two three");
    const std::vector<int> ids = server.tokenizer().encode("one two three");
    for (const char* stop : {" two", "wo", "e t", "ree", "one"}) {
        CAPTURE(stop);
        const json asked{{"prompt", "Once"}, {"max_tokens", 100}, {"logprobs", 1}, {"stop", stop}};
        const json choice = server.complete(asked).json()["choices"][0];
        const std::string text = choice["text"];
        std::vector<int> shown;
        std::string before;
        for (const int id : ids) {
            if (before.size() >= text.size()) break;
            shown.push_back(id);
            before += server.tokenizer().bytes_of(id);
        }
        check_completion(server, choice["logprobs"], shown, 1);
        json streams = asked;
        streams["stream"] = true;
        const Streamed pieces = streamed(server.complete(streams));
        CHECK(pieces.text == text);
        CHECK(pieces.finish == "stop");
        CHECK(together(pieces.logprobs) == choice["logprobs"]);
    }
}

TEST_CASE("several prompts and choices have log probabilities of their own") {
    MadeServer server(script);
    const std::vector<int> ids = server.tokenizer().encode(script);
    const json asked{{"prompt", {"Once", "and again"}}, {"n", 2}, {"max_tokens", 4}, {"logprobs", 2}};
    const json answer = server.complete(asked).json();
    REQUIRE(answer["choices"].size() == 4);
    for (const json& choice : answer["choices"])
        check_completion(server, choice["logprobs"], {ids.begin(), ids.begin() + 4}, 2);
    json streams = asked;
    streams["stream"] = true;
    const HttpResponse response = server.complete(streams);
    for (std::size_t i = 0; i < 4; ++i)
        CHECK(together(streamed(response, i).logprobs) == answer["choices"][i]["logprobs"]);
}

TEST_CASE("a prompt is repeated in front of its text, as a text or as ids") {
    MadeServer server(script);
    const std::string prompt = "Once <|im_start|>upön";
    const std::vector<int> ids = server.tokenizer().encode(prompt);
    for (const json& given : {json(prompt), json(ids)}) {
        const json answer = server.complete({{"prompt", given}, {"max_tokens", 100}, {"echo", true}}).json();
        CHECK(answer["choices"][0]["text"] == prompt + script);
        CHECK(answer["choices"][0]["logprobs"].is_null());
        CHECK(answer["usage"]["prompt_tokens"] == ids.size());
        CHECK_FALSE(server.engine().last_request().scores_prompt);
        const json alone = server.complete({{"prompt", given}, {"max_tokens", 0}, {"echo", true}}).json();
        CHECK(alone["choices"][0]["text"] == prompt);
        CHECK(alone["choices"][0]["finish_reason"] == "length");
        CHECK(alone["usage"]["completion_tokens"] == 0);
        CHECK(alone["usage"]["total_tokens"] == ids.size());
        CHECK(streamed(
                  server.complete({{"prompt", given}, {"max_tokens", 5}, {"echo", true}, {"stream", true}}))
                  .text.starts_with(prompt + "Hello"));
    }
    CHECK(server.wait_for_running(0));
    const json stopped =
        server.complete({{"prompt", "a stop b"}, {"max_tokens", 100}, {"echo", true}, {"stop", "stop"}})
            .json();
    CHECK(stopped["choices"][0]["text"] == std::string("a stop b") + script);
}

TEST_CASE("a repeated prompt has log probabilities of its own tokens, but of the first") {
    MadeServer server(script);
    const std::string prompt = "Once upön a 🎉";
    const std::vector<int> ids = server.tokenizer().encode(prompt);
    std::vector<int> made = server.tokenizer().encode(script);
    made.push_back(server.tokenizer().eos_ids().front());
    for (const int tokens : {0, 1, 100}) {
        std::vector<int> all = ids;
        all.insert(all.end(), made.begin(),
                   made.begin() + std::min<std::ptrdiff_t>(tokens, std::ssize(made)));
        for (const json& given : {json(prompt), json(ids), json{ids, ids}}) {
            const json asked{{"prompt", given},
                             {"max_tokens", tokens},
                             {"echo", true},
                             {"logprobs", 1},
                             {"temperature", 0}};
            const json answer = server.complete(asked).json();
            CHECK(server.engine().last_request().scores_prompt);
            for (const json& choice : answer["choices"])
                check_completion(server, choice["logprobs"], all, 1, 1);
            json streams = asked;
            streams["stream"] = true;
            const Streamed pieces = streamed(server.complete(streams));
            CHECK(pieces.text == answer["choices"][0]["text"]);
            CHECK(together(pieces.logprobs) == answer["choices"][0]["logprobs"]);
        }
    }
}

TEST_CASE(
    "a harness that takes the last log probability for the token that was made finds it, whatever that is") {
    // lm-evaluation-harness sums token_logprobs[context:-1], and holds each against the largest of
    // top_logprobs.
    MadeServer server("!");
    const std::vector<int> ids{40, 5, 7, 41, 40};
    for (const json& fields : {json::object(), json{{"stop_token_ids", server.tokenizer().encode("!")}}}) {
        json asked{{"prompt", {ids, ids}}, {"max_tokens", 1},  {"echo", true},
                   {"logprobs", 1},        {"temperature", 0}, {"seed", 1234}};
        asked.update(fields);
        const json answer = server.complete(asked).json();
        REQUIRE(answer["choices"].size() == 2);
        for (const json& choice : answer["choices"]) {
            const json& logprobs = choice["logprobs"];
            REQUIRE(logprobs["token_logprobs"].size() == ids.size() + 1);
            for (std::size_t i = 1; i < ids.size(); ++i) {
                CHECK(logprobs["token_logprobs"][i] == ScriptedEngine::chances(ids[i], 1).log_probability);
                double largest = -1e9;
                for (const auto& [token, chance] : logprobs["top_logprobs"][i].items())
                    largest = std::max(largest, chance.get<double>());
                CHECK(largest == -0.25);
            }
        }
    }
}

TEST_CASE("the token that every text begins with has a place, and no characters") {
    ModelFolder folder;
    folder.with("tokenizer.json", json_of(data_folder("llama3") / "tokenizer.json"));
    folder.with("tokenizer_config.json",
                json{{"eos_token", "<|endoftext|>"}, {"bos_token", "<|begin_of_text|>"}});
    MadeServer server(script, {}, 256, {.name = "made", .tokenizer = folder.load()});
    const std::vector<int> ids = server.tokenizer().encode("Hello you");
    REQUIRE(ids.front() == server.tokenizer().bos_id());
    const json choice =
        server.complete({{"prompt", "Hello you"}, {"max_tokens", 0}, {"echo", true}, {"logprobs", 0}})
            .json()["choices"][0];
    CHECK(choice["text"] == "Hello you");
    CHECK(choice["logprobs"]["tokens"][0] == server.tokenizer().bytes_of(ids.front()));
    check_completion(server, choice["logprobs"], ids, 0, 1);
}

TEST_CASE("a text goes on behind a prompt that is repeated, with the space that it would begin with") {
    ModelFolder folder;
    folder.with("tokenizer.json", json_of(data_folder("llama2") / "tokenizer.json"));
    folder.with("tokenizer_config.json", json{{"eos_token", "</s>"}, {"bos_token", "<s>"}});
    MadeServer server("Hello there", {}, 256, {.name = "made", .tokenizer = folder.load()});
    json asked{{"prompt", "Once"}, {"max_tokens", 100}, {"add_special_tokens", false}};
    const auto text = [&] { return server.complete(asked).json()["choices"][0]["text"].get<std::string>(); };
    const std::string alone = text();
    CHECK(alone.starts_with("Hello"));
    asked["echo"] = true;
    CHECK(text() == "Once " + alone);
    asked["add_special_tokens"] = true;
    CHECK(text() == "Once " + alone);
}

TEST_CASE("tokens that stop a text are no part of it") {
    MadeServer server(script);
    const std::vector<int> ids = server.tokenizer().encode(script);
    const auto ends = [&](const json& fields) {
        json asked{{"prompt", "Once"}, {"max_tokens", 100}, {"stop_token_ids", {ids[2]}}, {"logprobs", 0}};
        asked.update(fields);
        const json choice = server.complete(asked).json()["choices"][0];
        CHECK(choice["text"] == server.tokenizer().decode(std::vector<int>{ids[0], ids[1]}));
        CHECK(choice["finish_reason"] == "stop");
        REQUIRE(choice["logprobs"]["tokens"].size() == 3);
        CHECK(choice["logprobs"]["tokens"][2] == server.tokenizer().bytes_of(ids[2]));
    };
    ends(json::object());
    CHECK(server.engine().last_request().end_ids ==
          std::vector{server.tokenizer().eos_ids().front(), ids[2]});
    ends({{"ignore_eos", true}});
    CHECK(server.engine().last_request().end_ids == std::vector{ids[2]});
    CHECK(server.chat({{"messages", message("Hi")}, {"stop_token_ids", {ids[1]}}})
              .json()["choices"][0]["message"]["content"] ==
          server.tokenizer().decode(std::vector<int>{ids[0]}));
}

TEST_CASE("a share of 0 takes the likeliest token") {
    MadeServer server(script);
    for (const double share : {0.0, 1e-7}) {
        CHECK(server.complete({{"prompt", "a"}, {"top_p", share}, {"temperature", 1.5}}).status == 200);
        CHECK(server.engine().last_request().wishes.temperature == 0);
        CHECK_FALSE(server.engine().last_request().wishes.filters());
    }
    CHECK(server.complete({{"prompt", "a"}, {"top_p", 1e-3}, {"temperature", 1.5}}).status == 200);
    CHECK(server.engine().last_request().wishes.temperature == 1.5F);
    CHECK(server.engine().last_request().wishes.top_p == 1e-3F);
}

TEST_CASE("a client that leaves while it waits for log probabilities has its texts cancelled") {
    MadeServer server(script);
    server.engine().set_step(std::chrono::milliseconds(20));
    {
        HttpClientSocket client(server.port());
        client.send("POST", "/v1/completions",
                    R"({"prompt": "Once", "echo": true, "logprobs": 5, "stream": true, "max_tokens": 200,)"
                    R"( "ignore_eos": true, "n": 2})");
        CHECK(client.wait_for("token_logprobs"));
    }
    CHECK(server.wait_for_running(0));
    CHECK(server.engine().cancelled() == 2);
}
