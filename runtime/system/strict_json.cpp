#include "runtime/system/strict_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "cache/json_structure.h"
#include "runtime/system/input_error.h"
#include "runtime/system/short_text.h"

namespace hone::runtime {
namespace {

/// What is not JSON at all is left to the parser, which says so.
class StrictStructure final : public cache::JsonStructure {
  public:
    StrictStructure(const std::string& name, std::size_t most_levels)
        : JsonStructure(most_levels), name_(name) {}

    bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
        return false;
    }

  private:
    [[noreturn]] void refuse_depth(std::size_t most_levels) override {
        throw InputError(fmt::format("{}: nested deeper than {} levels", name_, most_levels));
    }
    [[noreturn]] void refuse_key(const std::string& key) override {
        throw InputError(fmt::format("{}: key \"{}\" stands twice", name_, escape_controls(key)));
    }

    const std::string& name_;
};

}  // namespace

int line_at(std::string_view text, std::size_t offset) {
    return 1 + static_cast<int>(
                   std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

void check_json_structure(std::string_view text, const std::string& name, std::size_t most_levels) {
    // The parser takes it for the end, whatever follows.
    if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
        throw InputError(fmt::format("{}: byte {} is zero, which JSON has nowhere", name, zero + 1));
    StrictStructure structure(name, most_levels);
    nlohmann::json::sax_parse(text, &structure, nlohmann::json::input_format_t::json, true, true);
}

nlohmann::json parse_json_object(const std::string& text, const std::string& file_name) {
    constexpr std::size_t most_levels = 32;
    nlohmann::json root;
    try {
        check_json_structure(text, file_name, most_levels);
        root = nlohmann::json::parse(text, nullptr, true, true);
    } catch (const nlohmann::json::parse_error& error) {
        const int line = line_at(text, std::min(text.size(), error.byte == 0 ? 0 : error.byte - 1));
        throw InputError(fmt::format("{}:{}: not valid JSON: {}", file_name, line, json_reason(error)));
    } catch (const nlohmann::json::exception& error) {  // a number beyond double's range
        throw InputError(fmt::format("{}: not valid JSON: {}", file_name, json_reason(error)));
    }
    if (!root.is_object()) throw InputError(fmt::format("{}: the top level is not an object", file_name));
    return root;
}

std::string json_reason(const nlohmann::json::exception& error) {
    const std::string reason = error.what();
    const std::size_t end = reason.starts_with('[') ? reason.find("] ") : std::string::npos;
    return end == std::string::npos ? reason : reason.substr(end + 2);
}

bool is_text(const nlohmann::json& value, std::string_view text) noexcept {
    const auto* const own = value.get_ptr<const nlohmann::json::string_t*>();
    return own != nullptr && *own == text;
}

}  // namespace hone::runtime
