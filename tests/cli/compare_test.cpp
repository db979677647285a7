// hone list --compare, and what is said of kernels that tie: two caches whose every trial is written down.
#include <doctest/doctest.h>

#include "cache/bundle.h"
#include "cache/cache.h"
#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"
#include "tests/cli/program.h"

using namespace hone;
using namespace hone::test;

namespace {

/// A final at so many rows: candidates by their place in the space, the winner first, each with its time.
std::vector<cache::Trial> final_of(int rows, const std::vector<std::pair<std::size_t, double>>& finalists) {
    const Problem problem = *parse_problem("rmsnorm dtype=bf16 hidden=4096 rows=" + std::to_string(rows));
    const DeviceTraits traits = *representative_device({9, 0, true});
    const std::vector<RankedCandidate> space = ranked_space(problem, traits);
    std::vector<cache::Trial> trials;
    for (const auto& [place, us] : finalists) {
        cache::Trial trial;
        trial.key = {{traits.name, 9, 0, traits.sm_count, 2619, ""},
                     "rmsnorm",
                     static_text(problem),
                     dynamic_text(problem)};
        trial.toolchain = {"580.1", "13.0"};
        trial.candidate = to_string(space.at(place).candidate);
        trial.template_hash = template_hash(*space.at(place).candidate.variant);
        trial.stage = cache::Stage::final_round;
        trial.winner = trials.empty();
        trial.timing = {us, us, us, 30};
        trial.created_at = 1'790'000'000'000 + rows;
        trial.tool_version = "0.1.0";
        trials.push_back(trial);
    }
    return trials;
}

using Finals = std::vector<std::vector<cache::Trial>>;

void store(const Sandbox& sandbox, const Finals& finals) {
    std::filesystem::create_directory(sandbox.path("cache"));
    std::filesystem::permissions(sandbox.path("cache"), std::filesystem::perms::owner_all);
    cache::Cache cache = cache::Cache::open(sandbox.path("cache/cache.db"));
    for (const std::vector<cache::Trial>& trials : finals) cache.store(trials);
}

/// Same; a tie by what is known here; a tie by what is known there; different; here alone.
const Finals& ours() {
    static const Finals finals{final_of(1, {{0, 4.0}, {1, 4.01}}), final_of(2, {{0, 4.0}, {1, 4.016}}),
                               final_of(4, {{0, 4.0}}), final_of(8, {{0, 4.0}, {2, 4.0}}),
                               final_of(16, {{0, 4.0}})};
    return finals;
}
const Finals& theirs() {
    static const Finals finals{final_of(1, {{0, 5.0}}), final_of(2, {{1, 4.0}}),
                               final_of(4, {{1, 4.0}, {0, 3.97}}), final_of(8, {{1, 4.0}, {0, 4.08}})};
    return finals;
}

}  // namespace

TEST_CASE("list, show and explain say with whom a winner ties") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    store(sandbox, ours());
    const nlohmann::json winners = sandbox.run({"list", "--json"}).json()["data"]["winners"];
    REQUIRE(winners.size() == 5);
    for (const nlohmann::json& winner : winners) {
        const bool has_one = winner["dynamic"] != "rows=4" && winner["dynamic"] != "rows=16";
        CHECK(winner["tied_with"].size() == (has_one ? 1 : 0));
    }
    const Ended listed = sandbox.run({"list"});
    CHECK(listed.out.find("tied with") != std::string::npos);
    CHECK(listed.out.find("1 other within 0.3 %") != std::string::npos);
    CHECK(listed.out.find("1 other within 0.4 %") != std::string::npos);
    CHECK(sandbox.run({"list", "rows=2"}).out.find("tied with 1 other within 0.4 %") != std::string::npos);
    CHECK(sandbox.run({"list", "rows=2", "--csv"}).out.find(",1,0.004") != std::string::npos);
    CHECK(sandbox.run({"list", "rows=4"}).out.find("tied") == std::string::npos);

    const Sandbox::Words problem{"rmsnorm", "dtype=bf16", "hidden=4096", "rows=2"};
    Sandbox::Words words{"show"};
    words.insert(words.end(), problem.begin(), problem.end());
    const Ended shown = sandbox.run(words);
    CHECK(shown.out.find("the winner is tied with 1 other within 0.4 %") != std::string::npos);
    CHECK(shown.out.find("  tied") != std::string::npos);
    words.emplace_back("--json");
    const nlohmann::json trials = sandbox.run(words).json()["data"]["trials"];
    REQUIRE(trials.size() == 2);
    CHECK(trials[0]["tied"] != trials[1]["tied"]);
    words.front() = "explain";
    const nlohmann::json explained = sandbox.run(words).json()["data"];
    CHECK(explained["tied_with"] == nlohmann::json{ours()[1][1].candidate});
    CHECK(explained["tied_within"].get<double>() == doctest::Approx(0.004));
    words.pop_back();
    CHECK(sandbox.run(words).out.find("tied with:  1 other within 0.4 %\n              " +
                                      ours()[1][1].candidate) != std::string::npos);
}

TEST_CASE("two caches are compared: the same winners, ties that either knows, and others") {
    Sandbox sandbox;
    store(sandbox, ours());
    const Sandbox other;
    store(other, theirs());
    const auto check = [&](const std::string& file) {
        const nlohmann::json data = sandbox.run({"list", "--compare", file, "--json"}).json()["data"];
        CHECK(data["compared_with"] == file);
        CHECK(data["same"] == 1);
        CHECK(data["tied"] == 2);
        CHECK(data["different"] == 1);
        CHECK(data["here_alone"] == 1);
        CHECK(data["there_alone"] == 0);
        std::map<std::string, std::string> verdicts;
        for (const nlohmann::json& problem : data["problems"])
            verdicts[problem["here"]["dynamic"]] = problem["verdict"];
        CHECK(verdicts ==
              std::map<std::string, std::string>{
                  {"rows=1", "same"}, {"rows=2", "tied"}, {"rows=4", "tied"}, {"rows=8", "different"}});
    };
    check(other.path("cache/cache.db").string());
    REQUIRE(other.run({"export", "-o", "theirs.json"}).code == 0);
    check(other.path("theirs.json").string());

    const Ended text = sandbox.run({"list", "--compare", other.path("theirs.json").string()});
    CHECK(text.out.find(": 1 the same, 2 tied, 1 different; 1 here alone, 0 there alone\n") !=
          std::string::npos);
    CHECK(text.out.find("\ndifferent: rmsnorm") < text.out.find("\ntied: rmsnorm"));
    const nlohmann::json filtered =
        sandbox.run({"list", "rows=2", "--compare", other.path("theirs.json").string(), "--json"})
            .json()["data"];
    CHECK(filtered["tied"] == 1);
    CHECK(filtered["there_alone"] == 0);
}

TEST_CASE("a comparison with what is no cache and no exported file says so") {
    Sandbox sandbox;
    store(sandbox, ours());
    sandbox.write("text.json", "hello");
    CHECK(sandbox.run({"list", "--compare", "text.json"}).code == 6);
    CHECK(sandbox.run({"list", "--compare", "text.json"}).err.find("text.json") != std::string::npos);
    CHECK(sandbox.run({"list", "--compare", "nowhere.json"}).err.find("nowhere.json") != std::string::npos);
    CHECK(sandbox.run({"list", "--compare", "text.json", "--csv"}).code == 2);
}

TEST_CASE("an export of few images has kernels that tie in the place of winners, and says so") {
    const auto image = [](const std::vector<cache::Trial>& final, std::size_t place) {
        const Candidate candidate = *parse_candidate(*find_family("rmsnorm"), final.at(place).candidate);
        return to_string(image_candidate(candidate, {9, 0, true}));
    };
    std::size_t other = 1;  // the nearest kernel of another image
    while (image(final_of(1, {{0, 4.0}, {other, 4.0}}), 0) == image(final_of(1, {{0, 4.0}, {other, 4.0}}), 1))
        ++other;
    Sandbox sandbox;
    store(sandbox, {final_of(1, {{0, 4.0}, {other, 4.01}}), final_of(2, {{other, 4.0}, {0, 4.2}})});
    const auto winners_of = [&](const Sandbox::Words& words, const std::string& note) {
        const Ended ended = sandbox.run(words);
        CAPTURE(ended.err);
        REQUIRE(ended.code == 0);
        CHECK(ended.err == note);
        return nlohmann::json::parse(ended.out)["winners"];
    };
    const std::string shared = "1 of 2 winners gave their place to kernels that tie: 1 images, before 2\n";
    const nlohmann::json plain = winners_of({"export"}, "");
    const nlohmann::json few = winners_of({"export", "--few-images"}, shared);
    REQUIRE(plain.size() == 2);
    REQUIRE(few.size() == 2);
    CHECK(plain[0]["candidate"] != plain[1]["candidate"]);
    CHECK(few[0]["candidate"] == plain[1]["candidate"]);
    CHECK(few[1] == plain[1]);
    CHECK(few[0]["contenders"][0]["candidate"] == plain[0]["candidate"]);

    REQUIRE(sandbox.run({"export", "--few-images", "-o", "few.json"}).code == 0);
    const std::string file = sandbox.path("few.json").string();
    CHECK(Sandbox().run({"import", file}).code == 0);
    const Ended compared = sandbox.run({"list", "--compare", file, "--json"});
    CHECK(compared.code == 0);
    CHECK(compared.json()["data"]["different"] == 0);
    CHECK(winners_of({"export"}, "") == plain);
}
