#include "decoder/tokenizer/vocabulary_json.h"

#include <fmt/format.h>

#include "decoder/error.h"
#include "runtime/system/short_text.h"

namespace hone::decoder {
namespace {

int token_id(const JsonPlace& json, const std::string& token, const nlohmann::json& value) {
    // Its place is made for a message alone: there are many tokens.
    const bool plain = value.is_number_unsigned() && value.get<std::uint64_t>() < max_vocabulary;
    return static_cast<int>(plain ? value.get<std::int64_t>()
                                  : json.at(token).integer(0, max_vocabulary - 1));
}

}  // namespace

Vocabulary read_vocabulary(const JsonPlace& json) {
    json.require_object();
    Vocabulary vocabulary;
    try {
        for (const auto& [token, value] : json.value().get_ref<const nlohmann::json::object_t&>())
            vocabulary.add(token, token_id(json, token, value));
    } catch (const DecoderError& error) {
        if (std::string_view(error.what()).starts_with(json.place())) throw;
        throw DecoderError(runtime::with_short_words(fmt::format("{}: {}", json.place(), error.what())));
    }
    return vocabulary;
}

}  // namespace hone::decoder
