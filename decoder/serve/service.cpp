#include "decoder/serve/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "cache/process.h"
#include "decoder/error.h"
#include "decoder/serve/answer.h"
#include "decoder/serve/api_error.h"
#include "decoder/serve/fields.h"
#include "decoder/serve/large_turn.h"
#include "decoder/text/utf8.h"
#include "runtime/system/random_bits.h"

namespace hone::decoder {
namespace {

constexpr const char* completions_path = "/v1/completions";
constexpr const char* chat_path = "/v1/chat/completions";
constexpr const char* models_path = "/v1/models";
constexpr const char* is_stopping = "the server is stopping";
/// New tokens of a completion that says nothing, as OpenAI has it.
constexpr int usual_tokens = 16;

HttpReply reply_of(const ApiError& error) {
    HttpReply reply{.status = error.status(), .body = text_of(error.json())};
    if (error.status() == 429 || error.status() == 503) reply.headers.emplace_back("Retry-After", "1");
    return reply;
}

HttpReply reply_of(const nlohmann::json& json) { return {.body = text_of(json)}; }

HttpReply wrong_method(const char* allowed, std::string_view path) {
    HttpReply reply = reply_of(ApiError(405, fmt::format("{} takes {}", path, allowed)));
    reply.headers.emplace_back("Allow", allowed);
    return reply;
}

std::int64_t random_seed() { return static_cast<std::int64_t>(runtime::random_bits() >> 16); }

RequestEnd end_of(const ApiError& error) {
    return error.status() == 429   ? RequestEnd::too_many
           : error.status() >= 500 ? RequestEnd::failed
                                   : RequestEnd::refused;
}

RequestEnd end_of(AnswerEnd end) {
    switch (end) {
        case AnswerEnd::whole: return RequestEnd::completed;
        case AnswerEnd::client_left: return RequestEnd::left;
        case AnswerEnd::stopped: return RequestEnd::cancelled;
        case AnswerEnd::failed: return RequestEnd::failed;
    }
    return RequestEnd::failed;
}

ApiError engine_failed(const std::string& why) { return {503, why, {}, "engine_failed"}; }

/// Why an answer has no end.
ApiError error_of(AnswerEnd end, const std::string& failure) {
    if (end == AnswerEnd::client_left)  // who has closed but its own side reads it
        return {400,
                "the client closed the connection before its answer was whole; keep it open until then",
                {},
                "client_left"};
    return end == AnswerEnd::failed ? engine_failed(failure) : ApiError(503, is_stopping, {}, "stopping");
}

}  // namespace

Service::Service(TokenEngine& engine, ServedModel model, const ServiceOptions& options)
    : engine_(engine),
      model_(std::move(model)),
      options_(options),
      started_s_(cache::now_ms() / 1000),
      metrics_(std::make_shared<Metrics>()) {}

HttpReply Service::answer(const HttpRequest& request, HttpClient& client) {
    try {
        return route(request, client);
    } catch (const ApiError& error) {
        return reply_of(error);
    } catch (const std::exception& error) {
        return reply_of(ApiError(500, error.what()));
    }
}

HttpReply Service::refuse(int status) const {
    const char* const why = status == 414   ? "the path is too long"
                            : status == 431 ? "the headers are too long"
                            : status == 411 ? "the body's length is missing; needed is Content-Length, or "
                                              "Transfer-Encoding: chunked"
                            : status == 413 ? "the body is too long"
                            : status == 415 ? "the body comes packed or as a form; allowed: JSON as it is"
                                            : "this could not be read as a request";
    return reply_of(ApiError(status, why));
}

HttpReply Service::route(const HttpRequest& request, HttpClient& client) {
    const std::string_view path = request.path();
    const bool is_chat = path == chat_path;
    if (is_chat || path == completions_path)
        return request.method() == "POST" ? answer_text(request, client, is_chat)
                                          : wrong_method("POST", path);
    const bool is_models = path == models_path || path.starts_with("/v1/models/");
    if (!is_models && path != "/health" && path != "/metrics")
        throw ApiError(404, fmt::format("there is no {}; there are {}, {}, {}, /health and /metrics",
                                        lossy_utf8(path), completions_path, chat_path, models_path));
    if (request.method() != "GET" && request.method() != "HEAD") return wrong_method("GET", path);
    if (path == "/health") return health();
    if (path == "/metrics") return metrics();
    return models(path.substr(std::min(path.size(), std::string_view(models_path).size() + 1)));
}

HttpReply Service::health() const {
    std::string reason = engine_.state().failure;
    if (reason.empty() && is_draining_) reason = is_stopping;
    if (reason.empty()) return reply_of({{"status", "ok"}});
    return {.status = 503, .body = text_of({{"status", "failed"}, {"reason", reason}})};
}

HttpReply Service::metrics() const {
    return {.type = "text/plain; version=0.0.4; charset=utf-8",
            .body = metrics_->text(engine_.state(), active_)};
}

HttpReply Service::models(std::string_view name) const {
    const nlohmann::json model{{"id", model_.name},
                               {"object", "model"},
                               {"created", started_s_},
                               {"owned_by", "hone"},
                               {"max_model_len", engine_.max_context()}};
    if (name.empty()) return reply_of({{"object", "list"}, {"data", nlohmann::json::array({model})}});
    if (name == model_.name) return reply_of(model);
    throw ApiError(404, fmt::format("there is no model {}; there is {}", lossy_utf8(name), model_.name),
                   "model", "model_not_found");
}

void Service::require_running() const {
    if (is_draining_) throw ApiError(503, is_stopping, {}, "stopping");
    if (const std::string failure = engine_.state().failure; !failure.empty()) throw engine_failed(failure);
}

Service::Place::~Place() {
    --service_.active_;
    service_.metrics_->end_request(end_);
}

Service::SharedPlace Service::take_place() {
    const int number = ++active_;
    auto place = std::make_shared<Place>(*this);
    place->set_end(RequestEnd::failed);
    require_running();
    place->set_end(RequestEnd::too_many);
    if (number > options_.max_requests)
        throw ApiError(
            429,
            fmt::format("{} requests are being answered, as many as this server takes at a time; try again",
                        options_.max_requests),
            {}, "too_many_requests");
    place->set_end(RequestEnd::left);
    return place;
}

HttpReply Service::answer_text(const HttpRequest& request, HttpClient& client, bool is_chat) {
    const Clock::time_point arrived = Clock::now();
    const SharedPlace place = take_place();
    try {
        bool streams = false;
        SharedAnswer answer;
        {
            LargeTurn turn(large_turns_);
            ApiRequest asked = read(request, is_chat, turn);
            streams = asked.stream;
            answer = ask(std::move(asked), arrived, turn);
        }
        return streams ? stream(answer, place) : whole(*answer, *place, client);
    } catch (const ApiError& error) {
        place->set_end(end_of(error));
        throw;
    } catch (const std::exception&) {
        place->set_end(RequestEnd::failed);
        throw;
    }
}

Service::SharedAnswer Service::ask(ApiRequest request, Clock::time_point arrived, LargeTurn& turn) {
    std::vector<std::vector<int>> prompts = prompts_of(request, turn);
    require_not_cancelled();
    auto texts = std::make_unique<Texts>(engine_, metrics_, arrived);
    std::size_t prompt_tokens = 0;
    int number = 0;
    try {
        for (const std::vector<int>& prompt : prompts) {
            prompt_tokens += prompt.size();
            for (int i = 0; i < request.choices; ++i) texts->add(text_request(request, prompt, number++));
        }
    } catch (const EngineFailure& failure) {
        throw engine_failed(failure.what());
    } catch (const DecoderError& error) {
        throw ApiError(400, error.what(), request.is_chat ? "messages" : "prompt");
    }
    metrics_->add_prompt(prompt_tokens);
    return std::make_shared<Answer>(model_.tokenizer, std::move(request), model_.name, std::move(prompts),
                                    std::move(texts));
}

/// Who is still being read when the server's time is over is not waited for.
void Service::require_not_cancelled() const {
    if (is_cancelled_) throw ApiError(503, is_stopping, {}, "stopping");
}

void Service::take(LargeTurn& turn, std::size_t bytes) const {
    turn.take_for(bytes, [this] { require_not_cancelled(); });
    require_not_cancelled();
}

ApiRequest Service::read(const HttpRequest& request, bool is_chat, LargeTurn& turn) {
    if (is_chat && !model_.chat)
        throw ApiError(
            400, fmt::format("{} takes no chats: {}; use {}", model_.name, model_.no_chat, completions_path),
            {}, "no_chat_template");
    std::string_view body;
    const HttpRequest::Body came = request.read(body);
    if (came == HttpRequest::Body::too_long)
        throw ApiError(413, fmt::format("the body is longer than {} bytes", options_.max_body_bytes));
    if (came == HttpRequest::Body::cut) throw ApiError(400, "the body did not come as a whole");
    take(turn, body.size());
    ApiRequest read = is_chat ? read_chat(body, random_seed()) : read_completion(body, random_seed());
    if (!read.model.empty() && read.model != model_.name)
        throw ApiError(404,
                       fmt::format("there is no model {}; there is {}", shortened(read.model), model_.name),
                       "model", "model_not_found");
    return read;
}

std::vector<int> Service::ids_of(std::string_view text, bool special_tokens, LargeTurn& turn) const {
    take(turn, text.size());
    return model_.tokenizer.encode(text, {.add_special_tokens = special_tokens});
}

std::vector<int> Service::prompt_of(const Prompt& prompt, bool special_tokens, LargeTurn& turn) const {
    if (const auto* ids = std::get_if<std::vector<int>>(&prompt)) return *ids;
    return ids_of(std::get<std::string>(prompt), special_tokens, turn);
}

std::vector<std::vector<int>> Service::prompts_of(const ApiRequest& request, LargeTurn& turn) const {
    std::vector<std::vector<int>> prompts;
    try {
        if (request.is_chat) {
            const ChatVariables variables = read_variables(request.template_values, *model_.chat);
            return {ids_of(model_.chat->render(request.conversation, variables),
                           request.special_tokens.value_or(false), turn)};
        }
        for (const Prompt& prompt : request.prompts)
            prompts.push_back(prompt_of(prompt, request.special_tokens.value_or(true), turn));
    } catch (const DecoderError& error) {
        throw ApiError(400, error.what(), request.is_chat ? "messages" : "prompt");
    }
    if (std::ranges::any_of(prompts, [](const std::vector<int>& ids) { return ids.empty(); }))
        throw ApiError(400, "the prompt is empty", "prompt");
    return prompts;
}

/// Throws ApiError for what the context does not take.
int Service::new_tokens(const ApiRequest& request, std::size_t prompt) const {
    const auto context = static_cast<std::size_t>(engine_.max_context());
    const char* const param = request.is_chat ? "messages" : "prompt";
    if (prompt >= context)
        throw ApiError(
            400,
            fmt::format("the prompt has {} tokens; the context of {} tokens takes {}, and new ones", prompt,
                        context, context - 1),
            param, "context_length_exceeded");
    const auto room = static_cast<int>(context - prompt);
    const int usual = request.is_chat ? room : std::min(usual_tokens, room);
    const int wanted = std::max(1, request.max_tokens.value_or(usual));  // else a text has no end to wait for
    if (wanted <= room) return wanted;
    throw ApiError(
        400,
        fmt::format(
            "the prompt has {} tokens and max_tokens is {}; the context takes {} together, so up to {}",
            prompt, wanted, context, room),
        "max_tokens", "context_length_exceeded");
}

TextRequest Service::text_request(const ApiRequest& request, const std::vector<int>& prompt,
                                  int number) const {
    TextRequest text{
        .prompt = prompt, .max_new_tokens = new_tokens(request, prompt.size()), .wishes = request.wishes};
    text.wishes.seed += number;
    text.likeliest = request.likeliest;
    text.scores_prompt = request.echo && request.likeliest.has_value();
    if (!request.ignore_end) text.end_ids = model_.tokenizer.eos_ids();
    if (!request.ignore_end && request.is_chat && model_.chat->turn_end())
        text.end_ids.push_back(*model_.chat->turn_end());
    text.end_ids.insert(text.end_ids.end(), request.end_ids.begin(), request.end_ids.end());
    return text;
}

HttpReply Service::whole(Answer& answer, Place& place, HttpClient& client) {
    const AnswerEnd end = answer.wait({.connected = [&] { return client.connected(); },
                                       .stopped = [this] { return is_cancelled_.load(); }});
    place.set_end(end_of(end));
    return end == AnswerEnd::whole ? reply_of(answer.json()) : reply_of(error_of(end, answer.failure()));
}

HttpReply Service::stream(const SharedAnswer& answer, const SharedPlace& place) {
    const auto hand_out = [this, answer, place](HttpClient& client) {
        const auto write = [&](const std::string& piece) { return client.write(piece); };
        const AnswerEnd end = answer->stream({.connected = [&] { return client.connected(); },
                                              .stopped = [this] { return is_cancelled_.load(); }},
                                             write);
        place->set_end(end_of(end));
        if (end == AnswerEnd::failed || end == AnswerEnd::stopped)
            return write(event(error_of(end, answer->failure()).json()));
        return end == AnswerEnd::whole;
    };
    return {.type = "text/event-stream; charset=utf-8", .stream = hand_out};
}

}  // namespace hone::decoder
