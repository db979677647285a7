#include "decoder/serve/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "cache/process.h"
#include "decoder/serve/api_error.h"
#include "decoder/text/utf8.h"
#include "runtime/system/random_bits.h"

namespace hone::decoder {
namespace {

/// How soon a client that left, or the end of the server, is noticed.
constexpr std::chrono::milliseconds glance{100};

std::string new_id(bool is_chat) {
    return fmt::format("{}-{:016x}", is_chat ? "chatcmpl" : "cmpl", runtime::random_bits());
}

nlohmann::json text_or_null(const char* text) {
    return text == nullptr ? nlohmann::json() : nlohmann::json(text);
}

}  // namespace

std::string event(const nlohmann::json& data) { return "data: " + text_of(data) + "\n\n"; }

Answer::Answer(const Tokenizer& tokenizer, ApiRequest request, std::string model,
               std::vector<std::vector<int>> prompts, std::unique_ptr<Texts> texts)
    : tokenizer_(tokenizer),
      request_(std::move(request)),
      model_(std::move(model)),
      id_(new_id(request_.is_chat)),
      created_s_(cache::now_ms() / 1000),
      texts_(std::move(texts)) {
    for (const std::vector<int>& prompt : prompts) {
        prompt_tokens_ += prompt.size();
        for (int i = 0; i < request_.choices; ++i)
            parts_.push_back({.output = TextOutput(tokenizer, request_.stops)});
    }
    if (request_.echo) prompts_ = std::move(prompts);
}

bool Answer::ended() const {
    return std::ranges::all_of(parts_, [](const Text& text) { return text.finish != nullptr; });
}

/// A token that ends the text is no part of it, and none is where the prompt alone is asked for. A
/// completion's log probabilities have the one that ends it all the same: evaluation harnesses count on one
/// for each token that was made.
void Answer::take(TextNews news) {
    Text& text = parts_[news.text];
    if (text.finish != nullptr) return;
    TextChances chances;
    if (news.chances) chances = std::move(*news.chances);
    if (request_.echo && !std::exchange(text.has_begun, true))
        repeat_prompt(news.text, std::move(chances.of_prompt));
    const bool is_prompt_alone = request_.max_tokens == 0;
    const bool is_part = !is_prompt_alone && news.end != NewToken::End::end_id;
    if (!is_prompt_alone) ++text.tokens;
    if (is_part) {
        tell(text, news.token, std::move(chances.of_token));
        show(text, text.output.push(news.token));
    }
    if (news.end != NewToken::End::none) {
        show(text, text.output.finish());
        if (!is_part && !is_prompt_alone && !request_.is_chat)
            tell(text, news.token, std::move(chances.of_token));
        text.finish = is_prompt_alone || news.end == NewToken::End::length ? "length" : "stop";
    }
    if (text.output.stopped()) {
        text.finish = "stop";
        if (news.end == NewToken::End::none) texts_->cancel(news.text);
    }
}

/// As it was read, special tokens spelt out, but for the one that every text begins with. What follows goes
/// on behind it.
void Answer::repeat_prompt(std::size_t number, std::vector<TokenChances> chances) {
    Text& text = parts_[number];
    const std::vector<int>& prompt = prompts_[number / static_cast<std::size_t>(request_.choices)];
    TextStream stream = tokenizer_.stream({.skip_special_tokens = false});
    auto next = chances.begin();
    for (std::size_t i = 0; i < prompt.size(); ++i) {
        const bool is_known = i > 0 && next != chances.end();
        tell(text, prompt[i], is_known ? std::optional(std::move(*next++)) : std::nullopt);
        if (i > 0 || prompt[i] != tokenizer_.bos_id()) show(text, stream.push(prompt[i]));
    }
    text.output.begin_behind(prompt);
}

void Answer::tell(Text& text, int token, std::optional<TokenChances> chances) const {
    if (!request_.likeliest) return;
    text.told.push_back({token, text.shown + count_characters(text.output.pending()), std::move(chances)});
}

void Answer::show(Text& text, const std::string& piece) const {
    (request_.stream ? text.unsent : text.text) += piece;
    if (request_.likeliest) text.shown += count_characters(piece);
}

/// Of tokens that have begun to be shown since the last call; at the end of all, but for those of a stop.
nlohmann::json Answer::logprobs(Text& text) const {
    if (!request_.likeliest) return {};
    const bool ends_here = text.finish != nullptr && !text.output.stopped();
    const auto end =
        ends_here ? text.told.end() : std::ranges::partition_point(text.told, [&](const ShownToken& token) {
            return token.offset < text.shown;
        });
    const std::span<const ShownToken> shown(text.told.begin(), end);
    nlohmann::json logprobs =
        request_.is_chat ? chat_logprobs(tokenizer_, shown) : completion_logprobs(tokenizer_, shown);
    text.told.erase(text.told.begin(), end);
    return logprobs;
}

AnswerEnd Answer::follow(const Watch& watch, const std::function<bool()>& on_news) {
    while (!ended()) {
        for (TextNews& news : texts_->take(glance)) take(std::move(news));
        if (!on_news()) return AnswerEnd::client_left;
        if (ended()) break;
        if (!watch.connected()) return AnswerEnd::client_left;
        if (!texts_->failure().empty()) return AnswerEnd::failed;
        if (watch.stopped()) return AnswerEnd::stopped;
    }
    return AnswerEnd::whole;
}

AnswerEnd Answer::wait(const Watch& watch) {
    return follow(watch, [] { return true; });
}

nlohmann::json Answer::head(const char* object) const {
    return {{"id", id_}, {"object", object}, {"created", created_s_}, {"model", model_}};
}

nlohmann::json Answer::usage() const {
    std::size_t tokens = 0;
    for (const Text& text : parts_) tokens += text.tokens;
    return {{"prompt_tokens", prompt_tokens_},
            {"completion_tokens", tokens},
            {"total_tokens", prompt_tokens_ + tokens}};
}

nlohmann::json Answer::json() {
    nlohmann::json answer = head(request_.is_chat ? "chat.completion" : "text_completion");
    nlohmann::json& choices = answer["choices"] = nlohmann::json::array();
    for (Text& text : parts_) {
        nlohmann::json choice{{"index", choices.size()},
                              {"logprobs", logprobs(text)},
                              {"finish_reason", text_or_null(text.finish)}};
        if (request_.is_chat) {
            choice["message"] = {{"role", "assistant"}, {"content", text.text}};
        } else {
            choice["text"] = text.text;
        }
        choices.push_back(std::move(choice));
    }
    answer["usage"] = usage();
    return answer;
}

/// A piece of a text as OpenAI's object.
nlohmann::json Answer::chunk(std::size_t index, std::string piece, const char* finish, bool is_first) const {
    nlohmann::json chunk = head(request_.is_chat ? "chat.completion.chunk" : "text_completion");
    nlohmann::json choice{{"index", index}, {"logprobs", nullptr}, {"finish_reason", text_or_null(finish)}};
    if (!request_.is_chat) {
        choice["text"] = std::move(piece);
    } else {
        choice["delta"] = nlohmann::json::object();
        if (is_first) choice["delta"]["role"] = "assistant";
        if (is_first || !piece.empty()) choice["delta"]["content"] = std::move(piece);
    }
    chunk["choices"] = nlohmann::json::array({std::move(choice)});
    if (request_.include_usage) chunk["usage"] = nullptr;
    return chunk;
}

/// What of a text is new. What stands around a piece within a text is made once: it is sent with every token.
std::string Answer::news_event(std::size_t index, Text& text) const {
    std::string piece = std::exchange(text.unsent, {});
    const bool is_first = !std::exchange(text.is_announced, true);
    if (request_.likeliest) {
        // OpenAI's client for JavaScript takes log probabilities twice that come with a message's beginning.
        const bool begins = is_first && request_.is_chat;
        nlohmann::json more = chunk(index, std::move(piece), text.finish, is_first && !begins);
        more["choices"][0]["logprobs"] = logprobs(text);
        return (begins ? event(chunk(index, {}, nullptr, true)) : std::string()) + event(more);
    }
    if (is_first || text.finish != nullptr)
        return event(chunk(index, std::move(piece), text.finish, is_first));
    if (text.before.empty()) {
        const std::string mark = id_ + "@";  // stands nowhere else in the event
        const std::string around = event(chunk(index, mark, nullptr, false));
        const std::string quoted = text_of(mark);
        const std::size_t at = around.find(quoted);
        text.before = around.substr(0, at);
        text.behind = around.substr(at + quoted.size());
    }
    return text.before + text_of(piece) + text.behind;
}

bool Answer::send_news(const std::function<bool(const std::string&)>& write) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        Text& text = parts_[i];
        if (text.is_sent || (text.unsent.empty() && text.finish == nullptr)) continue;
        text.is_sent = text.finish != nullptr;
        if (!write(news_event(i, text))) return false;
    }
    return true;
}

AnswerEnd Answer::stream(const Watch& watch, const std::function<bool(const std::string&)>& write) {
    const AnswerEnd end = follow(watch, [&] { return send_news(write); });
    if (end != AnswerEnd::whole) return end;
    if (request_.include_usage) {
        nlohmann::json last = head(request_.is_chat ? "chat.completion.chunk" : "text_completion");
        last["choices"] = nlohmann::json::array();
        last["usage"] = usage();
        if (!write(event(last))) return AnswerEnd::client_left;
    }
    return write("data: [DONE]\n\n") ? AnswerEnd::whole : AnswerEnd::client_left;
}

}  // namespace hone::decoder
