#include "decoder/serve/api_error.h"

namespace hone::decoder {
namespace {

const char* type_of(int status) {
    if (status == 429) return "rate_limit_error";
    return status < 500 ? "invalid_request_error" : "server_error";
}

nlohmann::json text_or_null(const std::string& text) {
    return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

}  // namespace

nlohmann::json ApiError::json() const {
    return {{"error",
             {{"message", message_},
              {"type", type_of(status_)},
              {"param", text_or_null(param_)},
              {"code", text_or_null(code_)}}}};
}

std::string text_of(const nlohmann::json& json) {
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace hone::decoder
