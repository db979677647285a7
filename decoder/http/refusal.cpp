#include "decoder/http/refusal.h"

#include <strings.h>

#include <charconv>
#include <string>
#include <system_error>

namespace hone::decoder {
namespace {

constexpr std::size_t max_path = 1024;

/// Whether a number as Content-Length has it is larger; also what is no number.
bool is_above(const std::string& number, std::size_t most) {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    return error != std::errc() || value > most;
}

/// Also for who reads the lines that cpp-httplib passes over.
bool ends_clearly(const httplib::Request& request, const RequestForm& form) {
    if (!form.is_strict() || form.lengths() > 1) return false;
    const std::size_t lengths = request.get_header_value_count("Content-Length");
    const std::size_t encodings = request.get_header_value_count("Transfer-Encoding");
    if (lengths + encodings != static_cast<std::size_t>(form.lengths())) return false;
    if (form.lengths() == 0) return true;
    if (encodings == 1)
        return request.version != "HTTP/1.0" &&
               strcasecmp(request.get_header_value("Transfer-Encoding").c_str(), "chunked") == 0;
    const std::string length = request.get_header_value("Content-Length");
    return !length.empty() && length.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

bool has_body(const httplib::Request& request) {
    return request.has_header("Content-Length") || request.has_header("Transfer-Encoding");
}

int refusal(const httplib::Request& request, const RequestForm& form, std::size_t max_body_bytes) {
    if (request.path.size() > max_path) return 414;
    if (!ends_clearly(request, form)) return 400;
    if (request.method == "POST" && !has_body(request)) return 411;
    if (request.has_header("Content-Length") &&
        is_above(request.get_header_value("Content-Length"), body_patience * max_body_bytes))
        return 413;  // nobody waits for so much
    const std::string encoding = request.get_header_value("Content-Encoding");
    if (!encoding.empty() && encoding != "identity") return 415;
    return request.is_multipart_form_data() ? 415 : 0;
}

}  // namespace hone::decoder
