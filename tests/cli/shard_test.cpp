// hone tune --shard: parts of one workload in caches of their own, brought together by hone merge.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <map>
#include <thread>

#include "tests/cli/program.h"

using namespace hone::test;

namespace {

Sandbox::Words operator+(Sandbox::Words words, const Sandbox::Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

/// The winner's candidate of each problem that a cache knows.
std::map<std::string, std::string> winners_of(const Sandbox& sandbox) {
    std::map<std::string, std::string> winners;
    const nlohmann::json list = sandbox.run({"list", "--json"}).json();
    for (const nlohmann::json& trial : list["data"]["winners"]) {
        const std::string problem = trial["family"].get<std::string>() + ' ' +
                                    trial["static"].get<std::string>() + ' ' +
                                    trial["dynamic"].get<std::string>();
        CHECK(winners.emplace(problem, trial["candidate"]).second);
    }
    return winners;
}

/// The recorded sweep of the tree, small enough for a test: norms at a few sizes, every candidate.
const Sandbox::Words replay{"tune",     "llama-3-8b",
                            "--op",     "rmsnorm",
                            "--tokens", "1,2,4,8,16,32",
                            "--effort", "exhaustive",
                            "--replay", HONE_SOURCE_DIR "/configs/recorded/h200-sxm.jsonl"};
const Sandbox::Words norms{"tune",     "--op",          "rmsnorm",  "--fields", "dtype=bf16 hidden=4096",
                           "--tokens", "1,16,256,4096", "--effort", "quick"};

}  // namespace

TEST_CASE("eight shards merged are the winners of one run") {
    Sandbox alone;
    REQUIRE(alone.run(replay).code == 0);
    Sandbox fleet;
    std::size_t problems = 0;
    for (int number = 1; number <= 8; ++number) {
        const std::string shard = std::to_string(number) + "/8";
        Sandbox node;
        const Ended ended = node.run(replay + Sandbox::Words{"--shard", shard, "--json"});
        INFO(ended.err);
        REQUIRE(ended.code == 0);
        const nlohmann::json data = ended.json()["data"];
        CHECK(data["shard"] == nlohmann::json({{"number", number}, {"count", 8}, {"of_problems", 12}}));
        for (const nlohmann::json& run : data["runs"]) problems += run["problems"].size();
        REQUIRE(fleet.run({"merge", node.path("cache/cache.db").string()}).code == 0);
    }
    CHECK(problems == 12);
    CHECK(winners_of(fleet).size() == 12);
    CHECK(winners_of(fleet) == winners_of(alone));
    CHECK(fleet.run(replay + Sandbox::Words{"--json"}).json()["data"]["runs"][0]["measurements"] == 0);
}

TEST_CASE("the summary says which shard, and a shard of nothing is no error") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const Ended first = sandbox.run(norms + Sandbox::Words{"--shard", "1/2"});
    INFO(first.err);
    REQUIRE(first.code == 0);
    CHECK(first.out.starts_with("rmsnorm, shard 1 of 2: 2 of 4 problems\n"));
    CHECK(first.out.find("next: hone explain rmsnorm") != std::string::npos);
    CHECK(first.out.find("hone merge " + sandbox.path("cache/cache.db").string()) != std::string::npos);
    const Ended dry = sandbox.run(norms + Sandbox::Words{"--shard", "2/2", "--dry-run"});
    CHECK(dry.out.starts_with("rmsnorm, shard 2 of 2 on "));
    CHECK(dry.out.find(": 2 of 4 problems; nothing is tuned") != std::string::npos);
    CHECK(dry.out.find("rows=16 ") == std::string::npos);
    CHECK(dry.out.find("rows=256 ") != std::string::npos);

    const Ended none = sandbox.run(norms + Sandbox::Words{"--shard", "6/6"});
    CHECK(none.code == 0);
    CHECK(none.out.starts_with("rmsnorm, shard 6 of 6: 0 of 4 problems\n"));
    CHECK(none.err.empty());
}

TEST_CASE("a shard goes with --retune, --budget and several GPUs") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("device:count=2");
    const Sandbox::Words second = norms + Sandbox::Words{"--shard", "2/2", "--json"};
    const nlohmann::json both = sandbox.run(second + Sandbox::Words{"--gpu", "all"}).json()["data"]["runs"];
    REQUIRE(both.size() == 2);
    CHECK(both[0]["problems"].size() + both[1]["problems"].size() == 2);
    CHECK(sandbox.run(second).json()["data"]["runs"][0]["measurements"] == 0);
    const nlohmann::json anew = sandbox.run(second + Sandbox::Words{"--retune"}).json()["data"]["runs"][0];
    CHECK(anew["problems"].size() == 2);
    CHECK(anew["measurements"].get<int>() > 0);
    CHECK(sandbox.run(second + Sandbox::Words{"--retune", "--budget", "1ms"}).code == 7);
    CHECK(winners_of(sandbox).size() == 2);
}

TEST_CASE("a shard whose machine is lost in the middle goes on with what is missing") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("launch:sleep_us=300");
    const Sandbox::Words shard{"tune",
                               "--op",
                               "rmsnorm",
                               "--fields",
                               "dtype=bf16 hidden=4096",
                               "--tokens",
                               "1,2,4,8,16,32,64,128",
                               "--effort",
                               "quick",
                               "--shard",
                               "1/2",
                               "--json"};
    const Ended lost = sandbox.run(shard, [&](pid_t pid) {
        while (winners_of(sandbox).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        kill(pid, SIGKILL);
    });
    CHECK(lost.code == 128 + SIGKILL);
    sandbox.use_fake_gpus();
    const nlohmann::json run = sandbox.run(shard).json()["data"]["runs"][0];
    std::size_t reused = 0;
    for (const nlohmann::json& problem : run["problems"]) reused += problem["reused"] == true ? 1 : 0;
    CHECK(run["problems"].size() == 4);
    CHECK(reused >= 1);
    CHECK(reused < 4);
    CHECK(winners_of(sandbox).size() == 4);
}
