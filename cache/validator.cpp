#include "cache/validator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "kernel_templates/catalog.h"
#include "kernel_templates/text.h"

namespace hone::cache {
namespace {

using limits::Range;
using Found = std::optional<Fault>;

constexpr double fastest_bytes_per_us = 8e12 * 1e-6;
constexpr double fastest_flops_per_us = 10e15 * 1e-6;
constexpr double generosity =
    100;  // a true time that is refused does more harm than a false one that is taken
constexpr double shortest_us = 0.02;

bool is_printable_ascii(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c <= 0x7e; });
}

bool is_letter_or_digit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_name(std::string_view text) {
    return !text.empty() &&
           std::ranges::all_of(text, [](char c) { return is_letter_or_digit(c) || c == '_'; });
}

/// "4096", "bf16", "-1", "1e-5"
bool is_value(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return is_letter_or_digit(c) || c == '_' || c == '-' || c == '+' || c == '.';
    });
}

/// "hidden=4096 dtype=bf16", or nothing at all.
bool is_made_of_fields(std::string_view text) {
    while (!text.empty()) {
        const std::string_view word = text.substr(0, text.find(' '));
        const std::size_t equals = word.find('=');
        if (equals == std::string_view::npos) return false;
        if (!is_name(word.substr(0, equals)) || !is_value(word.substr(equals + 1))) return false;
        text.remove_prefix(std::min(text.size(), word.size() + 1));
    }
    return true;
}

/// "group_rows threads=256"
bool is_candidate(std::string_view text) {
    const std::size_t blank = text.find(' ');
    return is_name(text.substr(0, blank)) &&
           (blank == std::string_view::npos || is_made_of_fields(text.substr(blank + 1)));
}

bool is_hash(std::string_view text) {
    return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// UTF-8 without control characters other than line feeds and tabs.
bool is_prose(std::string_view text) {
    while (!text.empty()) {
        const char c = text.front();
        const bool control = (c >= 0 && c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
        const std::size_t length = utf8_length(text);
        if (control || length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

Found text_fault(std::string_view field, std::string_view text, bool may_be_empty) {
    if (text.empty() && !may_be_empty) return Fault{field, "is empty"};
    if (text.size() > limits::text_bytes)
        return Fault{field, fmt::format("has {} characters, allowed: {}", text.size(), limits::text_bytes)};
    if (!is_printable_ascii(text))
        return Fault{field, "holds something else than printable ASCII characters"};
    return std::nullopt;
}

Found range_fault(std::string_view field, std::int64_t value, const Range& range) {
    if (value >= range.low && value <= range.high) return std::nullopt;
    return Fault{field, fmt::format("is {}, allowed: {} to {}", value, range.low, range.high)};
}

Found real_fault(std::string_view field, double value) {
    if (value >= 0 && value <= limits::real) return std::nullopt;  // false for NaN
    return Fault{field, fmt::format("is {}, allowed: 0 to {}", value, limits::real)};
}

Found texts_fault(const Trial& trial) {
    const std::array<std::pair<std::string_view, const std::string*>, 5> required{
        {{"family", &trial.key.family},
         {"candidate", &trial.candidate},
         {"gpu_name", &trial.key.gpu.name},
         {"static_fields", &trial.key.static_fields},
         {"template_hash", &trial.template_hash}}};
    const std::array<std::pair<std::string_view, const std::string*>, 6> optional{
        {{"dynamic_fields", &trial.key.dynamic_fields},
         {"mig_profile", &trial.key.gpu.mig_profile},
         {"driver", &trial.toolchain.driver},
         {"nvrtc", &trial.toolchain.nvrtc},
         {"tool_version", &trial.tool_version},
         {"chain", &trial.chain}}};
    for (const auto& [field, text] : required) {
        if (Found fault = text_fault(field, *text, false)) return fault;
    }
    for (const auto& [field, text] : optional) {
        if (Found fault = text_fault(field, *text, true)) return fault;
    }
    if (trial.detail.size() > limits::detail_bytes)
        return Fault{"detail",
                     fmt::format("has {} bytes, allowed: {}", trial.detail.size(), limits::detail_bytes)};
    if (!is_prose(trial.detail)) return Fault{"detail", "holds control characters or is no UTF-8"};
    return std::nullopt;
}

Found form_fault(const Trial& trial) {
    if (!is_name(trial.key.family)) return Fault{"family", "is not the name of a family"};
    if (!is_made_of_fields(trial.key.static_fields))
        return Fault{"static_fields", "is not made of words like hidden=4096"};
    if (!is_made_of_fields(trial.key.dynamic_fields))
        return Fault{"dynamic_fields", "is not made of words like rows=16"};
    if (!is_candidate(trial.candidate))
        return Fault{"candidate", "is not a variant with words like threads=256"};
    if (!is_hash(trial.template_hash))
        return Fault{"template_hash", "is not made of 32 lower-case hex digits"};
    return std::nullopt;
}

Found numbers_fault(const Trial& trial) {
    const GpuKey& gpu = trial.key.gpu;
    const Resources& used = trial.resources;
    const std::array<std::tuple<std::string_view, std::int64_t, Range>, 10> integers{
        {{"compute_major", gpu.compute_major, limits::compute_major},
         {"compute_minor", gpu.compute_minor, limits::compute_minor},
         {"sm_count", gpu.sm_count, limits::sm_count},
         {"memory_clock_mhz", gpu.memory_clock_mhz, limits::memory_clock_mhz},
         {"samples", trial.timing.samples, limits::samples},
         {"sm_clock_mhz", trial.timing.sm_clock_mhz, limits::sm_clock_mhz},
         {"registers", used.registers, limits::registers},
         {"shared_bytes", used.shared_bytes, limits::shared_bytes},
         {"spill_bytes", used.spill_bytes, limits::spill_bytes},
         {"created_at", trial.created_at, limits::created_at}}};
    for (const auto& [field, value, range] : integers) {
        if (Found fault = range_fault(field, value, range)) return fault;
    }
    const std::array<std::pair<std::string_view, double>, 5> reals{
        {{"median_us", trial.timing.median_us},
         {"p10_us", trial.timing.p10_us},
         {"p90_us", trial.timing.p90_us},
         {"incumbent_ratio", trial.timing.incumbent_ratio},
         {"energy_mj", trial.energy_mj}}};
    for (const auto& [field, value] : reals) {
        if (Found fault = real_fault(field, value)) return fault;
    }
    return std::nullopt;
}

Found clock_fault(const Trial& trial, std::int64_t now_ms) {
    if (trial.created_at <= now_ms + limits::clock_slack_ms) return std::nullopt;
    return Fault{
        "created_at",
        fmt::format("is {}, {} days from now by this machine's clock, allowed: 1 day; one of the two "
                    "clocks is wrong",
                    trial.created_at, (trial.created_at - now_ms) / limits::clock_slack_ms)};
}

Found times_fault(const Trial& trial) {
    if (trial.status != TrialStatus::ok) return std::nullopt;
    const std::optional<Problem> problem = parse_problem(
        trial.key.family + ' ' + trial.key.static_fields + ' ' + trial.key.dynamic_fields, nullptr);
    for (const auto& [field, us] : {std::pair<std::string_view, double>{"median_us", trial.timing.median_us},
                                    {"p10_us", trial.timing.p10_us}}) {
        if (Found fault = fault_of_time(us, problem)) return Fault{field, std::move(fault->why)};
    }
    return std::nullopt;
}

}  // namespace

double least_us(const Problem& problem) {
    const Work work = problem.family->work(problem);
    const double us = std::max(work.bytes / fastest_bytes_per_us, work.flops / fastest_flops_per_us);
    return std::max(us / generosity, shortest_us);
}

std::optional<Fault> fault_of_time(double us, const std::optional<Problem>& problem) {
    if (Found fault = real_fault("us", us)) return fault;
    const double least = problem ? least_us(*problem) : shortest_us;
    if (us >= least) return std::nullopt;
    return Fault{"us", fmt::format("is {}, allowed: {:.3g} and more, since no device is as fast", us, least)};
}

std::optional<Fault> fault_of(const Trial& trial, std::optional<std::int64_t> now_ms) {
    if (Found fault = texts_fault(trial)) return fault;
    if (Found fault = form_fault(trial)) return fault;
    if (Found fault = numbers_fault(trial)) return fault;
    if (now_ms) {
        if (Found fault = clock_fault(trial, *now_ms)) return fault;
    }
    return times_fault(trial);
}

bool has_bearable_size(const Trial& trial) {
    for (const std::string* text :
         {&trial.key.gpu.name, &trial.key.gpu.mig_profile, &trial.key.family, &trial.key.static_fields,
          &trial.key.dynamic_fields, &trial.candidate, &trial.template_hash, &trial.toolchain.driver,
          &trial.toolchain.nvrtc, &trial.tool_version, &trial.detail, &trial.chain}) {
        if (text->size() > limits::detail_bytes) return false;
    }
    return true;
}

std::string describe(const Fault& fault, const Trial& trial) {
    return fmt::format("trial {} ({} {} {}: {}): field '{}': {}", identity(trial),
                       printable(trial.key.family), printable(trial.key.static_fields),
                       printable(trial.key.dynamic_fields), printable(trial.candidate), fault.field,
                       fault.why);
}

}  // namespace hone::cache
