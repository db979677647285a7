#include "decoder/c_api/conversions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "checkpoints/pack/request.h"
#include "runtime/system/short_text.h"

namespace hone::decoder::c_api {
namespace {

constexpr std::size_t max_stops = 64;
constexpr std::size_t max_end_ids = 64;
constexpr std::size_t max_messages = 65'536;
constexpr std::size_t max_stop_bytes = 4096;

template <class Value>
void require(bool holds, std::string_view field, const Value& value, std::string_view allowed) {
    if (!holds)
        throw Error(runtime::with_short_words(fmt::format("{} is {}; allowed: {}", field, value, allowed)),
                    "", "", ErrorKind::bad_argument);
}

void require_flag(std::string_view field, std::int32_t value) {
    require(value == 0 || value == 1, field, value, "0, 1");
}

std::optional<checkpoints::QuantizeRequest> quantize_from(const hone_decoder_options& given) {
    require_flag("zeros", given.zeros);
    require_flag("lm_head", given.lm_head);
    if (given.format == nullptr) {
        require(given.zeros == 0, "zeros", given.zeros, "0 without a format");
        require(given.lm_head == 0, "lm_head", given.lm_head, "0 without a format");
        require(given.group == -1, "group", given.group, "-1 without a format");
        return std::nullopt;
    }
    const auto found = std::ranges::find(quant_format_names, std::string_view(given.format));
    require(found != quant_format_names.end(), "format", given.format,
            fmt::format("{}", fmt::join(quant_format_names, ", ")));
    const auto format = static_cast<QuantFormat>(found - quant_format_names.begin());
    require(given.group >= -1, "group", given.group, "from 0, or -1 for what is usual");
    checkpoints::QuantizeRequest request{
        .format = format, .zeros = given.zeros == 1, .lm_head = given.lm_head == 1};
    if (given.group >= 0) request.group = given.group;
    return request;
}

KvDtype kv_dtype_from(const hone_decoder_options& given) {
    if (given.kv_cache == nullptr) return KvDtype::same;
    const auto found = std::ranges::find(kv_cache_names, std::string_view(given.kv_cache));
    require(found != kv_cache_names.end(), "kv_cache", given.kv_cache,
            fmt::format("{}", fmt::join(kv_cache_names, ", ")));
    return static_cast<KvDtype>(found - kv_cache_names.begin());
}

Wishes wishes_from(const hone_decoder_request& given) {
    // NaN holds nowhere.
    require(given.temperature >= 0 && given.temperature <= 100, "temperature", given.temperature, "0 to 100");
    require(given.top_k >= 0, "top_k", given.top_k, "from 0, which means all");
    require(given.top_p > 0 && given.top_p <= 1, "top_p", given.top_p, "above 0, to 1");
    require(given.min_p >= 0 && given.min_p <= 1, "min_p", given.min_p, "0 to 1");
    return {.temperature = given.temperature,
            .top_k = given.top_k,
            .top_p = given.top_p,
            .min_p = given.min_p,
            .seed = given.seed};
}

std::vector<int> prompt_from(const hone_decoder_request& given, const Tokenizer& tokenizer, int max_context) {
    if ((given.prompt == nullptr) == (given.prompt_ids == nullptr))
        throw Error("prompt and prompt_ids are both NULL, or both not; allowed: one of them", "", "",
                    ErrorKind::bad_argument);
    if ((given.flags & HONE_DECODER_CHAT) != 0) {
        require(given.prompt_ids == nullptr, "prompt_ids", "given", "a prompt with HONE_DECODER_CHAT");
        require((given.flags & HONE_DECODER_PLAIN_PROMPT) == 0, "flags", given.flags,
                "HONE_DECODER_CHAT without HONE_DECODER_PLAIN_PROMPT");
    }
    if (given.prompt_ids != nullptr) {
        require(given.prompt_id_count <= static_cast<std::size_t>(max_context), "prompt_id_count",
                given.prompt_id_count, fmt::format("1 to {}, the context", max_context));
        return {given.prompt_ids, given.prompt_ids + given.prompt_id_count};
    }
    return tokenizer.encode({given.prompt, given.prompt_bytes}, encode_options_from(given.flags));
}

int max_tokens_from(std::int64_t given, std::size_t prompt_tokens, int max_context) {
    require(given >= 0 && given <= INT_MAX, "max_tokens", given,
            fmt::format("0 to {}; 0: until the context is full", INT_MAX));
    if (given > 0) return static_cast<int>(given);
    return std::max(1, max_context - static_cast<int>(std::min<std::size_t>(prompt_tokens, INT_MAX)));
}

std::vector<int> end_ids_from(const hone_decoder_request& given) {
    require(given.end_id_count <= max_end_ids, "end_id_count", given.end_id_count,
            fmt::format("0 to {}", max_end_ids));
    require(given.end_id_count == 0 || given.end_ids != nullptr, "end_ids", "NULL",
            "as many ids as end_id_count");
    return {given.end_ids, given.end_ids + given.end_id_count};
}

std::optional<int> likeliest_from(const hone_decoder_request& given) {
    const bool are_asked_for = (given.flags & HONE_DECODER_LOG_PROBABILITIES) != 0;
    const int most = are_asked_for ? most_likeliest : 0;
    require(given.likeliest >= 0 && given.likeliest <= most, "likeliest", given.likeliest,
            are_asked_for ? fmt::format("0 to {}", most) : "0 without HONE_DECODER_LOG_PROBABILITIES");
    require(are_asked_for || (given.flags & HONE_DECODER_SCORE_PROMPT) == 0, "flags", given.flags,
            "HONE_DECODER_SCORE_PROMPT with HONE_DECODER_LOG_PROBABILITIES");
    return are_asked_for ? std::optional(given.likeliest) : std::nullopt;
}

}  // namespace

void check_flags(std::uint32_t flags, std::uint32_t known, const char* allowed) {
    require((flags & ~known) == 0, "flags", flags, allowed);
}

ModelOptions options_from(const char* folder, const hone_decoder_options& given) {
    check_flags(given.flags, HONE_NO_CACHE, "HONE_NO_CACHE");
    require(given.device >= 0, "device", given.device, "from 0");
    require(given.max_context >= 0, "max_context", given.max_context, "from 0, as much as is usual");
    require(given.memory_share > 0 && given.memory_share <= 1, "memory_share", given.memory_share,
            "above 0, to 1");
    ModelOptions options{.folder = folder,
                         .quantize = quantize_from(given),
                         .kv_dtype = kv_dtype_from(given),
                         .device = given.device,
                         .max_sequences = given.max_sequences,
                         .max_context = given.max_context,
                         .max_step_tokens = given.max_step_tokens,
                         .memory_share = given.memory_share};
    options.runtime.use_cache = (given.flags & HONE_NO_CACHE) == 0;
    if (given.cache_file != nullptr) options.runtime.cache_file = given.cache_file;
    if (given.on_warning != nullptr) {
        options.runtime.on_warning = [call = given.on_warning, user = given.user](std::string_view text) {
            call(user, std::string(text).c_str());
        };
    }
    return options;
}

EncodeOptions encode_options_from(std::uint32_t flags) {
    return {.add_special_tokens = (flags & (HONE_DECODER_BARE_PROMPT | HONE_DECODER_CHAT)) == 0,
            .parse_special_tokens = (flags & HONE_DECODER_PLAIN_PROMPT) == 0};
}

TextRequest request_from(const hone_decoder_request& given, const Tokenizer& tokenizer, int max_context) {
    check_flags(given.flags,
                HONE_DECODER_IGNORE_END | HONE_DECODER_PLAIN_PROMPT | HONE_DECODER_BARE_PROMPT |
                    HONE_DECODER_CHAT | HONE_DECODER_LOG_PROBABILITIES | HONE_DECODER_SCORE_PROMPT,
                "HONE_DECODER_IGNORE_END, HONE_DECODER_PLAIN_PROMPT, HONE_DECODER_BARE_PROMPT, "
                "HONE_DECODER_CHAT, HONE_DECODER_LOG_PROBABILITIES, HONE_DECODER_SCORE_PROMPT");
    TextRequest request{.prompt = prompt_from(given, tokenizer, max_context), .wishes = wishes_from(given)};
    request.max_new_tokens = max_tokens_from(given.max_tokens, request.prompt.size(), max_context);
    if ((given.flags & HONE_DECODER_IGNORE_END) == 0) request.end_ids = tokenizer.eos_ids();
    const std::vector<int> end_ids = end_ids_from(given);
    request.end_ids.insert(request.end_ids.end(), end_ids.begin(), end_ids.end());
    request.likeliest = likeliest_from(given);
    request.scores_prompt = (given.flags & HONE_DECODER_SCORE_PROMPT) != 0;
    return request;
}

LogProbabilities::LogProbabilities(const std::vector<TokenChances>& chances) {
    for (const TokenChances& one : chances)
        likeliest = std::max(likeliest, static_cast<std::int32_t>(one.likeliest.size()));
    for (const TokenChances& one : chances) {
        of_tokens.push_back(one.log_probability);
        for (const TokenChance& likely : one.likeliest) {
            likeliest_ids.push_back(likely.token);
            of_likeliest.push_back(likely.log_probability);
        }
        const std::size_t whole = of_tokens.size() * static_cast<std::size_t>(likeliest);
        likeliest_ids.resize(whole, -1);
        of_likeliest.resize(whole, std::numeric_limits<double>::quiet_NaN());
    }
}

Conversation conversation_from(const char* const* roles, const char* const* contents, std::size_t count) {
    require(count >= 1 && count <= max_messages, "count", count, fmt::format("1 to {}", max_messages));
    Conversation conversation;
    for (std::size_t i = 0; i < count; ++i) {
        require(roles[i] != nullptr && contents[i] != nullptr, fmt::format("message {}", i), "NULL",
                "a role and a content");
        const std::optional<Role> role = role_of(roles[i]);
        require(role.has_value(), fmt::format("roles[{}]", i), roles[i], "system, user, assistant");
        conversation.push_back({.role = *role, .content = contents[i]});
    }
    return conversation;
}

std::vector<std::string> stops_from(const hone_decoder_request& given) {
    require(given.stop_count <= max_stops, "stop_count", given.stop_count, fmt::format("0 to {}", max_stops));
    require(given.stop_count == 0 || given.stops != nullptr, "stops", "NULL", "as many texts as stop_count");
    std::vector<std::string> stops;
    for (std::size_t i = 0; i < given.stop_count; ++i) {
        const char* stop = given.stops[i];
        const std::size_t bytes = stop == nullptr ? 0 : ::strnlen(stop, max_stop_bytes + 1);
        require(bytes >= 1 && bytes <= max_stop_bytes, fmt::format("the length of stops[{}]", i), bytes,
                fmt::format("1 to {} bytes", max_stop_bytes));
        stops.emplace_back(stop, bytes);
    }
    return stops;
}

}  // namespace hone::decoder::c_api
