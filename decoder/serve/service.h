// What the server answers to which request: OpenAI's completions and chat completions, the list of models,
// health and metrics. Knows no socket; called on many threads.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/chat/chat_template.h"
#include "decoder/engine/engine.h"
#include "decoder/http/server.h"
#include "decoder/serve/large_turn.h"
#include "decoder/serve/metrics.h"
#include "decoder/serve/request.h"
#include "decoder/tokenizer/tokenizer.h"

namespace hone::decoder {

class Answer;

/// What is served.
struct ServedModel {
    std::string name;  ///< as requests and replies say it
    Tokenizer tokenizer;
    std::optional<ChatTemplate> chat{};
    std::string no_chat{};  ///< why there is no template
};

struct ServiceOptions {
    int max_requests = 256;  ///< that are answered at a time; one more is refused with 429
    std::size_t max_body_bytes = std::size_t{8} << 20;
};

class Service {
  public:
    /// The engine must outlive it.
    Service(TokenEngine& engine, ServedModel model, const ServiceOptions& options);

    [[nodiscard]] HttpReply answer(const HttpRequest& request, HttpClient& client);
    /// What could not be read as a request.
    [[nodiscard]] HttpReply refuse(int status) const;

    /// From here on new requests for text are refused.
    void drain() { is_draining_ = true; }
    /// Requests under way end now, with an error.
    void cancel() { is_cancelled_ = true; }
    /// Requests for text that are answered now.
    [[nodiscard]] int active() const { return active_; }

  private:
    using Clock = std::chrono::steady_clock;
    /// A request's place among those that are answered at a time, and what becomes of it.
    class Place {
      public:
        explicit Place(Service& service) : service_(service) {}
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;
        ~Place();
        void set_end(RequestEnd end) { end_ = end; }

      private:
        Service& service_;
        RequestEnd end_ = RequestEnd::left;
    };
    using SharedPlace = std::shared_ptr<Place>;
    using SharedAnswer = std::shared_ptr<Answer>;

    [[nodiscard]] HttpReply route(const HttpRequest& request, HttpClient& client);
    [[nodiscard]] HttpReply answer_text(const HttpRequest& request, HttpClient& client, bool is_chat);
    [[nodiscard]] HttpReply stream(const SharedAnswer& answer, const SharedPlace& place);
    [[nodiscard]] HttpReply whole(Answer& answer, Place& place, HttpClient& client);
    [[nodiscard]] SharedPlace take_place();
    [[nodiscard]] SharedAnswer ask(ApiRequest request, Clock::time_point arrived, LargeTurn& turn);
    [[nodiscard]] ApiRequest read(const HttpRequest& request, bool is_chat, LargeTurn& turn);
    [[nodiscard]] std::vector<std::vector<int>> prompts_of(const ApiRequest& request, LargeTurn& turn) const;
    [[nodiscard]] std::vector<int> ids_of(std::string_view text, bool special_tokens, LargeTurn& turn) const;
    [[nodiscard]] std::vector<int> prompt_of(const Prompt& prompt, bool special_tokens,
                                             LargeTurn& turn) const;
    void take(LargeTurn& turn, std::size_t bytes) const;
    void require_not_cancelled() const;
    [[nodiscard]] TextRequest text_request(const ApiRequest& request, const std::vector<int>& prompt,
                                           int number) const;
    [[nodiscard]] int new_tokens(const ApiRequest& request, std::size_t prompt) const;
    void require_running() const;

    [[nodiscard]] HttpReply health() const;
    [[nodiscard]] HttpReply metrics() const;
    [[nodiscard]] HttpReply models(std::string_view name) const;

    TokenEngine& engine_;
    ServedModel model_;
    ServiceOptions options_;
    std::int64_t started_s_;
    std::shared_ptr<Metrics> metrics_;
    std::mutex large_turns_;
    std::atomic<int> active_{0};
    std::atomic<bool> is_draining_{false};
    std::atomic<bool> is_cancelled_{false};
};

}  // namespace hone::decoder
