#include "cache/bundle.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cache/bundle_row.h"
#include "cache/error.h"
#include "cache/process.h"
#include "cache/sha256.h"
#include "cache/validator.h"

namespace hone::cache {
namespace {

using nlohmann::json;

constexpr std::size_t size_limit_bytes = 16 << 20;
constexpr int depth_limit = 16;
constexpr std::int64_t row_limit = 100'000;

auto sort_key(const TuningKey& key) {
    const GpuKey& gpu = key.gpu;
    return std::tie(key.family, key.static_fields, key.dynamic_fields, gpu.name, gpu.compute_major,
                    gpu.compute_minor, gpu.sm_count, gpu.memory_clock_mhz, gpu.mig_profile);
}

struct KeyOrder {
    bool operator()(const TuningKey& a, const TuningKey& b) const { return sort_key(a) < sort_key(b); }
};

/// What JSON allows and a bundle does not: names that repeat, deep nesting, too many rows. Stops at the first
/// of them. A pass of its own: the library's callback parser looks at all earlier rows again after each row.
class StructureGuard : public json::json_sax_t {
  public:
    explicit StructureGuard(std::string_view file_name) : file_name_(file_name) {}

    bool start_object(std::size_t) override {
        enter();
        names_.emplace_back();
        if (depth_ == 3 && ++rows_ > row_limit) refuse(fmt::format("has more than {} rows", row_limit));
        return true;
    }
    bool end_object() override {
        names_.pop_back();
        --depth_;
        return true;
    }
    bool start_array(std::size_t) override {
        enter();
        return true;
    }
    bool end_array() override {
        --depth_;
        return true;
    }
    bool key(std::string& name) override {
        if (!names_.back().insert(name).second) {
            refuse(fmt::format("row {}, field {}: is there twice", rows_, json(name).dump(-1, ' ', true)));
        }
        return true;
    }
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(std::int64_t) override { return true; }
    bool number_unsigned(std::uint64_t) override { return true; }
    bool number_float(double, const std::string&) override { return true; }
    bool string(std::string&) override { return true; }
    bool binary(json::binary_t&) override { return false; }
    bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
        refuse(fmt::format("is truncated or damaged: {}", error.what()));
    }

  private:
    void enter() {
        if (++depth_ > depth_limit) refuse(fmt::format("is nested deeper than {} levels", depth_limit));
    }
    [[noreturn]] void refuse(const std::string& why) const {
        throw BundleError(fmt::format("{}: {}", file_name_, why));
    }

    std::string_view file_name_;
    std::vector<std::set<std::string>> names_;
    int depth_ = 0;
    std::int64_t rows_ = 0;
};

json parse(std::string_view text, std::string_view file_name) {
    if (text.size() > size_limit_bytes) {
        throw BundleError(
            fmt::format("{}: has {} bytes, allowed: {}", file_name, text.size(), size_limit_bytes));
    }
    // The parser takes a zero byte for the end and would not look at what follows.
    if (text.find('\0') != std::string_view::npos) {
        throw BundleError(fmt::format("{}: is damaged: holds a zero byte", file_name));
    }
    if (!text.starts_with('{')) throw BundleError(fmt::format("{}: does not begin with '{{'", file_name));
    StructureGuard guard(file_name);
    json::sax_parse(text, &guard);
    return json::parse(text);
}

const std::string& text_member(const json& document, const char* name, std::string_view file_name) {
    const auto found = document.find(name);
    if (found == document.end() || !found->is_string()) {
        throw BundleError(fmt::format("{}: has no text '{}'", file_name, name));
    }
    return found->get_ref<const std::string&>();
}

void check_schema(const json& document, std::string_view file_name) {
    const std::string& schema = text_member(document, "schema", file_name);
    if (schema != bundle_schema) {
        throw BundleError(fmt::format(
            "{}: has the schema {}, this build reads \"{}\"", file_name,
            json(schema.substr(0, 64)).dump(-1, ' ', true, json::error_handler_t::replace), bundle_schema));
    }
    for (const auto& [member, value] : document.items()) {
        if (member != "schema" && member != "sha256" && member != "winners") {
            throw BundleError(
                fmt::format("{}: has the unknown member {}", file_name, json(member).dump(-1, ' ', true)));
        }
    }
}

/// The array's bytes as they stand in the file: `winners` is the only array that the format has at its top.
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

}  // namespace

std::string write_bundle(std::vector<Trial> winners) {
    // What disturbed a measurement says nothing to another machine.
    for (Trial& winner : winners) winner.detail.clear();
    std::ranges::sort(winners, KeyOrder{}, &Trial::key);
    std::string rows;
    for (std::size_t i = 0; i < winners.size(); ++i) {
        const std::string place = fmt::format("winner {} ({})", i + 1, winners[i].candidate);
        if (i > 0 && winners[i] == winners[i - 1]) continue;
        if (i > 0 && winners[i].key == winners[i - 1].key)
            throw BundleError(place + ": its key has another winner too");
        const std::string row = write_row(winners[i]);
        // What could not be read back is not written.
        if (read_row(json::parse(row), place, std::nullopt) != winners[i]) {
            throw BundleError(place + ": is not a winner with the status ok");
        }
        rows += (rows.empty() ? "" : ",\n") + row;
    }
    const std::string array = rows.empty() ? "[\n]" : "[\n" + rows + "\n]";
    return fmt::format("{{\n\"schema\": \"{}\",\n\"sha256\": \"{}\",\n\"winners\": {}\n}}\n", bundle_schema,
                       sha256_hex(array), array);
}

std::optional<std::string> why_not_in_bundle(const Trial& winner) {
    if (const std::optional<Fault> fault = fault_of(winner, now_ms())) return describe(*fault, winner);
    try {
        require_in_design_space(winner, "trial " + identity(winner));
    } catch (const BundleError& error) {
        return error.what();
    }
    return std::nullopt;
}

std::vector<Trial> read_bundle(std::string_view text, std::string_view file_name,
                               std::optional<std::int64_t> now_ms) {
    const json document = parse(text, file_name);
    check_schema(document, file_name);
    check_sum(document, text, file_name);
    const auto rows = document.find("winners");
    if (rows == document.end() || !rows->is_array()) {
        throw BundleError(fmt::format("{}: has no array 'winners'", file_name));
    }
    std::vector<Trial> winners;
    std::set<TuningKey, KeyOrder> keys;
    for (const json& row : *rows) {
        const std::string place = fmt::format("{}: row {}", file_name, winners.size() + 1);
        Trial winner = read_row(row, place, now_ms);
        require_in_design_space(winner, place);
        if (!keys.insert(winner.key).second) {
            throw BundleError(
                fmt::format("{}, field 'dynamic_fields': an earlier row has the same key", place));
        }
        winners.push_back(std::move(winner));
    }
    return winners;
}

}  // namespace hone::cache
