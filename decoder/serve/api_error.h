// How a request is refused: a status of HTTP and OpenAI's error object.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace hone::decoder {

class ApiError : public std::runtime_error {
  public:
    /// `param` names the field that is meant, `code` is a word for programs; both may be empty.
    ApiError(int status, const std::string& message, std::string param = {}, std::string code = {})
        : std::runtime_error(message),
          message_(message),
          status_(status),
          param_(std::move(param)),
          code_(std::move(code)) {}

    [[nodiscard]] int status() const { return status_; }
    /// {"error": {"message", "type", "param", "code"}}
    [[nodiscard]] nlohmann::json json() const;

  private:
    std::string message_;  ///< what() ends at a zero byte of the client's
    int status_;
    std::string param_;
    std::string code_;
};

/// JSON as text; bytes of a client that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string text_of(const nlohmann::json& json);

}  // namespace hone::decoder
