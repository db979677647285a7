#include "decoder/serve/fields.h"

#include <fmt/format.h>

#include <cmath>

#include "decoder/serve/api_error.h"
#include "decoder/text/utf8.h"
#include "runtime/system/input_error.h"
#include "runtime/system/strict_json.h"

namespace hone::decoder {
namespace {

using nlohmann::json;

constexpr std::size_t max_depth = 16;

}  // namespace

json read_object(std::string_view body) {
    constexpr std::size_t most_bytes = 240;  // messages repeat what could not be read
    try {
        runtime::check_json_structure(body, "the body", max_depth);
        json object = json::parse(body);
        if (object.is_object()) return object;
        throw ApiError(400, fmt::format("the body is {}; allowed: a JSON object", shown(object)));
    } catch (const json::exception& error) {
        throw ApiError(
            400, fmt::format("the body is no JSON: {}", shortened(runtime::json_reason(error), most_bytes)));
    } catch (const runtime::InputError& error) {
        throw ApiError(400, shortened(error.what(), most_bytes));
    }
}

std::string shortened(std::string_view text, std::size_t most_bytes) {
    return text.size() <= most_bytes ? lossy_utf8(text) : lossy_utf8(text.substr(0, most_bytes)) + "...";
}

std::string shown(const json& value) {
    if (value.is_array()) return fmt::format("an array of {}", value.size());
    if (value.is_object()) return "an object";
    return shortened(text_of(value));
}

Fields::Fields(const json& object, std::string place) : object_(object), place_(std::move(place)) {}

const json* Fields::find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void Fields::refuse(const char* name, const std::string& allowed) const {
    const json* value = find(name);
    throw ApiError(400,
                   value == nullptr
                       ? fmt::format("{}{} is missing; it has to be {}", place_, name, allowed)
                       : fmt::format("{}{} is {}; allowed: {}", place_, name, shown(*value), allowed),
                   place_ + name);
}

std::optional<double> Fields::number(const char* name, double least, double most) const {
    const json* value = find(name);
    if (value == nullptr) return std::nullopt;
    const double number = value->is_number() ? value->get<double>() : std::nan("");
    if (!(number >= least && number <= most))
        refuse(name, fmt::format("a number from {} to {}", least, most));
    return number;
}

std::optional<std::int64_t> Fields::integer(const char* name, std::int64_t least, std::int64_t most) const {
    const json* value = find(name);
    if (value == nullptr) return std::nullopt;
    const bool fits = value->is_number_integer() && (!value->is_number_unsigned() ||
                                                     value->get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
    const std::int64_t number = fits ? value->get<std::int64_t>() : 0;
    if (!fits || number < least || number > most)
        refuse(name, fmt::format("an integer from {} to {}", least, most));
    return number;
}

bool Fields::boolean(const char* name) const {
    const json* value = find(name);
    if (value == nullptr) return false;
    if (!value->is_boolean()) refuse(name, "true or false");
    return value->get<bool>();
}

std::optional<std::string> Fields::text(const char* name) const {
    const json* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) refuse(name, "a text");
    return value->get<std::string>();
}

}  // namespace hone::decoder
