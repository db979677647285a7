// A value of a JSON file and where it stands, so that whoever reads it names both when it is not what it
// should be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace hone::decoder {

/// A view: the JSON outlives it.
class JsonPlace {
  public:
    JsonPlace(const nlohmann::json& value, std::string place) : value_(&value), place_(std::move(place)) {}

    [[nodiscard]] const nlohmann::json& value() const { return *value_; }
    [[nodiscard]] const std::string& place() const { return place_; }
    [[nodiscard]] bool is_null() const { return value_->is_null(); }

    /// A member, which may be absent or null: then there is none.
    [[nodiscard]] std::optional<JsonPlace> find(std::string_view key) const;
    /// A member that has to be there.
    [[nodiscard]] JsonPlace at(std::string_view key) const;
    [[nodiscard]] JsonPlace at(std::size_t index) const;
    /// Elements of an array; throws for anything else.
    [[nodiscard]] std::size_t array_size() const;

    // The value as a type. Throw DecoderError when it is another one.
    [[nodiscard]] const std::string& text() const;
    [[nodiscard]] bool boolean() const;
    [[nodiscard]] std::int64_t integer(std::int64_t least, std::int64_t most) const;
    void require_object() const;

    [[nodiscard]] bool boolean_or(std::string_view key, bool otherwise) const;

    /// Throws DecoderError: "tokenizer.json: model.dropout: 0.1: ", and the sentence.
    [[noreturn]] void refuse(std::string_view sentence) const;

  private:
    const nlohmann::json* value_;
    std::string place_;
};

}  // namespace hone::decoder
