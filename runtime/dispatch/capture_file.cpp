#include "runtime/dispatch/capture_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/system/atomic_file.h"
#include "runtime/system/file_lock.h"
#include "runtime/system/input_error.h"
#include "runtime/system/strict_json.h"
#include "runtime/system/text_file.h"

namespace hone::runtime {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t size_limit_bytes = 16 << 20;
constexpr std::uint64_t most_calls = std::uint64_t{1} << 53;  // beyond it, readers of JSON round

using Calls = std::map<std::pair<std::string, std::string>, std::uint64_t>;  // by GPU and problem

[[noreturn]] void refuse(const std::string& place, const std::string& what) {
    throw InputError(
        fmt::format("{}: {}; allowed is what HONE_CAPTURE writes: {}", place, what,
                    R"({"schema": "hone.capture/1", "problems": [{"calls", "gpu", "problem"}]})"));
}

void check_members(const json& object, std::span<const std::string_view> names, const std::string& place) {
    for (const auto& [name, value] : object.items()) {
        if (std::ranges::find(names, name) == names.end())
            refuse(place, fmt::format("has the unknown member '{}'", name));
    }
    for (const std::string_view name : names) {
        if (!object.contains(name)) refuse(place, fmt::format("has no '{}'", name));
    }
}

CapturedProblem problem_from(const json& entry, const std::string& place) {
    constexpr std::string_view members[] = {"calls", "gpu", "problem"};
    if (!entry.is_object()) refuse(place, "is no object");
    check_members(entry, members, place);
    const json& calls = entry["calls"];
    if (!calls.is_number_unsigned() || calls.get<std::uint64_t>() > most_calls)
        refuse(place, "calls is no whole number from 0 to 2^53");
    if (!entry["gpu"].is_string() || !entry["problem"].is_string())
        refuse(place, "gpu or problem is no text");
    return {entry["gpu"].get<std::string>(), entry["problem"].get<std::string>(), calls.get<std::uint64_t>()};
}

void add(Calls& calls, const CapturedProblem& more) {
    std::uint64_t& sum = calls[{more.gpu, more.problem}];
    sum = std::min(most_calls, sum + std::min(most_calls, more.calls));
}

Calls calls_in(const fs::path& file) {
    Calls calls;
    const std::string text = read_text_file(file, size_limit_bytes);
    if (text.empty()) return calls;
    const json document = parse_json_object(text, file.string());
    constexpr std::string_view members[] = {"schema", "problems"};
    check_members(document, members, file.string());
    if (!is_text(document["schema"], capture_schema))
        refuse(file.string(), fmt::format("its schema is not \"{}\"", capture_schema));
    if (!document["problems"].is_array()) refuse(file.string(), "problems is no array");
    std::size_t number = 0;
    for (const json& entry : document["problems"])
        add(calls, problem_from(entry, fmt::format("{}: problem {}", file.string(), ++number)));
    return calls;
}

std::string text_of(const Calls& calls) {
    std::string rows;
    for (const auto& [key, count] : calls) {
        const json row{{"calls", count}, {"gpu", key.first}, {"problem", key.second}};
        rows += (rows.empty() ? "\n" : ",\n") + row.dump(-1, ' ', true, json::error_handler_t::replace);
    }
    return fmt::format("{{\n\"schema\": \"{}\",\n\"problems\": [{}\n]\n}}\n", capture_schema, rows);
}

}  // namespace

std::vector<CapturedProblem> read_capture(const fs::path& file) {
    std::vector<CapturedProblem> problems;
    for (const auto& [key, calls] : calls_in(file)) problems.push_back({key.first, key.second, calls});
    return problems;
}

void add_to_capture(const fs::path& file, std::span<const CapturedProblem> more,
                    std::chrono::milliseconds patience) {
    const FileLock lock(file, patience);
    Calls calls = calls_in(file);
    for (const CapturedProblem& problem : more) add(calls, problem);
    write_file(file, text_of(calls));
}

}  // namespace hone::runtime
