#include "runtime/system/strict_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "runtime/system/input_error.h"

namespace hone::runtime {
namespace {

constexpr int max_depth = 32;

/// Refuses, while nlohmann parses, what its tree would hide (repeated keys) or suffer from (depth).
class StructureCheck {
  public:
    explicit StructureCheck(std::string file_name) : file_name_(std::move(file_name)) {}

    bool operator()(int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
        using Event = nlohmann::json::parse_event_t;
        if (depth > max_depth)
            throw InputError(fmt::format("{}: nested deeper than {} levels", file_name_, max_depth));
        if (event == Event::object_start) keys_.emplace_back();
        if (event == Event::object_end) keys_.pop_back();
        if (event == Event::key && !keys_.back().insert(parsed.get<std::string>()).second) {
            throw InputError(
                fmt::format("{}: key \"{}\" stands twice", file_name_, parsed.get<std::string>()));
        }
        return true;
    }

  private:
    std::string file_name_;
    std::vector<std::set<std::string>> keys_;
};

}  // namespace

int line_at(std::string_view text, std::size_t offset) {
    return 1 + static_cast<int>(
                   std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

nlohmann::json parse_json_object(const std::string& text, const std::string& file_name) {
    nlohmann::json root;
    try {
        root = nlohmann::json::parse(text, StructureCheck(file_name), true, true);
    } catch (const nlohmann::json::parse_error& error) {
        const int line = line_at(text, std::min(text.size(), error.byte == 0 ? 0 : error.byte - 1));
        throw InputError(fmt::format("{}:{}: not valid JSON: {}", file_name, line, error.what()));
    } catch (const nlohmann::json::exception& error) {  // a number beyond double's range
        throw InputError(fmt::format("{}: not valid JSON: {}", file_name, error.what()));
    }
    if (!root.is_object()) throw InputError(fmt::format("{}: the top level is not an object", file_name));
    return root;
}

}  // namespace hone::runtime
