#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "decoder/c_api/conversions.h"
#include "decoder/c_api/guard.h"
#include "decoder/c_api/hone_decoder.h"
#include "decoder/chat/chat_template.h"
#include "decoder/engine/growing_text.h"
#include "decoder/engine/hosted_model.h"
#include "decoder/require.h"
#include "runtime/c_api/handle.h"
#include "runtime/c_api/operator.h"
#include "runtime/c_api/struct_size.h"

namespace hone::decoder::c_api {
namespace {

/// What a decoder and its texts hold together.
struct Loaded {
    explicit Loaded(const ModelOptions& options)
        : tokenizer(Tokenizer::load(options.folder)),
          chat(ChatTemplate::find(options.folder, tokenizer, why_no_chat)),
          model(options) {}
    Tokenizer tokenizer;
    std::string why_no_chat{};
    std::optional<ChatTemplate> chat;
    HostedModel model;
};

constexpr std::int64_t max_timeout_ms = 86'400'000;
/// A caller of an earlier header asks for no tokens that end a text, and no log probabilities.
constexpr std::size_t request_without_end_ids = offsetof(hone_decoder_request, end_ids);

int end_of(TextPiece::End end) {
    switch (end) {
        case TextPiece::End::none: return HONE_DECODER_GOES_ON;
        case TextPiece::End::end_id: return HONE_DECODER_END_TOKEN;
        case TextPiece::End::length: return HONE_DECODER_LENGTH;
        case TextPiece::End::stop: return HONE_DECODER_STOP;
        case TextPiece::End::cancelled: break;
    }
    return HONE_DECODER_CANCELLED;
}

hone_decoder_state state_of(Loaded& loaded, std::uint32_t struct_size) {
    const EngineState now = loaded.model.engine().state();
    return {.struct_size = struct_size,
            .reserved = 0,
            .max_context = loaded.model.engine().max_context(),
            .vocabulary = loaded.model.description().model.vocab_size,
            .running = now.running,
            .waiting = now.waiting,
            .pages = now.pages,
            .pages_used = now.pages_used,
            .new_tokens = now.new_tokens,
            .shared_tokens = now.counters.shared_tokens};
}

}  // namespace
}  // namespace hone::decoder::c_api

using namespace hone::decoder;
using namespace hone::decoder::c_api;
using hone::c_api::check_handle;
using hone::c_api::destroy;
using hone::c_api::fail;
using hone::c_api::initialize;
using hone::c_api::read_struct;

struct hone_decoder {
    explicit hone_decoder(const ModelOptions& options) : loaded(std::make_shared<Loaded>(options)) {}
    std::shared_ptr<Loaded> loaded;
    std::uint32_t born = hone::c_api::forks_seen();
};

struct hone_decoder_text {
    hone_decoder_text(std::shared_ptr<Loaded> loaded_, TextRequest request, std::vector<std::string> stops)
        : loaded(std::move(loaded_)),
          text(loaded->model.engine(), loaded->tokenizer, std::move(request), std::move(stops)) {}
    std::shared_ptr<Loaded> loaded;
    GrowingText text;
    TextPiece piece;  ///< what the caller's points to, as the next
    LogProbabilities of_piece;
    LogProbabilities of_prompt;
    std::uint32_t born = hone::c_api::forks_seen();
};

const char* hone_decoder_version(void) {
    static const std::string text(hone::version());
    return text.c_str();
}

const char* hone_decoder_last_error(void) { return hone_last_error(); }

hone_status hone_decoder_options_init(hone_decoder_options* options, size_t struct_size) {
    constexpr hone_decoder_options defaults = HONE_DECODER_OPTIONS_INIT;
    return initialize(options, struct_size, defaults);
}

hone_status hone_decoder_state_init(hone_decoder_state* state, size_t struct_size) {
    constexpr hone_decoder_state defaults = HONE_DECODER_STATE_INIT;
    return initialize(state, struct_size, defaults);
}

hone_status hone_decoder_request_init(hone_decoder_request* request, size_t struct_size) {
    constexpr hone_decoder_request defaults = HONE_DECODER_REQUEST_INIT;
    return initialize(request, struct_size, defaults, request_without_end_ids);
}

hone_status hone_decoder_piece_init(hone_decoder_piece* piece, size_t struct_size) {
    constexpr hone_decoder_piece defaults = HONE_DECODER_PIECE_INIT;
    return initialize(piece, struct_size, defaults);
}

hone_status hone_decoder_log_probabilities_init(hone_decoder_log_probabilities* found, size_t struct_size) {
    constexpr hone_decoder_log_probabilities defaults = HONE_DECODER_LOG_PROBABILITIES_INIT;
    return initialize(found, struct_size, defaults);
}

hone_status hone_decoder_create(const char* folder, const hone_decoder_options* options,
                                hone_decoder** decoder) {
    if (decoder == nullptr) return fail(HONE_NULL_POINTER, "decoder is NULL");
    *decoder = nullptr;
    if (folder == nullptr) return fail(HONE_NULL_POINTER, "folder is NULL");
    hone_decoder_options known = HONE_DECODER_OPTIONS_INIT;
    if (options != nullptr && !read_struct(*options, known)) return fail(HONE_BAD_STRUCT);
    return guarded("hone_decoder_create", [&] {
        *decoder = new hone_decoder(options_from(folder, known));
        return HONE_OK;
    });
}

void hone_decoder_destroy(hone_decoder* decoder) { destroy(decoder); }

hone_status hone_decoder_read_state(const hone_decoder* decoder, hone_decoder_state* state) {
    if (const hone_status status = check_handle(decoder); status != HONE_OK) return status;
    if (state == nullptr) return fail(HONE_NULL_POINTER, "state is NULL");
    // Written, not read: what a later header has beyond these fields is left as it is.
    if (state->struct_size < sizeof(hone_decoder_state)) return fail(HONE_BAD_STRUCT);
    return guarded("hone_decoder_read_state", [&] {
        *state = state_of(*decoder->loaded, state->struct_size);
        return HONE_OK;
    });
}

hone_status hone_decoder_encode(const hone_decoder* decoder, const char* text, size_t text_bytes,
                                uint32_t flags, int32_t* ids, size_t capacity, size_t* count) {
    if (const hone_status status = check_handle(decoder); status != HONE_OK) return status;
    if (count == nullptr || (text == nullptr && text_bytes > 0) || (ids == nullptr && capacity > 0))
        return fail(HONE_NULL_POINTER, "text, ids or count is NULL");
    *count = 0;
    return guarded("hone_decoder_encode", [&] {
        check_flags(flags, HONE_DECODER_PLAIN_PROMPT | HONE_DECODER_BARE_PROMPT,
                    "HONE_DECODER_PLAIN_PROMPT, HONE_DECODER_BARE_PROMPT");
        const std::vector<int> all =
            decoder->loaded->tokenizer.encode({text, text_bytes}, encode_options_from(flags));
        *count = all.size();
        std::copy_n(all.begin(), std::min(capacity, all.size()), ids);
        return HONE_OK;
    });
}

hone_status hone_decoder_decode(const hone_decoder* decoder, const int32_t* ids, size_t count, char* text,
                                size_t capacity, size_t* length) {
    if (const hone_status status = check_handle(decoder); status != HONE_OK) return status;
    if (ids == nullptr && count > 0) return fail(HONE_NULL_POINTER, "ids is NULL");
    return guarded("hone_decoder_decode", [&] {
        require(count <= max_text_bytes, "count", count, fmt::format("0 to {}", max_text_bytes));
        return hone::c_api::hand_out(decoder->loaded->tokenizer.decode({ids, count}), text, capacity, length);
    });
}

hone_status hone_decoder_render_chat(const hone_decoder* decoder, const char* const* roles,
                                     const char* const* contents, size_t count, char* text, size_t capacity,
                                     size_t* length) {
    return hone_decoder_render_chat_with(decoder, roles, contents, count, 0, text, capacity, length);
}

hone_status hone_decoder_render_chat_with(const hone_decoder* decoder, const char* const* roles,
                                          const char* const* contents, size_t count, uint32_t flags,
                                          char* text, size_t capacity, size_t* length) {
    if (const hone_status status = check_handle(decoder); status != HONE_OK) return status;
    if (count > 0 && (roles == nullptr || contents == nullptr))
        return fail(HONE_NULL_POINTER, "roles or contents is NULL");
    return guarded("hone_decoder_render_chat", [&] {
        check_flags(flags, HONE_DECODER_NO_THINKING, "HONE_DECODER_NO_THINKING");
        const Loaded& loaded = *decoder->loaded;
        if (!loaded.chat) throw DecoderError(loaded.why_no_chat);
        const Conversation conversation = conversation_from(roles, contents, count);
        ChatVariables variables = ChatVariables::object();
        if ((flags & HONE_DECODER_NO_THINKING) != 0) variables["enable_thinking"] = false;
        return hone::c_api::hand_out(loaded.chat->render(conversation, variables), text, capacity, length);
    });
}

hone_status hone_decoder_submit(const hone_decoder* decoder, const hone_decoder_request* request,
                                hone_decoder_text** text) {
    if (text == nullptr) return fail(HONE_NULL_POINTER, "text is NULL");
    *text = nullptr;
    if (const hone_status status = check_handle(decoder); status != HONE_OK) return status;
    if (request == nullptr) return fail(HONE_NULL_POINTER, "request is NULL");
    hone_decoder_request known = HONE_DECODER_REQUEST_INIT;
    if (!read_struct(*request, known, request_without_end_ids) || known.reserved != 0)
        return fail(HONE_BAD_STRUCT);
    return guarded("hone_decoder_submit", [&] {
        Loaded& loaded = *decoder->loaded;
        TextRequest made = request_from(known, loaded.tokenizer, loaded.model.engine().max_context());
        const bool ends_with_turn =
            (known.flags & HONE_DECODER_CHAT) != 0 && (known.flags & HONE_DECODER_IGNORE_END) == 0;
        if (ends_with_turn && loaded.chat && loaded.chat->turn_end())
            made.end_ids.push_back(*loaded.chat->turn_end());
        *text = new hone_decoder_text(decoder->loaded, std::move(made), stops_from(known));
        return HONE_OK;
    });
}

hone_status hone_decoder_next(hone_decoder_text* text, int64_t timeout_ms, hone_decoder_piece* piece) {
    if (const hone_status status = check_handle(text); status != HONE_OK) return status;
    if (piece == nullptr) return fail(HONE_NULL_POINTER, "piece is NULL");
    if (piece->struct_size < sizeof(hone_decoder_piece)) return fail(HONE_BAD_STRUCT);
    return guarded("hone_decoder_next", [&] {
        if (timeout_ms < 0 || timeout_ms > max_timeout_ms)
            hone::c_api::refuse("timeout_ms", timeout_ms, "0 to 86400000");
        text->piece = text->text.next(std::chrono::milliseconds(timeout_ms));
        const TextPiece& now = text->piece;
        text->of_piece = LogProbabilities(now.chances);
        if (now.of_prompt) text->of_prompt = LogProbabilities(*now.of_prompt);
        *piece = {.struct_size = piece->struct_size,
                  .end = end_of(now.end),
                  .text = now.text.c_str(),
                  .text_bytes = now.text.size(),
                  .ids = now.ids.data(),
                  .id_count = now.ids.size()};
        return HONE_OK;
    });
}

hone_status hone_decoder_read_log_probabilities(const hone_decoder_text* text, int32_t of_prompt,
                                                hone_decoder_log_probabilities* found) {
    if (const hone_status status = check_handle(text); status != HONE_OK) return status;
    if (found == nullptr) return fail(HONE_NULL_POINTER, "found is NULL");
    if (found->struct_size < sizeof(hone_decoder_log_probabilities)) return fail(HONE_BAD_STRUCT);
    return guarded("hone_decoder_read_log_probabilities", [&] {
        if (of_prompt != 0 && of_prompt != 1) hone::c_api::refuse("of_prompt", of_prompt, "0, 1");
        const LogProbabilities& now = of_prompt == 1 ? text->of_prompt : text->of_piece;
        *found = {.struct_size = found->struct_size,
                  .likeliest = now.likeliest,
                  .count = now.of_tokens.size(),
                  .of_tokens = now.of_tokens.data(),
                  .likeliest_ids = now.likeliest_ids.data(),
                  .of_likeliest = now.of_likeliest.data()};
        return HONE_OK;
    });
}

hone_status hone_decoder_cancel(hone_decoder_text* text) {
    if (const hone_status status = check_handle(text); status != HONE_OK) return status;
    return guarded("hone_decoder_cancel", [&] {
        text->text.cancel();
        return HONE_OK;
    });
}

void hone_decoder_text_destroy(hone_decoder_text* text) { destroy(text); }
