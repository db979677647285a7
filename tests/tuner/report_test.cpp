#include "tuner/report/report.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tuner/report/report_text.h"

using namespace hone;
using namespace hone::tuner;

namespace {

Problem rmsnorm(std::int64_t rows) {
    return *parse_problem("rmsnorm dtype=bf16 hidden=4096 rows=" + std::to_string(rows));
}

cache::Trial trial(const std::string& candidate, double us, bool is_default) {
    cache::Trial result;
    result.candidate = candidate;
    result.is_default = is_default;
    result.timing.median_us = us;
    return result;
}

}  // namespace

TEST_CASE("numbers have as many digits as they are worth") {
    CHECK(format_us(1.5021) == "1.502");
    CHECK(format_us(23.456) == "23.46");
    CHECK(format_us(812.54) == "812.5");
    CHECK(format_us(0) == "-");
    CHECK(format_bytes(512) == "512 B");
    CHECK(format_bytes(13'002'342) == "12.4 MiB");
    CHECK(format_duration(std::chrono::milliseconds(850)) == "850 ms");
    CHECK(format_duration(std::chrono::milliseconds(12'340)) == "12.3 s");
    CHECK(format_duration(std::chrono::milliseconds(245'000)) == "4 min 05 s");
    CHECK(format_time(0) == "-");
    CHECK(format_time(1'700'000'000'000) == "2023-11-14 22:13:20");
}

TEST_CASE("a table lines up its columns and escapes its cells") {
    Table table({{"name"}, {"us", Align::right}});
    table.add({"a", "1.5"});
    table.add({"\x1b[31m", "12.25"});
    CHECK(table.render({}, " ") == " name         us\n a           1.5\n \\x1b[31m  12.25\n");
    CHECK(table.render({.colour = true}).starts_with("\033[1mname"));
}

TEST_CASE("a table is never wider than its page: the widest texts are cut, numbers are not") {
    Table table({{"name"}, {"us", Align::right}, {"config"}});
    table.add({"short", "1234567.5", std::string(60, 'c')});
    table.add({"a name of 22 characters", "2", "d"});
    CHECK(table.render({.columns = 40}) ==
          "name                   us  config\n"
          "short           1234567.5  cccccccccccc\u2026\n"
          "a name of 22 \u2026          2  d\n");
    for (std::size_t columns = 12; columns < 120; ++columns) {
        std::string text = table.render({.columns = columns}, "  ");
        for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
            const auto characters =
                std::count_if(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end),
                              [](char c) { return (c & 0xC0) != 0x80; });
            CHECK(static_cast<std::size_t>(characters) <= columns);
        }
    }
}

TEST_CASE("a text that is cut off ends in an ellipsis, between characters") {
    CHECK(fitted("abc", 3) == "abc");
    CHECK(fitted("abcd", 3) == "ab\u2026");
    CHECK(fitted("\u00e4\u00f6\u00fc\u00df", 3) == "\u00e4\u00f6\u2026");
    CHECK(fitted("abcd", 0) == "abcd");
}

TEST_CASE("the report has a table for each static problem with speed-up and share of the floor") {
    DeviceTraits traits;
    traits.memory_bytes_per_s = 1e12;
    TuneResult result;
    ProblemResult one{.problem = rmsnorm(1),
                      .winner = trial("fast", 2.0, false),
                      .fallback = trial("safe", 3.0, true),
                      .runner_up = {},
                      .failure = {}};
    ProblemResult two{.problem = rmsnorm(16),
                      .winner = trial("safe", 4.0, true),
                      .fallback = {},
                      .runner_up = {},
                      .failure = {}};
    ProblemResult none{
        .problem = rmsnorm(64), .winner = {}, .fallback = {}, .runner_up = {}, .failure = "all wrong"};
    result.problems = {one, two, none};
    const std::string text = tables(result, traits, {});
    CHECK(text.starts_with("rmsnorm dtype=bf16"));
    CHECK(text.find("1.50x") != std::string::npos);
    CHECK(text.find("safe (default)") != std::string::npos);
    CHECK(text.find("all wrong") != std::string::npos);
    // one row: 4096 bf16 read and written plus the weight, at 1e12 bytes/s
    CHECK(bandwidth_floor_us(rmsnorm(1), traits) == doctest::Approx(3 * 4096 * 2 / 1e6));
    CHECK_FALSE(floor_share(rmsnorm(1), 0, traits).has_value());
    CHECK_FALSE(floor_share(rmsnorm(1), 1, DeviceTraits{}).has_value());
    CHECK(speedup_over_default(two) == 1.0);
}

TEST_CASE("the report has a column for each size of a call") {
    const auto problem =
        parse_problem("attention_decode dtype=bf16 heads=8 head_dim=64 kv_heads=2 batch=4 kv_len=256");
    REQUIRE(problem);
    TuneResult result;
    result.problems = {
        {.problem = *problem, .winner = {}, .fallback = {}, .runner_up = {}, .failure = "all wrong"}};
    const std::string text = tables(result, DeviceTraits{}, {});
    CHECK(text.find("  batch  kv_len  q_len  winner") != std::string::npos);
    CHECK(text.find("      4     256      1  - all wrong") != std::string::npos);
}
