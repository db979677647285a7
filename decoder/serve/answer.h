// A request being answered: tokens of its texts become pieces of text, and these OpenAI's JSON, as a whole or
// piece by piece. One thread.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "decoder/engine/text_output.h"
#include "decoder/serve/request.h"
#include "decoder/serve/shown_tokens.h"
#include "decoder/serve/texts.h"

namespace hone::decoder {

/// How an answer ended.
enum class AnswerEnd : std::uint8_t { whole, client_left, stopped, failed };

class Answer {
  public:
    /// `prompts` are the request's, of as many texts each as it has choices.
    Answer(const Tokenizer& tokenizer, ApiRequest request, std::string model,
           std::vector<std::vector<int>> prompts, std::unique_ptr<Texts> texts);

    struct Watch {
        std::function<bool()> connected;  ///< the client waits
        std::function<bool()> stopped;    ///< the server gives up what runs
    };
    /// The whole reply, once the texts have ended.
    [[nodiscard]] AnswerEnd wait(const Watch& watch);
    [[nodiscard]] nlohmann::json json();
    /// Hands out events as they come, and the end. `write` returns whether the client still takes them.
    [[nodiscard]] AnswerEnd stream(const Watch& watch, const std::function<bool(const std::string&)>& write);
    [[nodiscard]] std::string failure() const { return texts_->failure(); }

  private:
    struct Text {
        TextOutput output;
        std::string text{};    ///< as far as it may be shown
        std::string unsent{};  ///< in a stream
        const char* finish = nullptr;
        std::size_t tokens = 0;
        std::size_t shown = 0;           ///< characters, where log probabilities are asked for
        std::vector<ShownToken> told{};  ///< of these, tokens that are not in the answer yet
        bool has_begun = false;          ///< with the prompt, where that is repeated
        bool is_announced = false;       ///< in a stream: whose text it is
        bool is_sent = false;            ///< as a whole
        std::string before{};            ///< what a piece stands in, in a stream
        std::string behind{};
    };

    [[nodiscard]] AnswerEnd follow(const Watch& watch, const std::function<bool()>& on_news);
    void take(TextNews news);
    void repeat_prompt(std::size_t number, std::vector<TokenChances> chances);
    void tell(Text& text, int token, std::optional<TokenChances> chances) const;
    void show(Text& text, const std::string& piece) const;
    [[nodiscard]] bool ended() const;
    [[nodiscard]] bool send_news(const std::function<bool(const std::string&)>& write);
    [[nodiscard]] nlohmann::json head(const char* object) const;
    [[nodiscard]] nlohmann::json logprobs(Text& text) const;
    [[nodiscard]] nlohmann::json chunk(std::size_t index, std::string piece, const char* finish,
                                       bool is_first) const;
    [[nodiscard]] std::string news_event(std::size_t index, Text& text) const;
    [[nodiscard]] nlohmann::json usage() const;

    Tokenizer tokenizer_;
    ApiRequest request_;
    std::string model_;
    std::string id_;
    std::int64_t created_s_;
    std::vector<std::vector<int>> prompts_;  ///< where they are repeated
    std::size_t prompt_tokens_ = 0;
    std::unique_ptr<Texts> texts_;
    std::vector<Text> parts_;
};

/// An event of a stream.
[[nodiscard]] std::string event(const nlohmann::json& data);

}  // namespace hone::decoder
