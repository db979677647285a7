// An engine without a GPU, for tests of what stands on top of it: tokens come from a script, one a step for
// each request, from a thread of its own.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "decoder/engine/engine.h"
#include "decoder/error.h"

namespace hone::test {

class ScriptedEngine final : public decoder::TokenEngine {
  public:
    /// Each request gets these tokens, and then `end_id`, or fewer.
    explicit ScriptedEngine(std::vector<int> script, int end_id = 0, int context = 256)
        : script_(std::move(script)),
          end_id_(end_id),
          context_(context),
          thread_([this](const std::stop_token& stop) { run(stop); }) {}

    decoder::RequestId submit(decoder::TextRequest request, decoder::Listener listener) override {
        const std::lock_guard lock(mutex_);
        if (!failure_.empty()) throw decoder::EngineFailure(failure_);
        for (const int id : request.prompt) {
            if (id >= 100'000)
                throw decoder::DecoderError("the prompt has a token that the model does not know");
        }
        last_ = request;
        requests_.emplace(++last_id_, Running{std::move(request), std::move(listener)});
        return last_id_;
    }
    void cancel(decoder::RequestId id) override {
        const std::lock_guard lock(mutex_);
        cancelled_ += static_cast<int>(requests_.erase(id));
    }
    [[nodiscard]] decoder::EngineState state() const override {
        const std::lock_guard lock(mutex_);
        return {.running = static_cast<int>(requests_.size()),
                .pages = 1000,
                .pages_used = 2 * static_cast<int>(requests_.size()),
                .new_tokens = new_tokens_,
                .failure = failure_};
    }
    [[nodiscard]] int max_context() const override { return context_; }
    /// What it thinks of a token, and of this many in its place.
    [[nodiscard]] static decoder::TokenChances chances(int token, int likeliest) {
        decoder::TokenChances chances{.log_probability = -0.5 - (token % 16) / 8.0};
        for (int i = 0; i < likeliest; ++i) chances.likeliest.push_back({40 + i, -0.25 - i / 4.0});
        return chances;
    }

    /// No token comes while it is held.
    void hold(bool held) {
        const std::lock_guard lock(mutex_);
        held_ = held;
    }
    void set_step(std::chrono::milliseconds time) { step_ = time; }
    void fail(const std::string& why) {
        const std::lock_guard lock(mutex_);
        failure_ = why;
        for (const auto& [id, request] : requests_) request.listener.on_failure(why);
        requests_.clear();
    }
    [[nodiscard]] decoder::TextRequest last_request() const {
        const std::lock_guard lock(mutex_);
        return last_;
    }
    [[nodiscard]] int cancelled() const {
        const std::lock_guard lock(mutex_);
        return cancelled_;
    }

  private:
    struct Running {
        decoder::TextRequest request;
        decoder::Listener listener;
        std::size_t drawn = 0;
    };

    void run(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            std::this_thread::sleep_for(step_.load());
            for (auto& [running, token] : step()) {
                const decoder::TextRequest& request = running.request;
                if (running.drawn == 1 && request.scores_prompt) {
                    std::vector<decoder::TokenChances> of_prompt;
                    for (std::size_t i = 1; i < request.prompt.size(); ++i)
                        of_prompt.push_back(chances(request.prompt[i], request.likeliest.value_or(0)));
                    running.listener.on_prompt(std::move(of_prompt));
                }
                const decoder::TokenChances asked = chances(token.token, request.likeliest.value_or(0));
                if (request.likeliest) token.chances = &asked;
                running.listener.on_token(token);
            }
        }
    }

    std::vector<std::pair<Running, decoder::NewToken>> step() {
        using decoder::NewToken;
        std::vector<std::pair<Running, NewToken>> news;
        const std::lock_guard lock(mutex_);
        if (held_) return news;
        for (auto at = requests_.begin(); at != requests_.end();) {
            Running& running = at->second;
            const bool ends = running.drawn == script_.size() && !running.request.end_ids.empty();
            NewToken token{.request = at->first,
                           .token = ends ? end_id_ : script_[running.drawn % script_.size()]};
            ++running.drawn;
            if (ends || std::ranges::count(running.request.end_ids, token.token) > 0) {
                token.end = NewToken::End::end_id;
            } else if (static_cast<int>(running.drawn) == running.request.max_new_tokens) {
                token.end = NewToken::End::length;
            }
            ++new_tokens_;
            news.emplace_back(running, token);
            at = token.end == NewToken::End::none ? std::next(at) : requests_.erase(at);
        }
        return news;
    }

    std::vector<int> script_;
    int end_id_;
    int context_;
    mutable std::mutex mutex_;
    std::map<decoder::RequestId, Running> requests_;
    decoder::TextRequest last_;
    decoder::RequestId last_id_ = 0;
    std::uint64_t new_tokens_ = 0;
    int cancelled_ = 0;
    bool held_ = false;
    std::string failure_;
    std::atomic<std::chrono::milliseconds> step_{std::chrono::milliseconds(1)};
    std::jthread thread_;  ///< the last: ends before what it uses
};

}  // namespace hone::test
