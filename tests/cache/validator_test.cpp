// Each limit of the validator at its edge: what is equal to it is taken, what is one beyond is named.
#include "cache/validator.h"

#include <doctest/doctest.h>

#include <cctype>
#include <cmath>
#include <functional>
#include <limits>

#include "kernel_templates/catalog.h"
#include "tests/cache/support.h"

using namespace hone;
using namespace hone::cache;
using namespace hone::cache::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Of a family that this build does not know, so that its times have no limit but that of any kernel.
Trial with(const std::function<void(Trial&)>& change) {
    Trial trial = sample_trial(1);
    change(trial);
    return trial;
}

/// The field that is at fault, or "".
std::string fault_in(const Trial& trial, std::optional<std::int64_t> now_ms = std::nullopt) {
    const std::optional<Fault> fault = fault_of(trial, now_ms);
    return fault ? std::string(fault->field) : "";
}

struct TextField {
    const char* name;
    std::string& (*of)(Trial&);
    bool may_be_empty = true;
    const char* beginning = "";  ///< makes any number of letters after it well formed
};

const std::vector<TextField>& text_fields() {
    static const std::vector<TextField> fields{
        {"family", [](Trial& t) -> std::string& { return t.key.family; }, false},
        {"candidate", [](Trial& t) -> std::string& { return t.candidate; }, false},
        {"gpu_name", [](Trial& t) -> std::string& { return t.key.gpu.name; }, false},
        {"static_fields", [](Trial& t) -> std::string& { return t.key.static_fields; }, false, "a="},
        {"dynamic_fields", [](Trial& t) -> std::string& { return t.key.dynamic_fields; }, true, "a="},
        {"mig_profile", [](Trial& t) -> std::string& { return t.key.gpu.mig_profile; }},
        {"driver", [](Trial& t) -> std::string& { return t.toolchain.driver; }},
        {"nvrtc", [](Trial& t) -> std::string& { return t.toolchain.nvrtc; }},
        {"tool_version", [](Trial& t) -> std::string& { return t.tool_version; }},
        {"chain", [](Trial& t) -> std::string& { return t.chain; }}};
    return fields;
}

std::string fault_with(const TextField& field, const std::string& text) {
    return fault_in(with([&](Trial& t) { field.of(t) = text; }));
}

std::string fault_with(const char* name, const std::string& text) {
    for (const TextField& field : text_fields()) {
        if (std::string_view(field.name) == name) return fault_with(field, text);
    }
    throw std::logic_error(name);
}

std::string fault_of_hash(const std::string& hash) {
    return fault_in(with([&](Trial& t) { t.template_hash = hash; }));
}

std::string fault_of_detail(const std::string& detail) {
    return fault_in(with([&](Trial& t) { t.detail = detail; }));
}

Problem problem_of(const std::string& text) {
    std::string error;
    const auto problem = parse_problem(text, &error);
    REQUIRE(error == "");
    return *problem;
}

}  // namespace

TEST_CASE("a text has 512 characters at most, and some where it is required") {
    for (const TextField& field : text_fields()) {
        CAPTURE(field.name);
        const std::string beginning = field.beginning;
        const std::string longest = beginning + std::string(512 - beginning.size(), 'x');
        CHECK(fault_with(field, longest) == "");
        CHECK(fault_with(field, longest + 'x') == field.name);
        CHECK(fault_with(field, "") == (field.may_be_empty ? "" : field.name));
    }
    const auto fault = fault_of(with([](Trial& t) { t.template_hash = ""; }), std::nullopt);
    REQUIRE(fault);
    CHECK(fault->field == "template_hash");
    CHECK(fault->why == "is empty");
}

TEST_CASE("a text is printable ASCII and nothing else") {
    for (const TextField& field : text_fields()) {
        CAPTURE(field.name);
        for (const char c : {'\0', '\n', '\x1f', '\x7f', '\x80', '\xff'}) {
            CHECK(fault_with(field, std::string(field.beginning) + 'x' + c) == field.name);
        }
    }
    CHECK(fault_with("gpu_name", " ~") == "");
}

TEST_CASE("names are letters, digits and underscores; values have signs and points too") {
    for (int code = 0x21; code < 0x7f; ++code) {
        const std::string c(1, static_cast<char>(code));
        CAPTURE(c);
        const bool of_name = std::isalnum(code) != 0 || code == '_';
        CHECK(fault_with("family", c).empty() == of_name);
        CHECK(fault_with("candidate", c).empty() == of_name);
        CHECK(fault_with("dynamic_fields", c + "=1").empty() == of_name);
        const bool of_value = of_name || code == '-' || code == '+' || code == '.';
        CHECK(fault_with("dynamic_fields", "a=" + c).empty() == of_value);
        CHECK(fault_with("candidate", "a b=" + c).empty() == of_value);
    }
}

TEST_CASE("fields are words with a name and a value, a blank between two") {
    for (const char* name : {"static_fields", "dynamic_fields"}) {
        CHECK(fault_with(name, "a=1") == "");
        CHECK(fault_with(name, "a=1 b=2 hidden=4096 eps=1e-5") == "");
        for (const char* text :
             {"a", "=1", "a=", "=", " a=1", "a=1  b=2", "a=1 b", "a=1 =2", "a=1 b=", "a=1=2"}) {
            CAPTURE(text);
            CHECK(fault_with(name, text) == name);
        }
    }
    CHECK(fault_with("candidate", "rows threads=256 unroll=4") == "");
    for (const char* text : {" rows", "rows 256", "rows =4", "rows threads=256 unroll", "a-b threads=256"}) {
        CAPTURE(text);
        CHECK(fault_with("candidate", text) == "candidate");
    }
}

TEST_CASE("a template's hash is 32 lower-case hex digits") {
    CHECK(fault_of_hash("0123456789abcdef0123456789abcdef") == "");
    CHECK(fault_of_hash(std::string(31, 'a')) == "template_hash");
    CHECK(fault_of_hash(std::string(33, 'a')) == "template_hash");
    for (const char c : {'g', 'A', '/', ':', '`', ' '}) {
        CHECK(fault_of_hash(std::string(31, '0') + c) == "template_hash");
        CHECK(fault_of_hash(c + std::string(31, '0')) == "template_hash");
    }
}

TEST_CASE("a detail is UTF-8 of 64 KiB at most, with line feeds and tabs for its only controls") {
    CHECK(fault_of_detail("") == "");
    CHECK(fault_of_detail(std::string(65536, 'x')) == "");
    CHECK(fault_of_detail(std::string(65537, 'x')) == "detail");
    CHECK(fault_of_detail("a\n\tb ~ 3 \xC2\xB5s \xE2\x82\xAC \xF0\x9F\x98\x80") == "");
    for (int code = 0; code < 0x20; ++code) {
        if (code == '\n' || code == '\t') continue;
        CHECK(fault_of_detail(std::string("\xC2\xB5") + static_cast<char>(code)) == "detail");
    }
    for (const char* text : {"\x7f", "\x80", "a\xff", "\xC2", "\xE2\x82", "\xC2 "}) {
        CHECK(fault_of_detail(text) == "detail");
    }
}

TEST_CASE("whole numbers are within their ranges, ends included") {
    struct Number {
        const char* name;
        std::function<void(Trial&, std::int64_t)> set;
        std::int64_t low, high;
    };
    const auto to_int = [](std::int64_t value) { return static_cast<int>(value); };
    const std::vector<Number> numbers{
        {"compute_major", [&](Trial& t, auto v) { t.key.gpu.compute_major = to_int(v); }, 1, 99},
        {"compute_minor", [&](Trial& t, auto v) { t.key.gpu.compute_minor = to_int(v); }, 0, 99},
        {"sm_count", [&](Trial& t, auto v) { t.key.gpu.sm_count = to_int(v); }, 1, 1'000'000},
        {"memory_clock_mhz", [&](Trial& t, auto v) { t.key.gpu.memory_clock_mhz = to_int(v); }, 0, 1'000'000},
        {"samples", [&](Trial& t, auto v) { t.timing.samples = to_int(v); }, 0, 1'000'000'000},
        {"sm_clock_mhz", [&](Trial& t, auto v) { t.timing.sm_clock_mhz = to_int(v); }, 0, 1'000'000},
        {"registers", [&](Trial& t, auto v) { t.resources.registers = to_int(v); }, 0, 1024},
        {"shared_bytes", [&](Trial& t, auto v) { t.resources.shared_bytes = to_int(v); }, 0, 268'435'456},
        {"spill_bytes", [&](Trial& t, auto v) { t.resources.spill_bytes = to_int(v); }, 0, 268'435'456},
        {"created_at", [](Trial& t, auto v) { t.created_at = v; }, 0, 253'402'300'800'000}};
    for (const Number& number : numbers) {
        CAPTURE(number.name);
        for (const std::int64_t taken : {number.low, number.high}) {
            CHECK(fault_in(with([&](Trial& t) { number.set(t, taken); })) == "");
        }
        for (const std::int64_t refused : {number.low - 1, number.high + 1}) {
            CHECK(fault_in(with([&](Trial& t) { number.set(t, refused); })) == number.name);
        }
    }
}

TEST_CASE("times and energy are finite, from 0 to thirty years' worth, whatever became of the trial") {
    const std::vector<std::pair<const char*, void (*)(Trial&, double)>> reals{
        {"median_us", [](Trial& t, double v) { t.timing.median_us = v; }},
        {"p10_us", [](Trial& t, double v) { t.timing.p10_us = v; }},
        {"p90_us", [](Trial& t, double v) { t.timing.p90_us = v; }},
        {"incumbent_ratio", [](Trial& t, double v) { t.timing.incumbent_ratio = v; }},
        {"energy_mj", [](Trial& t, double v) { t.energy_mj = v; }}};
    for (const auto& [name, set] : reals) {
        CAPTURE(name);
        const auto fault = [&, change = set](double value) {
            return fault_in(with([&](Trial& t) {
                t.status = TrialStatus::crashed;
                change(t, value);
            }));
        };
        CHECK(fault(0) == "");
        CHECK(fault(1e15) == "");
        for (const double value :
             {-1e-300, -1.0, std::nextafter(1e15, infinity), infinity, -infinity, std::nan("")}) {
            CHECK(fault(value) == name);
        }
    }
}

TEST_CASE("a trial is from a day ahead of this machine's clock at most") {
    constexpr std::int64_t now_ms = 1'790'000'000'000;
    constexpr std::int64_t day_ms = 86'400'000;
    const auto ahead = [](std::int64_t ms) { return with([&](Trial& t) { t.created_at = now_ms + ms; }); };
    CHECK(fault_in(ahead(day_ms), now_ms) == "");
    CHECK(fault_in(ahead(-1000 * day_ms), now_ms) == "");
    CHECK(fault_in(ahead(day_ms + 1), now_ms) == "created_at");
    CHECK(fault_in(ahead(day_ms + 1)) == "");  // the clock is not asked
    const auto fault = fault_of(ahead(3 * day_ms), now_ms);
    REQUIRE(fault);
    CHECK(fault->why.find(", 3 days from now") != std::string::npos);
}

TEST_CASE("no kernel of any family takes less than 20 ns; what failed may have no time") {
    const double less = std::nextafter(0.02, 0);
    const auto fault = [](double median_us, double p10_us, TrialStatus status = TrialStatus::ok) {
        return fault_in(with([&](Trial& t) {
            t.status = status;
            t.timing = {.median_us = median_us, .p10_us = p10_us, .p90_us = 0, .samples = 0};
        }));
    };
    CHECK(fault(0.02, 0.02) == "");
    CHECK(fault(less, 0.02) == "median_us");
    CHECK(fault(0.02, less) == "p10_us");
    CHECK(fault(0, 0, TrialStatus::crashed) == "");
    CHECK_FALSE(fault_of_time(0.02, std::nullopt));
    CHECK(fault_of_time(less, std::nullopt));
    CHECK(fault_of_time(std::nan(""), std::nullopt));
    CHECK(fault_of_time(infinity, std::nullopt));
}

TEST_CASE(
    "a problem's least time is a hundredth of what 8 TB/s and 10 PFLOPS would take, the longer of both") {
    const Problem memory_bound = problem_of("rmsnorm dtype=bf16 hidden=4096 rows=65536");
    const Problem compute_bound = problem_of("linear dtype=bf16 in=16384 out=16384 tokens=16384");
    const Problem small = problem_of("rmsnorm dtype=bf16 hidden=64 rows=1");
    const auto seconds_of = [](const Problem& problem) {
        const Work work = problem.family->work(problem);
        return std::pair{work.bytes / 8e12, work.flops / 1e16};
    };
    const auto [bytes_s, few_flops_s] = seconds_of(memory_bound);
    REQUIRE(bytes_s > 2 * few_flops_s);
    CHECK(least_us(memory_bound) == doctest::Approx(bytes_s * 1e4));
    const auto [few_bytes_s, flops_s] = seconds_of(compute_bound);
    REQUIRE(flops_s > 2 * few_bytes_s);
    CHECK(least_us(compute_bound) == doctest::Approx(flops_s * 1e4));
    CHECK(least_us(small) == 0.02);
    for (const Problem& problem : {memory_bound, compute_bound, small}) {
        const double least = least_us(problem);
        CHECK_FALSE(fault_of_time(least, problem));
        CHECK(fault_of_time(std::nextafter(least, 0), problem));
    }
}

TEST_CASE("a trial of a family of this build has no less than its problem's least time") {
    const Problem problem = problem_of("rmsnorm dtype=bf16 hidden=4096 rows=65536");
    Trial winner = sample_winner(1);
    winner.key.family = problem.family->name;
    winner.key.static_fields = static_text(problem);
    winner.key.dynamic_fields = dynamic_text(problem);
    const double least = least_us(problem);
    const auto at = [&](double us, double p10_us) {
        Trial trial = winner;
        trial.timing.median_us = us;
        trial.timing.p10_us = p10_us;
        return fault_in(trial);
    };
    CHECK(least > 0.02);
    CHECK(at(least, least) == "");
    CHECK(at(std::nextafter(least, 0), least) == "median_us");
    CHECK(at(least, std::nextafter(least, 0)) == "p10_us");
}

TEST_CASE("a row with any text above 64 KiB is not read at all") {
    CHECK(has_bearable_size(sample_trial(1)));
    std::vector<std::string& (*)(Trial&)> texts{[](Trial& t) -> std::string& { return t.template_hash; },
                                                [](Trial& t) -> std::string& { return t.detail; }};
    for (const TextField& field : text_fields()) texts.push_back(field.of);
    for (const auto& text : texts) {
        CHECK(has_bearable_size(with([&](Trial& t) { text(t) = std::string(65536, 'x'); })));
        CHECK_FALSE(has_bearable_size(with([&](Trial& t) { text(t) = std::string(65537, 'x'); })));
    }
}
