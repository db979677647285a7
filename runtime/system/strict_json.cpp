#include "runtime/system/strict_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "runtime/system/input_error.h"

namespace hone::runtime {
namespace {

/// Refuses what a tree would hide (repeated keys) or suffer from (depth), before there is one. What is not
/// JSON at all is left to the parser, which says so. Not a callback of the parser: that looks through all
/// siblings at the end of each object.
class StructureCheck final : public nlohmann::json_sax<nlohmann::json> {
  public:
    StructureCheck(std::string name, std::size_t most_levels)
        : name_(std::move(name)), most_levels_(most_levels) {}

    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(std::size_t) override { return enter(); }
    bool end_object() override { return leave(); }
    bool start_array(std::size_t) override { return enter(); }
    bool end_array() override { return leave(); }
    bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
        return false;
    }

    bool key(string_t& name) override {
        if (!keys_.back().insert(name).second)
            throw InputError(fmt::format("{}: key \"{}\" stands twice", name_, name));
        return true;
    }

  private:
    bool enter() {
        if (keys_.size() > most_levels_)
            throw InputError(fmt::format("{}: nested deeper than {} levels", name_, most_levels_));
        keys_.emplace_back();
        return true;
    }
    bool leave() {
        keys_.pop_back();
        return true;
    }

    std::string name_;
    std::size_t most_levels_;
    std::vector<std::set<std::string>> keys_;  ///< keys of the objects that are open; arrays have none
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
    StructureCheck check(name, most_levels);
    nlohmann::json::sax_parse(text, &check, nlohmann::json::input_format_t::json, true, true);
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
