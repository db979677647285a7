#include "cache/bundle.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cache/bundle_row.h"
#include "cache/error.h"
#include "cache/json_structure.h"
#include "cache/process.h"
#include "cache/sha256.h"
#include "cache/validator.h"

namespace hone::cache {
namespace {

using nlohmann::json;

constexpr std::size_t depth_limit = 16;
constexpr std::int64_t row_limit = 100'000;

/// What JSON allows and a bundle does not. Stops at the first of it.
class BundleStructure final : public JsonStructure {
  public:
    explicit BundleStructure(std::string_view file_name)
        : JsonStructure(depth_limit), file_name_(file_name) {}

    bool parse_error(std::size_t byte, const std::string&, const json::exception&) override {
        refuse(fmt::format("is truncated or damaged: no JSON from byte {} on", byte));
    }

  private:
    void object_begins(std::size_t levels) override {
        constexpr std::size_t row_levels = 3;
        if (levels == row_levels && ++rows_ > row_limit)
            refuse(fmt::format("has more than {} rows", row_limit));
    }
    [[noreturn]] void refuse_depth(std::size_t most_levels) override {
        refuse(fmt::format("is nested deeper than {} levels", most_levels));
    }
    [[noreturn]] void refuse_key(const std::string& name) override {
        refuse(fmt::format("row {}, field {}: is there twice", rows_, json(name).dump(-1, ' ', true)));
    }
    [[noreturn]] void refuse(const std::string& why) const {
        throw BundleError(fmt::format("{}: {}", file_name_, why));
    }

    std::string_view file_name_;
    std::int64_t rows_ = 0;
};

json parse(std::string_view text, std::string_view file_name) {
    if (text.size() > max_bundle_bytes) {
        throw BundleError(
            fmt::format("{}: has {} bytes, allowed: {}", file_name, text.size(), max_bundle_bytes));
    }
    // The parser takes a zero byte for the end and would not look at what follows.
    if (text.find('\0') != std::string_view::npos) {
        throw BundleError(fmt::format("{}: is damaged: holds a zero byte", file_name));
    }
    if (!text.starts_with('{')) throw BundleError(fmt::format("{}: does not begin with '{{'", file_name));
    BundleStructure structure(file_name);
    json::sax_parse(text, &structure);
    return json::parse(text);
}

const std::string& text_member(const json& document, const char* name, std::string_view file_name) {
    const auto found = document.find(name);
    if (found == document.end() || !found->is_string()) {
        throw BundleError(fmt::format("{}: has no text '{}'", file_name, name));
    }
    return found->get_ref<const std::string&>();
}

bool may_be_in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

/// Brackets would end `winners` early (winners_text()); no name and no problem has one.
BundlePurpose purpose_from(const json& member, std::string_view file_name) {
    const auto refuse = [&](const std::string& what) {
        throw BundleError(fmt::format(
            R"({}: 'for' {}; allowed: {{"name": "letters, digits, . _ -", "shares": {{PROBLEM: 0 to 1}}}})",
            file_name, what));
    };
    if (!member.is_object() || member.size() != 2 || !member.contains("name") || !member.contains("shares"))
        refuse("has other members");
    if (!member["name"].is_string() || !member["shares"].is_object()) refuse("has values of another kind");
    BundlePurpose purpose{.name = member["name"].get<std::string>(), .shares = {}};
    if (purpose.name.size() > limits::text_bytes)
        refuse(fmt::format("has a longer name than {} characters", limits::text_bytes));
    if (purpose.name.empty() || !std::ranges::all_of(purpose.name, may_be_in_name)) refuse("has a bad name");
    for (const auto& [problem, share] : member["shares"].items()) {
        if (!share.is_number() || !(share.get<double>() >= 0 && share.get<double>() <= 1))
            refuse("has a bad share");
        if (problem.find_first_of("[]") != std::string::npos) refuse("has a bad problem");
        purpose.shares.emplace(problem, share.get<double>());
    }
    return purpose;
}

std::string purpose_member(const BundlePurpose& purpose) {
    const json member{{"name", purpose.name}, {"shares", purpose.shares}};
    return fmt::format(",\n\"for\": {}", member.dump(-1, ' ', true, json::error_handler_t::replace));
}

void check_schema(const json& document, std::string_view file_name) {
    const std::string& schema = text_member(document, "schema", file_name);
    if (schema != bundle_schema && schema != bundle_schema_without_clocks &&
        schema != bundle_schema_without_contenders) {
        throw BundleError(
            fmt::format("{}: has the schema {}, this build reads \"{}\", \"{}\" and \"{}\"", file_name,
                        json(schema.substr(0, 64)).dump(-1, ' ', true, json::error_handler_t::replace),
                        bundle_schema, bundle_schema_without_clocks, bundle_schema_without_contenders));
    }
    for (const auto& [member, value] : document.items()) {
        if (member == "for" && schema != bundle_schema_without_contenders) continue;
        if (member != "schema" && member != "sha256" && member != "winners") {
            throw BundleError(
                fmt::format("{}: has the unknown member {}", file_name, json(member).dump(-1, ' ', true)));
        }
    }
}

/// The array's bytes as they stand in the file: `winners` is the only array that the format has at its top,
/// and others lie inside of it.
std::string_view winners_text(std::string_view text) {
    const std::size_t begin = text.find('[');
    const std::size_t end = text.rfind(']');
    return begin == std::string_view::npos || end < begin ? std::string_view()
                                                          : text.substr(begin, end - begin + 1);
}

void check_sum(const json& document, std::string_view text, std::string_view file_name) {
    if (text_member(document, "sha256", file_name) == sha256_hex(winners_text(text))) return;
    throw BundleError(fmt::format(
        "{}: was changed after it was written (its SHA-256 does not match); export it again", file_name));
}

/// Winners by key, and behind each its contenders, the fastest first.
auto order_in_file(const Trial& trial) {
    return std::tuple(std::tie(trial.key), !trial.winner, trial.timing.median_us,
                      std::tie(trial.candidate, trial.template_hash));
}

/// What could not be read back is not written.
std::string checked_row(std::span<const Trial> trials, const std::string& place) {
    const Trial& winner = trials.front();
    if (!winner.winner) throw BundleError(place + ": is no winner, and its key has none");
    const std::span<const Trial> contenders = trials.subspan(1);
    if (!contenders.empty() && contenders.front().winner)
        throw BundleError(place + ": its key has another winner too");
    const std::string row = write_row(winner, contenders);
    const std::vector<Trial> reread = read_row(json::parse(row), place, std::nullopt);
    if (reread.front() != winner) throw BundleError(place + ": is not a winner with the status ok");
    return row;
}

/// The row without the comma that parts it from the next one.
std::string object_of_line(std::string_view line) { return std::string(line.substr(0, line.rfind('}') + 1)); }

/// The object without its contenders. No text in it can hold what they begin with: quotes inside are escaped.
std::string winner_of_line(std::string_view line) {
    const std::size_t contenders = line.find(",\"contenders\":[");
    if (contenders != std::string_view::npos) return std::string(line.substr(0, contenders)) + '}';
    return object_of_line(line);
}

/// What `object_of` leaves of each line, as trials.
std::vector<Trial> read_packaged(std::string_view lines, std::string_view place,
                                 std::string (*object_of)(std::string_view)) {
    std::vector<Trial> trials;
    std::size_t number = 0;
    for (std::size_t begin = 0, end = 0; begin < lines.size(); begin = end + 1) {
        end = std::min(lines.find('\n', begin), lines.size());
        const std::string row = fmt::format("{}: row {}", place, ++number);
        try {
            std::ranges::move(
                read_row(json::parse(object_of(lines.substr(begin, end - begin))), row, std::nullopt),
                std::back_inserter(trials));
        } catch (const json::exception& error) {
            throw BundleError(fmt::format("{}: is truncated or damaged: {}", row, error.what()));
        }
    }
    return trials;
}

}  // namespace

std::string purpose_name(std::string_view name) {
    std::string text(name);
    std::ranges::replace_if(
        text, [](char c) { return !may_be_in_name(c); }, '_');
    if (text.size() > limits::text_bytes) text.resize(limits::text_bytes);
    return text;
}

std::string write_bundle(std::vector<Trial> trials, const std::optional<BundlePurpose>& purpose) {
    // What disturbed a measurement says nothing to another machine.
    for (Trial& trial : trials) trial.detail.clear();
    std::ranges::sort(trials,
                      [](const Trial& a, const Trial& b) { return order_in_file(a) < order_in_file(b); });
    trials.erase(std::unique(trials.begin(), trials.end()), trials.end());
    std::string rows;
    for (std::size_t first = 0, end = 0, row = 1; first < trials.size(); first = end, ++row) {
        while (end < trials.size() && trials[end].key == trials[first].key) ++end;
        const std::string place = fmt::format("winner {} ({})", row, trials[first].candidate);
        rows += (rows.empty() ? "" : ",\n") + checked_row({&trials[first], end - first}, place);
    }
    const std::string array = rows.empty() ? "[\n]" : "[\n" + rows + "\n]";
    std::string text =
        fmt::format("{{\n\"schema\": \"{}\",\n\"sha256\": \"{}\",\n\"winners\": {}{}\n}}\n", bundle_schema,
                    sha256_hex(array), array, purpose ? purpose_member(*purpose) : "");
    if (text.size() > max_bundle_bytes)
        throw BundleError(fmt::format("{} winners and contenders come to {} bytes; a bundle has up to {}",
                                      trials.size(), text.size(), max_bundle_bytes));
    return text;
}

std::vector<Trial> read_packaged_winners(std::string_view lines, std::string_view place) {
    return read_packaged(lines, place, winner_of_line);
}

std::vector<Trial> read_packaged_races(std::string_view lines, std::string_view place) {
    return read_packaged(lines, place, object_of_line);
}

std::optional<std::string> why_not_in_bundle(const Trial& trial) {
    if (const std::optional<Fault> fault = fault_of(trial, now_ms())) return describe(*fault, trial);
    try {
        require_in_design_space(trial, "trial " + identity(trial));
    } catch (const BundleError& error) {
        return error.what();
    }
    return std::nullopt;
}

std::vector<Trial> read_bundle(std::string_view text, std::string_view file_name,
                               std::optional<std::int64_t> now_ms) {
    return read_whole_bundle(text, file_name, now_ms).trials;
}

Bundle read_whole_bundle(std::string_view text, std::string_view file_name,
                         std::optional<std::int64_t> now_ms) {
    const json document = parse(text, file_name);
    check_schema(document, file_name);
    check_sum(document, text, file_name);
    const auto rows = document.find("winners");
    if (rows == document.end() || !rows->is_array()) {
        throw BundleError(fmt::format("{}: has no array 'winners'", file_name));
    }
    Bundle bundle;
    if (const auto purpose = document.find("for"); purpose != document.end())
        bundle.purpose = purpose_from(*purpose, file_name);
    std::set<TuningKey> keys;
    for (const json& row : *rows) {
        const std::string place = fmt::format("{}: row {}", file_name, keys.size() + 1);
        std::vector<Trial> of_row = read_row(row, place, now_ms);
        for (const Trial& trial : of_row) require_in_design_space(trial, place);
        if (!keys.insert(of_row.front().key).second) {
            throw BundleError(
                fmt::format("{}, field 'dynamic_fields': an earlier row has the same key", place));
        }
        std::ranges::move(of_row, std::back_inserter(bundle.trials));
    }
    return bundle;
}

}  // namespace hone::cache
