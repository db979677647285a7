// hone tune --gpu all: GPUs of one kind that share the problems, one that is slow, one that is lost.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <map>
#include <set>

#include "tests/cli/program.h"

using namespace hone::test;

namespace {

/// Ten problems: one static part.
Sandbox::Words norms(const Sandbox::Words& more) {
    Sandbox::Words words{"tune",
                         "--op",
                         "rmsnorm",
                         "--fields",
                         "dtype=bf16 hidden=4096",
                         "--tokens",
                         "1,2,4,8,16,32,64,128,256,512",
                         "--effort",
                         "quick"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

std::map<std::string, std::string> winners_of(const nlohmann::json& runs) {
    std::map<std::string, std::string> winners;
    for (const nlohmann::json& run : runs) {
        for (const nlohmann::json& problem : run["problems"]) {
            REQUIRE(problem["winner"].is_object());
            CHECK(winners.emplace(problem["problem"], problem["winner"]["candidate"]).second);
        }
    }
    return winners;
}

/// All kernels of seven problems, so that no answer hangs on what was raced before.
const Sandbox::Words look_ups{"tune",
                              "--op",
                              "embedding",
                              "--fields",
                              "dtype=bf16 hidden=4096 vocabulary=32000",
                              "--tokens",
                              "1,2,4,8,16,64,256",
                              "--effort",
                              "exhaustive",
                              "--json",
                              "--gpu",
                              "all"};

nlohmann::json runs_of(Sandbox& sandbox, const Sandbox::Words& words) {
    const Ended ended = sandbox.run(words);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return ended.json()["data"]["runs"];
}

}  // namespace

TEST_CASE("two and four GPUs answer what one answers, and again measure nothing") {
    Sandbox alone;
    alone.use_fake_gpus();
    const auto winners = winners_of(runs_of(alone, look_ups));
    CHECK(winners.size() == 7);
    for (const char* count : {"2", "4"}) {
        CAPTURE(std::string(count));
        Sandbox sandbox;
        sandbox.use_fake_gpus(std::string("device:count=") + count);
        const nlohmann::json runs = runs_of(sandbox, look_ups);
        CHECK(std::to_string(runs.size()) == count);
        CHECK(winners_of(runs) == winners);
        const nlohmann::json again = runs_of(sandbox, look_ups);
        CHECK(winners_of(again) == winners);
        for (const nlohmann::json& run : again) CHECK(run["measurements"] == 0);
    }
}

TEST_CASE("GPUs are found where NVML lists them, where it does not, and where they are of several kinds") {
    for (const char* script :
         {"device:count=2", "device:count=2; nvml:none", "device:count=2; nvml:refuse=nvmlDeviceGetUUID",
          "device:kind=h100+a10", "device:kind=h100+mig"}) {
        CAPTURE(std::string(script));
        Sandbox sandbox;
        sandbox.use_fake_gpus(script);
        const nlohmann::json runs = runs_of(sandbox, norms({"--gpu", "all", "--json"}));
        REQUIRE(runs.size() == 2);
        CHECK(runs[0]["source"] == "measured on GPU 0");
        CHECK(runs[1]["source"] == "measured on GPU 1");
        const bool is_one_kind = std::string(script).find("count") != std::string::npos;
        CHECK((runs[0]["gpu"] == runs[1]["gpu"]) == is_one_kind);
        CHECK(runs[0]["problems"].size() + runs[1]["problems"].size() == (is_one_kind ? 10 : 20));
    }
}

TEST_CASE("GPUs that an empty CUDA_VISIBLE_DEVICES hides are not measured on") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("device:count=2");
    sandbox.set("CUDA_VISIBLE_DEVICES", "");
    const Ended ended = sandbox.run(norms({"--gpu", "all", "--json"}));
    CHECK(ended.code == 3);
    CHECK(ended.json()["error"]["code"] == "no_gpu");
}

TEST_CASE("of several GPUs of one kind the driver is opened for one alone before they measure") {
    const auto seconds_of = [](const std::string& script) {
        Sandbox sandbox;
        sandbox.use_fake_gpus("device:count=2");
        const Sandbox::Words words = norms({"--gpu", "all", "--json"});
        CHECK(winners_of(runs_of(sandbox, words)).size() == 10);
        sandbox.use_fake_gpus(script);
        const auto start = std::chrono::steady_clock::now();
        CHECK(winners_of(runs_of(sandbox, words)).size() == 10);  // nothing to do
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    // What opening takes for each visible GPU.
    CHECK(seconds_of("device:count=2; driver:init_us_a_gpu=1500000") >= 1.5);
    CHECK(seconds_of("device:count=2; driver:init_us_a_gpu=1500000") < 3);
    CHECK(seconds_of("device:count=2; driver:init_us_a_gpu=1500000; nvml:none") >= 3);
}

TEST_CASE("a GPU takes problems from one that is slower, and no image is made twice") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("device:count=2; launch:match=gpu=0:sleep_us=2000; compile:log=" +
                          sandbox.path("compiles").string());
    const nlohmann::json runs = runs_of(sandbox, norms({"--gpu", "all", "--json"}));
    REQUIRE(runs.size() == 2);
    CHECK(winners_of(runs).size() == 10);
    CHECK(runs[0]["problems"].size() < 5);  // its share
    CHECK(runs[1]["problems"].size() > 5);
    std::multiset<std::string> sources;
    for (const std::string& line : lines_of(sandbox.read("compiles")))
        sources.insert(line.substr(line.find(' ')));  // behind the process
    CHECK(sources.size() == runs[0]["compiles"].get<std::size_t>() + runs[1]["compiles"].get<std::size_t>());
    CHECK(std::set<std::string>(sources.begin(), sources.end()).size() == sources.size());
}

TEST_CASE("a GPU that is lost leaves its problems to the other, which is said") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("device:count=2; launch:match=gpu=1:signal=9");
    const Ended ended = sandbox.run(norms({"--gpu", "all", "--json"}));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    CHECK(ended.err.find("GPU 1 was given up, and others did the rest of its problems: ") !=
          std::string::npos);
    const nlohmann::json runs = ended.json()["data"]["runs"];
    REQUIRE(runs.size() == 2);
    CHECK(winners_of(runs).size() == 10);
    CHECK(runs[0]["problems"].size() == 10);
    CHECK(runs[0]["lost"] == "");
    CHECK(runs[1]["problems"].empty());
    CHECK(runs[1]["lost"].get<std::string>().find("signal 9") != std::string::npos);

    sandbox.use_fake_gpus("device:count=2; launch:signal=9");
    const Ended both = sandbox.run(norms({"--gpu", "all", "--retune"}));
    CHECK(both.code != 0);
    CHECK(both.err.find("signal 9") != std::string::npos);
}

TEST_CASE("a kind of GPU that fails ends no run of another kind, and the error names it") {
    for (const char* failing : {"0", "1"}) {
        CAPTURE(std::string(failing));
        Sandbox sandbox;
        sandbox.use_fake_gpus(fmt::format("device:kind=h100+a10; launch:match=gpu={}:signal=9", failing));
        const Ended ended = sandbox.run(norms({"--gpu", "all", "--json"}));
        INFO(ended.err);
        CHECK(ended.code == 1);
        const std::string message = ended.json()["error"]["message"];
        CHECK(message.starts_with(fmt::format("GPU {} (NVIDIA ", failing)));
        CHECK(message.find("signal 9") != std::string::npos);
        CHECK(message.ends_with("; what the others measured is saved"));
        const nlohmann::json runs = ended.json()["data"]["runs"];
        REQUIRE(runs.size() == 2);
        for (const nlohmann::json& run : runs) {
            const bool failed = run["source"] == fmt::format("measured on GPU {}", failing);
            CHECK(run["problems"].size() == (failed ? 0 : 10));
            CHECK(run["lost"].get<std::string>().empty() != failed);
        }
        sandbox.use_fake_gpus("device:kind=h100+a10");
        for (const nlohmann::json& run : runs_of(sandbox, norms({"--gpu", "all", "--json"}))) {
            const bool failed = run["source"] == fmt::format("measured on GPU {}", failing);
            CHECK((run["measurements"] == 0) != failed);
        }
    }
    Sandbox sandbox;
    sandbox.use_fake_gpus("device:kind=h100+a10; launch:signal=9");
    const Ended none = sandbox.run(norms({"--gpu", "all"}));
    CHECK(none.code == 1);
    CHECK(none.err.find("signal 9") != std::string::npos);
    CHECK(none.out.empty());
}

TEST_CASE("few kernels are chosen for all sizes, whoever raced them") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("device:count=2");
    const nlohmann::json runs = runs_of(sandbox, norms({"--gpu", "all", "--kernels", "2", "--json"}));
    std::set<std::string> kernels;
    for (const auto& [problem, winner] : winners_of(runs)) kernels.insert(winner);
    CHECK(kernels.size() <= 2);
    REQUIRE(runs[0]["covers"].size() + runs[1]["covers"].size() == 1);
    const nlohmann::json& covers = runs[0]["covers"].empty() ? runs[1]["covers"] : runs[0]["covers"];
    CHECK(covers[0]["sizes"] == 10);
}

TEST_CASE("a budget that ends stops all GPUs, and the next run goes on") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("device:count=2; launch:sleep_us=500");
    CHECK(sandbox.run(norms({"--gpu", "all", "--budget", "600ms"})).code == 7);
    sandbox.use_fake_gpus("device:count=2");
    CHECK(winners_of(runs_of(sandbox, norms({"--gpu", "all", "--json"}))).size() == 10);
}
