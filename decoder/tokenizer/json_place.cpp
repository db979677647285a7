#include "decoder/tokenizer/json_place.h"

#include <fmt/format.h>

#include "decoder/error.h"
#include "runtime/system/short_text.h"

namespace hone::decoder {
namespace {

/// What a message shows of a value: all of it where that is short.
std::string shown(const nlohmann::json& value) {
    if (value.is_object()) return "an object";
    if (value.is_array()) return fmt::format("an array of {}", value.size());
    return value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::optional<JsonPlace> JsonPlace::find(std::string_view key) const {
    require_object();
    const auto found = value_->find(std::string(key));
    if (found == value_->end() || found->is_null()) return std::nullopt;
    return JsonPlace(*found, fmt::format("{}{}{}", place_, place_.ends_with(": ") ? "" : ".", key));
}

JsonPlace JsonPlace::at(std::string_view key) const {
    std::optional<JsonPlace> found = find(key);
    if (!found) refuse(fmt::format("\"{}\" is missing", key));
    return *std::move(found);
}

JsonPlace JsonPlace::at(std::size_t index) const {
    return {value_->at(index), fmt::format("{}[{}]", place_, index)};
}

std::size_t JsonPlace::array_size() const {
    if (!value_->is_array()) refuse("has to be an array");
    return value_->size();
}

const std::string& JsonPlace::text() const {
    if (!value_->is_string()) refuse("has to be a text");
    return value_->get_ref<const std::string&>();
}

bool JsonPlace::boolean() const {
    if (!value_->is_boolean()) refuse("has to be true or false");
    return value_->get<bool>();
}

std::int64_t JsonPlace::integer(std::int64_t least, std::int64_t most) const {
    // A number above the largest signed one counts as too large, not as negative.
    const bool fits =
        value_->is_number_integer() &&
        (!value_->is_number_unsigned() || value_->get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
    if (!fits || value_->get<std::int64_t>() < least || value_->get<std::int64_t>() > most)
        refuse(fmt::format("has to be an integer from {} to {}", least, most));
    return value_->get<std::int64_t>();
}

void JsonPlace::require_object() const {
    if (!value_->is_object()) refuse("has to be an object");
}

bool JsonPlace::boolean_or(std::string_view key, bool otherwise) const {
    const std::optional<JsonPlace> found = find(key);
    return found ? found->boolean() : otherwise;
}

void JsonPlace::refuse(std::string_view sentence) const {
    const char* const separator = place_.ends_with(": ") ? "" : ": ";
    throw DecoderError(
        runtime::with_short_words(fmt::format("{}{}{}: {}", place_, separator, shown(*value_), sentence)));
}

}  // namespace hone::decoder
