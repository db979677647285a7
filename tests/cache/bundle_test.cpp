#include "cache/bundle.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <random>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cache/bundle_row.h"
#include "cache/error.h"
#include "cache/packaged.h"
#include "cache/sha256.h"
#include "cache/ties.h"
#include "cache/validator.h"
#include "kernel_templates/space.h"
#include "support.h"

using namespace hone::cache;
using namespace hone::cache::test;
using nlohmann::json;

namespace {

std::vector<Trial> sample_winners(int count) {
    std::vector<Trial> winners;
    for (int i = 0; i < count; ++i) winners.push_back(sample_winner(i));
    return winners;
}

std::string refusal(const std::string& text) {
    try {
        (void)read_bundle(text, "file.json");
        return "";
    } catch (const BundleError& error) {
        return error.what();
    }
}

/// A bundle around these rows, with a checksum that is right.
std::string sealed(const std::string& array) {
    return fmt::format("{{\n\"schema\": \"hone.tuned/3\",\n\"sha256\": \"{}\",\n\"winners\": {}\n}}\n",
                       sha256_hex(array), array);
}

/// The `place`th candidate of the winner's space besides itself as its contender.
Trial contender_to(const Trial& winner, std::size_t place, double us) {
    const hone::Problem problem = *hone::parse_problem(winner.key.family + ' ' + winner.key.static_fields +
                                                       ' ' + winner.key.dynamic_fields);
    std::vector<std::string> others;
    for (const hone::RankedCandidate& ranked :
         hone::ranked_space(problem, *hone::representative_device({9, 0, true})))
        if (to_string(ranked.candidate) != winner.candidate) others.push_back(to_string(ranked.candidate));
    Trial contender = winner;
    contender.winner = false;
    contender.is_default = false;
    contender.candidate = others.at(place);
    contender.timing.median_us = us;
    return contender;
}

/// As dispatch reads them, problem by problem.
std::vector<Trial> winners_in(const PackagedBundle& bundle) {
    std::vector<Trial> winners;
    for (const PackagedRows& rows : bundle.rows) {
        const std::string lines = lines_of(bundle, rows.family, rows.static_fields);
        std::ranges::move(read_packaged_winners(lines, bundle.name), std::back_inserter(winners));
    }
    return winners;
}

/// As a tuner reads them.
std::vector<Trial> races_in(const PackagedBundle& bundle) {
    std::vector<Trial> trials;
    for (const PackagedRows& rows : bundle.rows)
        std::ranges::move(read_packaged_races(lines_of(bundle, rows), bundle.name),
                          std::back_inserter(trials));
    return trials;
}

std::vector<Trial> packaged_winners(const std::string& text) {
    return winners_in(Packaged("file.json", text).view());
}

std::string valid_row() {
    const std::string text = write_bundle(sample_winners(1));
    const std::size_t begin = text.find("[\n") + 2;
    return text.substr(begin, text.find("\n]") - begin);
}

std::string with_member(const char* name, const json& value) {
    json row = json::parse(valid_row());
    row[name] = value;
    return sealed("[" + row.dump() + "]");
}

}  // namespace

TEST_CASE("what has more bytes than a bundle is read with is not written") {
    const auto long_winners = [](int count) {
        std::vector<Trial> winners(static_cast<std::size_t>(count), sample_winner(1));
        for (int i = 0; i < count; ++i) {
            Trial& winner = winners[static_cast<std::size_t>(i)];
            winner.key.gpu.memory_clock_mhz = i + 1;
            winner.key.gpu.name = winner.tool_version = std::string(limits::text_bytes, 'n');
        }
        return winners;
    };
    const std::size_t bytes_a_row = write_bundle(long_winners(1)).size();
    const int too_many = static_cast<int>(max_bundle_bytes / bytes_a_row) + 1000;
    CHECK_THROWS_WITH_AS((void)write_bundle(long_winners(too_many)),
                         doctest::Contains("a bundle has up to 16777216"), BundleError);
}

TEST_CASE("contenders come back behind their winner, the fastest first, with what is theirs") {
    const std::vector<Trial> winners = sample_winners(2);
    std::vector<Trial> trials{contender_to(winners[1], 0, 3.0), contender_to(winners[1], 1, 2.0)};
    trials[0].template_hash = std::string(32, 'a');
    trials.insert(trials.begin(), winners.begin(), winners.end());
    const std::string text = write_bundle(trials);
    const std::vector<Trial> back = read_bundle(text, "file.json");
    REQUIRE(back.size() == 4);
    CHECK(write_bundle(back) == text);
    const auto first = std::ranges::find(back, winners[1]);
    REQUIRE(first != back.end());
    CHECK(first[1].candidate == trials[3].candidate);
    CHECK(first[1].timing.median_us == 2.0);
    CHECK(first[1].template_hash == winners[1].template_hash);
    CHECK(first[2].candidate == trials[2].candidate);
    CHECK(first[2].template_hash == std::string(32, 'a'));
    CHECK_FALSE(first[1].winner);
    CHECK(first[1].key == winners[1].key);
    CHECK(first[1].toolchain == winners[1].toolchain);
}

TEST_CASE("who ties with a winner ties with it after export and import, and nobody else does") {
    Trial winner = sample_winners(1)[0];
    winner.stage = Stage::final_round;
    const Trial tied = contender_to(winner, 0, winner.timing.median_us * 1.004);
    Trial of_heat = contender_to(winner, 1, winner.timing.median_us);
    of_heat.stage = Stage::raced;
    Trial of_other_final = contender_to(winner, 2, winner.timing.median_us);
    --of_other_final.created_at;
    const std::string text = write_bundle({winner, tied, of_heat, of_other_final});
    const std::vector<Trial> back = read_bundle(text, "file.json");
    REQUIRE(back.size() == 4);
    const Ties ties = ties_of(back.front(), back);
    REQUIRE(ties.others.size() == 1);
    CHECK(ties.others[0].candidate == tied.candidate);
    CHECK(ties.within == doctest::Approx(0.004));
    CHECK(write_bundle(back) == text);
}

TEST_CASE("a contender without a winner, too many, and one that stands there twice are not written") {
    const Trial winner = sample_winners(1)[0];
    CHECK_THROWS_WITH_AS((void)write_bundle({contender_to(winner, 0, 3.0)}),
                         doctest::Contains("is no winner, and its key has none"), BundleError);
    CHECK_THROWS_WITH_AS(
        (void)write_bundle({winner, contender_to(winner, 0, 3.0), contender_to(winner, 0, 4.0)}),
        doctest::Contains("stands in its row already"), BundleError);
    std::vector<Trial> many{winner};
    for (std::size_t i = 0; i < most_contenders; ++i) many.push_back(contender_to(winner, i, 3.0));
    CHECK(read_bundle(write_bundle(many), "file.json").size() == 8);
    many.push_back(contender_to(winner, most_contenders, 3.0));
    CHECK_THROWS_WITH_AS((void)write_bundle(many), doctest::Contains("is not an array of 1 to 7"),
                         BundleError);
}

TEST_CASE("a contender is checked as a winner is, and the message names it") {
    const json good = {{"candidate", contender_to(sample_winners(1)[0], 0, 3.0).candidate},
                       {"median_us", 3.0}};
    CHECK_NOTHROW((void)read_bundle(with_member("contenders", json::array({good})), "file.json"));
    const auto refused = [&](const char* member, const json& value, const char* message) {
        json bad = good;
        bad[member] = value;
        CHECK_THROWS_WITH_AS((void)read_bundle(with_member("contenders", json::array({bad})), "file.json"),
                             doctest::Contains(message), BundleError);
    };
    refused("median_us", 0.0001, "contender 1, field 'median_us'");
    refused("median_us", "3", "contender 1, field 'median_us': is not a number");
    refused("candidate", "nobody x=1", "field 'candidate'");
    refused("template_hash", "short", "contender 1, field 'template_hash'");
    refused("stage", "semifinal", "contender 1, field 'stage': has the unknown value 'semifinal'");
    refused("stage", "raced", "contender 1, field 'stage': is there, but");
    refused("winner", true, "contender 1: has the unknown member 'winner'");
    json clocked = good;
    clocked["sm_clock_mhz"] = 1755;
    clocked["winner"] = true;
    CHECK_THROWS_WITH_AS((void)read_bundle(with_member("contenders", json::array({clocked})), "file.json"),
                         doctest::Contains("contender 1: has the unknown member 'winner'"), BundleError);
    CHECK_THROWS_AS((void)read_bundle(with_member("contenders", json::array()), "file.json"), BundleError);
    CHECK_THROWS_AS((void)read_bundle(with_member("contenders", json::object()), "file.json"), BundleError);
}

TEST_CASE("bundles of older schemas are read") {
    for (const std::string_view older : {bundle_schema_without_contenders, bundle_schema_without_clocks}) {
        std::string text = write_bundle(sample_winners(3));
        text.replace(text.find(bundle_schema), bundle_schema.size(), older);
        CHECK(read_bundle(text, "file.json").size() == 3);
    }
}

TEST_CASE("clocks and ratios to the incumbent come along where they are known, and are checked") {
    Trial winner = sample_winners(1)[0];
    winner.timing.sm_clock_mhz = 1755;
    winner.timing.incumbent_ratio = 0.984;
    Trial clocked = contender_to(winner, 0, winner.timing.median_us + 1);
    clocked.timing.sm_clock_mhz = 1740;
    clocked.timing.incumbent_ratio = 1.003;
    Trial plain = contender_to(winner, 1, winner.timing.median_us + 2);
    plain.timing.sm_clock_mhz = 0;
    plain.timing.incumbent_ratio = 0;
    const std::string text = write_bundle({winner, clocked, plain});
    const std::vector<Trial> back = read_bundle(text, "file.json");
    REQUIRE(back.size() == 3);
    CHECK(back[0] == winner);
    CHECK(back[1].timing.sm_clock_mhz == 1740);
    CHECK(back[1].timing.incumbent_ratio == 1.003);
    CHECK(back[2].timing.sm_clock_mhz == 0);
    CHECK(back[2].timing.incumbent_ratio == 0);
    CHECK(packaged_winners(text) == std::vector<Trial>{winner});
    CHECK_THROWS_WITH_AS((void)read_bundle(with_member("sm_clock_mhz", -1), "file.json"),
                         doctest::Contains("field 'sm_clock_mhz': is -1, allowed: 0 to"), BundleError);
    CHECK_THROWS_WITH_AS((void)read_bundle(with_member("incumbent_ratio", -0.5), "file.json"),
                         doctest::Contains("field 'incumbent_ratio'"), BundleError);
}

TEST_CASE("reading what was written gives the same winners") {
    for (const int count : {0, 1, 2, 50}) {
        std::vector<Trial> winners = sample_winners(count);
        std::vector<Trial> back = read_bundle(write_bundle(winners), "file.json");
        const auto by_identity = [](const Trial& trial) { return identity(trial); };
        std::ranges::sort(winners, {}, by_identity);
        std::ranges::sort(back, {}, by_identity);
        CHECK(winners == back);
    }
}

TEST_CASE("the step in which a winner was chosen comes back with it, and not with its contenders") {
    Trial winner = sample_winner(1);
    winner.chain = "llama-3-8b tokens=8 kv=1024";
    const std::string text = write_bundle({winner});
    CHECK(text.find("\"chain\":\"llama-3-8b tokens=8 kv=1024\"") != std::string::npos);
    CHECK(read_bundle(text, "bundle.json").front() == winner);
    CHECK(contender_of(winner).chain.empty());
    winner.chain.clear();
    CHECK(write_bundle({winner}).find("chain") == std::string::npos);
}

TEST_CASE("equal sets give equal bytes, whatever their order") {
    std::vector<Trial> winners = sample_winners(30);
    const std::string text = write_bundle(winners);
    std::mt19937 random(7);
    for (int i = 0; i < 10; ++i) {
        std::ranges::shuffle(winners, random);
        CHECK(write_bundle(winners) == text);
    }
    winners.push_back(winners.front());
    CHECK(write_bundle(winners) == text);
    CHECK(write_bundle(read_bundle(text, "file.json")) == text);
}

TEST_CASE("a bundle has a line for each winner") {
    const std::string text = write_bundle(sample_winners(5));
    CHECK(std::ranges::count(text, '\n') == 5 + 6);
    CHECK(text.ends_with("\n]\n}\n"));
    CHECK(json::parse(text)["winners"].size() == 5);
}

TEST_CASE("a bundle may say what it is for") {
    const BundlePurpose purpose{"engine_1.json", {{"rmsnorm hidden=64 rows=1", 0.75}, {"linear in=1", 0.25}}};
    const std::string text = write_bundle(sample_winners(3), purpose);
    CHECK(read_bundle(text, "file.json") == read_bundle(write_bundle(sample_winners(3)), "file.json"));
    CHECK(read_whole_bundle(text, "file.json").purpose == purpose);
    CHECK(read_whole_bundle(write_bundle(sample_winners(3)), "file.json").purpose == std::nullopt);
    CHECK(read_whole_bundle(write_bundle({}, BundlePurpose{"gpt2", {}}), "file.json").purpose->name ==
          "gpt2");
    CHECK(purpose_name("a b/[c].json") == "a_b__c_.json");
    const BundlePurpose longest{purpose_name(std::string(2000, 'a')), {}};
    CHECK(read_whole_bundle(write_bundle({}, longest), "file.json").purpose->name == std::string(512, 'a'));
}

TEST_CASE("a purpose that is none is refused") {
    const std::string text = write_bundle(sample_winners(2), BundlePurpose{"gpt2", {}});
    const std::string good = R"({"name":"gpt2","shares":{}})";
    REQUIRE(text.find(good) != std::string::npos);
    for (const char* bad :
         {"7", "[]", "{}", R"({"name":"gpt2"})", R"({"name":"","shares":{}})", R"({"name":"a]","shares":{}})",
          R"({"name":"gpt2","shares":[]})", R"({"name":"gpt2","shares":{"a":2}})",
          R"({"name":"gpt2","shares":{"a":"b"}})", R"({"name":"gpt2","shares":{"a[":0.5}})",
          R"({"name":"gpt2","shares":{},"more":1})"}) {
        CAPTURE(bad);
        std::string changed = text;
        changed.replace(changed.find(good), good.size(), bad);
        CHECK(refusal(changed) != "");
        CHECK_THROWS_AS((void)read_whole_bundle(changed, "file.json"), BundleError);
    }
    const std::string endless = write_bundle({}, BundlePurpose{std::string(513, 'a'), {}});
    CHECK(refusal(endless).find("'for' has a longer name than 512 characters") != std::string::npos);
}

TEST_CASE("a winner whose measurement was disturbed is written, without what disturbed it") {
    std::vector<Trial> winners = sample_winners(3);
    const std::string text = write_bundle(winners);
    winners[1].detail = "the clock fell by 12 %";
    CHECK(write_bundle(winners) == text);
}

TEST_CASE("what could not be read back is not written") {
    const std::vector<std::function<void(Trial&)>> faults{
        [](Trial& t) { t.winner = false; },
        [](Trial& t) { t.status = TrialStatus::crashed; },
        [](Trial& t) { t.key.gpu.name = "GPU \n"; },
        [](Trial& t) { t.key.gpu.name = "GPU \xff"; },
        [](Trial& t) { t.template_hash = "abc"; },
        [](Trial& t) { t.timing.median_us = -1; },
        [](Trial& t) { t.key.gpu.compute_major = 0; },
    };
    for (const auto& fault : faults) {
        std::vector<Trial> winners = sample_winners(2);
        fault(winners[1]);
        CHECK_THROWS(write_bundle(winners));
    }
    std::vector<Trial> twice(2, sample_winner(1));
    twice[1].timing.median_us += 1;
    CHECK_THROWS_AS(write_bundle(twice), BundleError);
}

TEST_CASE("a winner of another template is read: it loads as stale") {
    Trial winner = sample_winner(1);
    winner.template_hash = "ffffffffffffffffffffffffffffffff";
    CHECK(read_bundle(write_bundle({winner}), "file.json") == std::vector<Trial>{winner});
}

TEST_CASE("a refusal names file, row and field") {
    const std::string row = valid_row();
    json bad = json::parse(row);
    bad["samples"] = -1;
    const std::string why = refusal(sealed("[" + row + "," + bad.dump() + "]"));
    CHECK(why.find("file.json: row 2, field 'samples'") != std::string::npos);
    CHECK(why.find("-1") != std::string::npos);
}

TEST_CASE("a misspelt name is answered with the nearest known one") {
    json row = json::parse(valid_row());
    const std::string family = row["family"];
    CHECK(refusal(with_member("family", family.substr(0, family.size() - 1))).find(family) !=
          std::string::npos);
    row["median_u"] = 1;
    CHECK(refusal(sealed("[" + row.dump() + "]")).find("did you mean 'median_us'") != std::string::npos);
}

TEST_CASE("any change to the rows after export is found") {
    const std::string text = write_bundle(sample_winners(3));
    const std::size_t begin = text.find('[');
    const std::size_t end = text.rfind(']');
    std::mt19937 random(3);
    for (int i = 0; i < scaled(300); ++i) {
        std::string changed = text;
        const std::size_t at = begin + random() % (end - begin + 1);
        changed[at] = static_cast<char>(changed[at] ^ (1 << (random() % 7)));
        CHECK(refusal(changed) != "");
    }
    std::string windows = text;
    for (std::size_t at = 0; (at = windows.find('\n', at)) != std::string::npos; at += 2)
        windows.insert(at, "\r");
    CHECK(refusal(windows).find("SHA-256") != std::string::npos);
}

TEST_CASE("a truncated bundle is refused at every length") {
    const std::string text = write_bundle(sample_winners(2));
    for (std::size_t length = 0; length + 1 < text.size(); ++length)
        CHECK(refusal(text.substr(0, length)) != "");
}

TEST_CASE("crafted rows are refused, each with its field") {
    const json big = json::parse("123456789012345678901234567890");
    const std::vector<std::pair<const char*, json>> attacks{
        {"family", "no_such_family"},
        {"family", 7},
        {"family", ""},
        {"family", json::array()},
        {"family", nullptr},
        {"family", "rmsnorm hidden=64"},
        {"static_fields", "hidden=-1"},
        {"static_fields", "hidden=99999999999999999999"},
        {"static_fields", "dtype=bf17"},
        {"static_fields", "; rm -rf /"},
        {"static_fields", "'); DROP TABLE trial; --"},
        {"static_fields", std::string(1000, 'x')},
        {"dynamic_fields", "rows=0"},
        {"dynamic_fields", "rows=1 rows=1"},
        {"dynamic_fields", "rows=01"},
        {"dynamic_fields", "rows=1 "},
        {"dynamic_fields", "rows=1\\nrows=2"},
        {"candidate", "no_such_variant threads=256"},
        {"candidate", "../../etc/passwd"},
        {"candidate", "#include </etc/passwd>"},
        {"candidate", "%s%s%s%n"},
        {"candidate", ""},
        {"candidate", 1.5},
        {"gpu_name", ""},
        {"gpu_name", "GPU\x01"},
        {"gpu_name", "GPU\x7f"},
        {"gpu_name", "\x1b[31mred"},
        {"gpu_name", "GPU \xc3\xa9"},
        {"compute_major", 0},
        {"compute_major", 100},
        {"compute_major", 9.0},
        {"compute_major", "9"},
        {"compute_minor", -1},
        {"sm_count", 0},
        {"sm_count", 18446744073709551615ULL},
        {"sm_count", big},
        {"memory_clock_mhz", -5},
        {"mig_profile", 0},
        {"template_hash", "0123"},
        {"template_hash", "0123456789ABCDEF0123456789ABCDEF"},
        {"template_hash", "0123456789abcdef0123456789abcdeg"},
        {"stage", "finals"},
        {"provenance", "guessed"},
        {"is_default", 0},
        {"is_default", "false"},
        {"median_us", -0.5},
        {"median_us", 1e16},
        {"median_us", "1.5"},
        {"p10_us", nullptr},
        {"p90_us", true},
        {"samples", 1'000'000'001},
        {"samples", 1e3},
        {"registers", 1025},
        {"shared_bytes", -1},
        {"spill_bytes", std::int64_t{1} << 40},
        {"energy_mj", -1e-300},
        {"created_at", -1},
        {"created_at", std::int64_t{1} << 62},
        {"tool_version", json::object()},
        {"driver", std::string("580\0", 4)},
        {"nvrtc", std::string(513, '1')},
        {"winner", true},
        {"status", "ok"},
        {"cubin", "AAAA"},
        {"__proto__", 1},
    };
    for (const auto& [name, value] : attacks) {
        if (json::parse(valid_row()).value(name, json()) == value) continue;
        const std::string why = refusal(with_member(name, value));
        INFO(name << " = " << value.dump(-1, ' ', true, json::error_handler_t::replace));
        CHECK(why.starts_with("file.json: row 1"));
        CHECK(std::ranges::all_of(why, [](char c) { return c >= ' ' && c <= '~'; }));
    }
    CHECK(attacks.size() >= 40);
}

TEST_CASE("every member must be there") {
    const json whole = json::parse(valid_row());
    for (const auto& [name, value] : whole.items()) {
        json row = whole;
        row.erase(name);
        CHECK(refusal(sealed("[" + row.dump() + "]")).find("field '" + name + "': is missing") !=
              std::string::npos);
    }
}

TEST_CASE("crafted documents are refused") {
    const std::string row = valid_row();
    const std::string good = sealed("[" + row + "]");
    REQUIRE(refusal(good) == "");
    const auto replaced = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        text.replace(text.find(from), from.size(), to);
        return text;
    };
    const std::string repeated_name = row.substr(0, row.size() - 1) + ",\"family\":\"x\"}";
    const std::vector<std::string> attacks{
        "",
        " ",
        "null",
        "[]",
        "{}",
        "\xef\xbb\xbf" + good,
        "\n" + good,
        good + good,
        good + "x",
        good + std::string(1, '\0'),
        std::string(1 << 25, ' '),
        "{" + std::string(1 << 20, '['),
        "{\"winners\": " + std::string(1 << 20, '['),
        "{\"winners\": " + std::string(17, '[') + std::string(17, ']') + "}",
        replaced("hone.tuned/3", "hone.tuned/4"),
        replaced("hone.tuned/3", "hone.tuned/3\\u0000"),
        replaced("hone.tuned/3", "\\u001b[31m"),
        replaced("\"hone.tuned/3\"", "1"),
        replaced("\"schema\"", "\"Schema\""),
        replaced("\"schema\": ", "\"note\": 1, \"schema\": "),
        replaced("\"schema\": ", "\"schema\": \"hone.tuned/3\", \"schema\": "),
        replaced("\"sha256\": \"", "\"sha256\": \"0"),
        replaced("\"sha256\"", "\"sha512\""),
        replaced("\"winners\"", "\"losers\""),
        sealed("{}"),
        sealed("[1]"),
        sealed("[null]"),
        sealed("[[]]"),
        sealed("[" + row + "," + row + "]"),
        sealed("[" + row + ",]"),
        sealed("[" + repeated_name + "]"),
        sealed("[" + row + "/* comment */]"),
        sealed("[" + row + "] , \"x\": []"),
        sealed("[{\"median_us\": 1e999}]"),
        sealed("[{\"median_us\": NaN}]"),
        sealed("[{\"gpu_name\": \"\xff\xfe\"}]"),
        sealed("[{\"gpu_name\": \"\\ud800\"}]"),
        sealed("[{\"gpu_name\": \"a\nb\"}]"),
        sealed("[{\"gpu_name\": \"\xc0\x80\"}]"),
    };
    for (std::size_t i = 0; i < attacks.size(); ++i) {
        INFO("attack " << i << ": " << attacks[i].substr(0, 100));
        CHECK(refusal(attacks[i]).starts_with("file.json: "));
    }
    std::string many = "[{}";
    for (int i = 0; i < 100'000; ++i) many += ",{}";
    CHECK(refusal(sealed(many + "]")).find("more than 100000 rows") != std::string::npos);
}

TEST_CASE("import takes all or nothing") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    json bad = json::parse(valid_row());
    bad["samples"] = -1;
    CHECK_THROWS_AS(cache.store(read_bundle(sealed("[" + valid_row() + "," + bad.dump() + "]"), "file.json")),
                    BundleError);
    CHECK(cache.trials().empty());
    CHECK(cache.store(read_bundle(write_bundle(sample_winners(5)), "file.json")) == 5);
    CHECK(write_bundle(cache.winners()) == write_bundle(sample_winners(5)));
}

TEST_CASE("what ships is the exported text to the byte, read by problems as by a checked read of all") {
    for (const PackagedBundle& bundle : packaged_bundles()) {
        std::vector<Trial> winners = read_bundle(text_of(bundle), bundle.name);
        CHECK(races_in(bundle) == winners);
        std::erase_if(winners, [](const Trial& trial) { return !trial.winner; });
        REQUIRE_FALSE(winners.empty());
        CHECK(winners_in(bundle) == winners);
    }
    for (const std::string& text : {write_bundle({}), write_bundle(sample_winners(20)),
                                    write_bundle(sample_winners(2), BundlePurpose{"gpt2", {{"a b=1", 0.5}}}),
                                    std::string("{"), std::string()})
        CHECK(text_of(Packaged("file.json", text).view()) == text);
    CHECK(packaged_winners(write_bundle({})).empty());
    CHECK(packaged_winners(write_bundle(sample_winners(2), BundlePurpose{"gpt2", {{"a b=1", 0.5}}})).size() ==
          2);
    CHECK(lines_of(Packaged("file.json", write_bundle(sample_winners(2))).view(), "rmsnorm", "").empty());
}

TEST_CASE("lines that are no rows are refused at their place, and rows out of order are not packed") {
    CHECK_THROWS_WITH_AS((void)read_packaged_winners(valid_row().substr(0, 40), "file.json"),
                         doctest::Contains("file.json: row 1: is truncated or damaged"), BundleError);
    CHECK_THROWS_WITH_AS((void)read_packaged_winners(valid_row() + ",\n[]", "file.json"),
                         doctest::Contains("file.json: row 2"), BundleError);
    CHECK_THROWS_WITH_AS((void)read_packaged_races(valid_row() + ",\n[]", "file.json"),
                         doctest::Contains("file.json: row 2"), BundleError);
    std::string no_time = valid_row();
    no_time.replace(no_time.find("median_us"), 9, "mediam_us");
    CHECK_THROWS_WITH_AS((void)read_packaged_winners(no_time, "file.json"),
                         doctest::Contains("row 1, field 'median_us': is missing"), BundleError);
    const auto row = [](const std::string& family) {
        return "{\"family\":\"" + family + "\",\"static_fields\":\"a=1\"}\n";
    };
    CHECK(pack_bundle(row("a") + row("a") + row("b")).rows.size() == 2);
    CHECK_THROWS_WITH((void)pack_bundle(row("b") + row("a")), "rows are not in order: a a=1");
    CHECK_THROWS_WITH((void)pack_bundle(row("a") + row("b") + row("a")), "rows are not in order: a a=1");
    CHECK_THROWS_WITH((void)pack_bundle("{\"candidate\":\"\"}\n"),
                      doctest::Contains("does not begin with its family and static fields"));
}

TEST_CASE("what a bundle cannot take is named with its reason, and the rest is taken") {
    const Trial sound = sample_winners(1)[0];
    CHECK_FALSE(why_not_in_bundle(sound));
    CHECK_FALSE(write_bundle({sound}).empty());
    Trial outside = sound;
    outside.candidate = "no_such_variant threads=1";
    const std::optional<std::string> space = why_not_in_bundle(outside);
    REQUIRE(space);
    CHECK(space->starts_with("trial " + identity(outside)));
    Trial future = sound;
    future.created_at = 253'370'764'800'000;  // the year 9999
    CHECK(why_not_in_bundle(future));
}

TEST_CASE("a row whose words stand in another order is refused with the order that it wants") {
    const json row = json::parse(valid_row());
    for (const char* member : {"static_fields", "dynamic_fields", "candidate"}) {
        const std::string own = row.at(member).get<std::string>();
        // A candidate begins with its variant.
        const std::size_t begin = member == std::string_view("candidate") ? own.find(' ') + 1 : 0;
        const std::size_t last = own.rfind(' ') + 1;
        const std::string turned =
            own.substr(0, begin) + own.substr(last) + ' ' + own.substr(begin, last - 1 - begin);
        const std::string refusal =
            fmt::format("file.json: row 1, field '{}': must be written '{}'", member, own);
        CHECK_THROWS_WITH_AS((void)read_bundle(with_member(member, turned), "file.json"), refusal.c_str(),
                             BundleError);
    }
}
