// The fields of a request's JSON object, by type and range. What is absent or null is not given. All of them
// throw ApiError with status 400 that names the field, its value and what is allowed.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace hone::decoder {

class Fields {
  public:
    /// A view: `object` outlives it. `place` comes before the names in messages: "messages[2].".
    Fields(const nlohmann::json& object, std::string place);

    [[nodiscard]] const nlohmann::json* find(const char* name) const;
    [[nodiscard]] std::optional<double> number(const char* name, double least, double most) const;
    [[nodiscard]] std::optional<std::int64_t> integer(const char* name, std::int64_t least,
                                                      std::int64_t most) const;
    [[nodiscard]] bool boolean(const char* name) const;
    [[nodiscard]] std::optional<std::string> text(const char* name) const;
    [[noreturn]] void refuse(const char* name, const std::string& allowed) const;

  private:
    const nlohmann::json& object_;
    std::string place_;
};

/// The object that a body holds. Throws ApiError for what is none, what is nested too deep, and a key that
/// stands twice in its object.
[[nodiscard]] nlohmann::json read_object(std::string_view body);
/// The beginning of a text, in characters, for messages: what comes from a client may be as long as a body.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t most_bytes = 60);
/// The same of a value.
[[nodiscard]] std::string shown(const nlohmann::json& value);

}  // namespace hone::decoder
