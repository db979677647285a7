// A server on a scripted engine, at a free port.
#pragma once

#include <future>

#include "decoder/serve/model_server.h"
#include "tests/decoder/http_client.h"
#include "tests/decoder/scripted_engine.h"
#include "tests/decoder/support.h"

namespace hone::test {

/// Qwen's kind, with a template of ChatML's kind. Where they are given, more statements stand behind it, and
/// in front of the content of each message `m`.
inline decoder::ServedModel made_model(const std::string& statements = {},
                                       const std::string& in_messages = {}) {
    ModelFolder folder;
    folder.with("tokenizer.json", json_of(data_folder("qwen") / "tokenizer.json"));
    const std::string chat =
        "{% if messages[0].role != 'system' %}{{ '<|im_start|>system\nBe brief.<|im_end|>\n' }}{% endif %}"
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}" +
        in_messages + "{{ m.content + '<|im_end|>\n' }}{% endfor %}{{ '<|im_start|>assistant\n' }}" +
        statements;
    folder.with("tokenizer_config.json",
                nlohmann::json{{"eos_token", "<|endoftext|>"}, {"chat_template", chat}});
    const decoder::Tokenizer tokenizer = folder.load();
    return {.name = "made",
            .tokenizer = tokenizer,
            .chat = decoder::ChatTemplate::load(folder.path(), tokenizer)};
}

class MadeServer {
  public:
    explicit MadeServer(std::string_view text = "Hello, world! And more.", decoder::ServeOptions options = {},
                        int context = 256, decoder::ServedModel model = made_model())
        : model_(std::move(model)),
          engine_(model_.tokenizer.encode(text), model_.tokenizer.eos_ids().front(), context),
          server_(engine_, model_, at_free_port(std::move(options))),
          ended_(std::async(std::launch::async, [this] { return server_.run(stop_); })) {}
    MadeServer(const MadeServer&) = delete;
    MadeServer& operator=(const MadeServer&) = delete;
    ~MadeServer() { stop_ = true; }

    [[nodiscard]] int port() const { return server_.port(); }
    ScriptedEngine& engine() { return engine_; }
    [[nodiscard]] const decoder::Tokenizer& tokenizer() const { return model_.tokenizer; }
    void stop() { stop_ = true; }
    /// What run() returned.
    std::string end() { return ended_.get(); }

    [[nodiscard]] HttpResponse get(std::string_view path) const { return request(port(), "GET", path); }
    [[nodiscard]] HttpResponse complete(const nlohmann::json& body) const {
        return request(port(), "POST", "/v1/completions", body.dump());
    }
    [[nodiscard]] HttpResponse chat(const nlohmann::json& body) const {
        return request(port(), "POST", "/v1/chat/completions", body.dump());
    }
    [[nodiscard]] std::size_t tokens(std::string_view text) const {
        return model_.tokenizer.encode(text).size();
    }
    /// Waits until so many texts are in the making.
    [[nodiscard]] bool wait_for_running(int count) const {
        for (int i = 0; i < 2000; ++i) {
            if (engine_.state().running == count) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        return false;
    }

  private:
    static decoder::ServeOptions at_free_port(decoder::ServeOptions options) {
        options.http.port = 0;
        return options;
    }

    decoder::ServedModel model_;
    ScriptedEngine engine_;
    decoder::ModelServer server_;
    std::atomic<bool> stop_{false};
    std::future<std::string> ended_;  ///< the last: waits for the server
};

}  // namespace hone::test
