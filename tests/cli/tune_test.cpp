// hone tune from the outside: fake GPUs, no GPU, no compiler, budgets, Ctrl-C.
#include <doctest/doctest.h>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "tests/cli/program.h"

using namespace hone::test;

namespace {

/// Small enough for a test: one static problem, two sizes, sixteen candidates.
Sandbox::Words small_tune(Sandbox::Words more = {}) {
    Sandbox::Words words{"tune",     "--op", "rmsnorm",  "--fields", "dtype=bf16 hidden=4096",
                         "--tokens", "1,16", "--effort", "quick"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

}  // namespace

TEST_CASE("a tuned operator is listed, shown, explained, exported, imported and merged") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const Ended tuned = sandbox.run(small_tune());
    INFO(tuned.err);
    REQUIRE(tuned.code == 0);
    CHECK(tuned.out.find("measured") != std::string::npos);
    CHECK(tuned.out.find("vs default") != std::string::npos);
    CHECK(tuned.out.find("cache: ") != std::string::npos);
    CHECK(tuned.out.find("next: hone explain rmsnorm") != std::string::npos);

    const nlohmann::json again = sandbox.run(small_tune({"--json"})).json();
    CHECK(again["data"]["runs"][0]["compiles"] == 0);
    CHECK(again["data"]["runs"][0]["measurements"] == 0);
    CHECK(again["data"]["runs"][0]["problems"][0]["reused"] == true);

    const nlohmann::json list = sandbox.run({"list", "rmsnorm", "--json"}).json();
    CHECK(list["data"]["winners"].size() == 2);
    CHECK(list["data"]["winners"][0]["trust"] == "exact");
    const nlohmann::json shown =
        sandbox.run({"show", "rmsnorm", "dtype=bf16", "hidden=4096", "rows=16", "--json"}).json();
    CHECK(shown["data"]["trials"].size() > 2);

    const nlohmann::json explained =
        sandbox.run({"explain", "rmsnorm", "dtype=bf16", "hidden=4096", "rows=16", "--json"}).json();
    CHECK(explained["data"]["origin"] == "exact");
    CHECK(explained["data"]["image"]["registers"].get<int>() > 0);
    const Ended other = sandbox.run({"explain", "rmsnorm", "dtype=fp16", "hidden=4096", "rows=16"});
    CHECK(other.out.find("hone tune --op rmsnorm") != std::string::npos);

    REQUIRE(sandbox.run({"export", "-o", "winners.json"}).code == 0);
    CHECK(sandbox.run({"export"}).out == sandbox.read("winners.json"));
    CHECK(sandbox.run({"export", "-o", "-"}).out == sandbox.read("winners.json"));
    Sandbox elsewhere;
    elsewhere.write("winners.json", sandbox.read("winners.json"));
    CHECK(elsewhere.run({"import", "winners.json", "--dry-run", "--json"}).json()["data"]["new"] == 0);
    CHECK(elsewhere.run({"import", "winners.json", "--json"}).json()["data"]["new"] == 2);
    CHECK(elsewhere.run({"import", "winners.json", "--json"}).json()["data"]["new"] == 0);
    CHECK(elsewhere.run({"export"}).out == sandbox.read("winners.json"));
    CHECK(elsewhere.run({"merge", sandbox.path("cache/cache.db").string(), "--json"})
              .json()["data"]["new"]
              .get<int>() > 2);
}

TEST_CASE("bench measures winner, default and runner-up") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    REQUIRE(sandbox.run(small_tune()).code == 0);
    const Ended bench = sandbox.run({"bench", "rmsnorm", "dtype=bf16", "hidden=4096", "rows=16", "--json"});
    INFO(bench.err);
    CHECK(bench.code == 0);
    const nlohmann::json problem = bench.json()["data"]["problems"][0];
    CHECK(problem["floor_us"].get<double>() > 0);
    CHECK(problem["rows"].size() >= 1);
    CHECK(problem["rows"][0]["median_us"].get<double>() > 0);
}

TEST_CASE("bench --chain says of a model's step which part takes how long") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const Sandbox::Words words{"bench",    "--chain",  HONE_SOURCE_DIR "/examples/tiny-llama/config.json",
                               "--tokens", "1,2",      "--kv",
                               "40",       "--rounds", "2"};
    const Ended text = sandbox.run(words);
    INFO(text.err);
    CHECK(text.code == 0);
    for (const char* expected : {"40 keys a sequence", "2 sequences", "norm of network", "launches"})
        CHECK(text.out.find(expected) != std::string::npos);
    Sandbox::Words again = words;
    again.emplace_back("--json");
    const nlohmann::json steps = sandbox.run(again).json()["data"]["steps"];
    REQUIRE(steps.size() == 2);
    CHECK(steps[1]["sequences"] == 2);
    CHECK(steps[0]["step_us"].get<double>() > steps[0]["layer_us"].get<double>());
    CHECK(steps[0]["parts"].size() == 10);
    CHECK(sandbox.run({"bench", "--chain", "llama-3-8b", "--kv", "100000"}).code != 0);
}

TEST_CASE(
    "tune --chain chooses kernels in a model's step, and what it chose is told, exported and not chosen "
    "again") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const Sandbox::Words words{
        "tune", HONE_SOURCE_DIR "/examples/tiny-llama/config.json", "--chain", "--tokens", "1,2", "--kv",
        "40"};
    const auto json_of = [&](Sandbox::Words asked) {
        asked.emplace_back("--json");
        const Ended ended = sandbox.run(asked);
        INFO(ended.err);
        REQUIRE(ended.code == 0);
        return ended.json()["data"];
    };
    const nlohmann::json steps = json_of(words)["steps"];
    REQUIRE(steps.size() == 4);  // of both numbers with launches for norms, and with shared ones
    for (const nlohmann::json& step : steps) {
        CHECK(step["complete"] == true);
        CHECK(step["reused"] == false);
        CHECK(step["after_us"].get<double>() > 0);
        CHECK(step["kernels"].size() == (step["norms"] == "shared" ? 6 : 7));
    }
    const nlohmann::json head = steps[0]["kernels"][2];
    CHECK(head["part"] == "head");
    Sandbox::Words explain{"explain"};
    std::istringstream fields(head["problem"].get<std::string>());
    for (std::string word; fields >> word;) explain.push_back(word);
    const nlohmann::json explained = json_of(explain);
    CHECK(explained["chain"] == "tiny-llama tokens=1 kv=40");
    CHECK(explained["candidate"] == head["candidate"]);
    CHECK(sandbox.run(explain).out.find("chosen in:") != std::string::npos);
    CHECK(sandbox.run({"list", "--csv"}).out.find("tiny-llama tokens=2 kv=40") != std::string::npos);

    for (const nlohmann::json& step : json_of(words)["steps"]) CHECK(step["reused"] == true);
    Sandbox::Words plain{"tune",     "--op", "linear",  "--fields", "dtype=bf16 in=256 out=1024",
                         "--tokens", "1",    "--retune"};
    CHECK(sandbox.run(plain).code == 0);
    CHECK(json_of(explain)["chain"] == "tiny-llama tokens=1 kv=40");  // still

    REQUIRE(sandbox.run({"export", "-o", "winners.json"}).code == 0);
    Sandbox elsewhere;
    elsewhere.use_fake_gpus();
    elsewhere.write("winners.json", sandbox.read("winners.json"));
    REQUIRE(elsewhere.run({"import", "winners.json"}).code == 0);
    CHECK(elsewhere.run(explain).out.find("chosen in:") != std::string::npos);
}

TEST_CASE("tune --chain shares a step's norms where that is shorter, and who runs the model later follows") {
    Sandbox sandbox;
    const std::string model = HONE_SOURCE_DIR "/examples/tiny-llama/config.json";
    const Sandbox::Words race{"tune", model, "--chain", "--tokens", "2", "--kv", "40"};
    const auto steps_of = [&](const Sandbox::Words& words, const std::string& option) {
        Sandbox::Words asked = words;
        asked.push_back(option);
        asked.emplace_back("--json");
        const Ended ended = sandbox.run(asked);
        INFO(ended.err);
        REQUIRE(ended.code == 0);
        return ended.json()["data"]["steps"];
    };
    const auto norms_run = [&] {
        const Ended bench = sandbox.run({"bench", "--chain", model, "--tokens", "2", "--kv", "40"});
        INFO(bench.err);
        REQUIRE(bench.code == 0);
        return bench.out.find("norm of network") != std::string::npos;
    };
    const std::string slow_norms = "launch:match=rmsnorm:slow=20";
    for (const bool shares : {true, false, true}) {
        CAPTURE(shares);
        sandbox.use_fake_gpus(shares ? slow_norms : "");
        const nlohmann::json raced = steps_of(race, "--retune");
        REQUIRE(raced.size() == 2);
        CHECK(raced[0]["norms"] == "launched");
        CHECK_FALSE(raced[0].contains("ratio"));
        CHECK(raced[1]["norms"] == "shared");
        CHECK((raced[1]["ratio"].get<double>() < 1) == shares);
        const nlohmann::json known = steps_of(race, "--effort=standard");
        for (const nlohmann::json* steps : {&raced, &known}) {
            CHECK((*steps)[0]["kept"] == !shares);
            CHECK((*steps)[1]["kept"] == shares);
        }
        CHECK(known[1]["reused"] == true);
        CHECK(norms_run() == !shares);
    }
    const Ended text = sandbox.run({"tune", model, "--chain", "--tokens", "2", "--kv", "40", "--retune"});
    for (const char* expected : {"2 sequences, products share norms", "  kept: ", "% shorter than without"})
        CHECK(text.out.find(expected) != std::string::npos);
    const std::string list = sandbox.run({"list", "--csv"}).out;
    CHECK(list.find("tiny-llama tokens=2 kv=40 kept=no") != std::string::npos);
    Sandbox::Words explain{"explain"};
    std::istringstream fields("linear dtype=bf16 residual=no in=256 out=512 tokens=2");
    for (std::string word; fields >> word;) explain.push_back(word);
    CHECK(sandbox.run(explain).out.find("computed in another way that step is shorter") != std::string::npos);
}

TEST_CASE("tune --chain races a model's step once where its products cannot share norms") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const Ended ended = sandbox.run({"tune", "gpt2", "--chain", "--tokens", "1", "--kv", "40", "--json"});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    const nlohmann::json steps = ended.json()["data"]["steps"];
    REQUIRE(steps.size() == 1);
    CHECK(steps[0]["norms"] == "launched");
    CHECK(steps[0]["kept"] == true);
}

TEST_CASE("bench --energy says what a call takes, of a quantized product beside the dense one") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("nvml:power_mw=400000");
    const auto bench = [&](Sandbox::Words words) {
        words.insert(words.begin(), "bench");
        words.insert(words.end(), {"--rounds", "1", "--energy", "--seconds", "0.2"});
        return sandbox.run(words);
    };
    const Sandbox::Words norm{"rmsnorm", "dtype=bf16", "hidden=4096", "rows=16"};
    REQUIRE(sandbox.run(small_tune()).code == 0);
    const Ended text = bench(norm);
    INFO(text.err);
    REQUIRE(text.code == 0);
    CHECK(text.out.find("mJ a call  calls a joule") != std::string::npos);
    CHECK(text.out.find("counter over 0.2 s") != std::string::npos);

    const Ended ended = bench({"quantized_linear", "dtype=bf16", "format=w4a16", "group=64",
                               "activation=silu", "gated=yes", "in=256", "out=128", "tokens=3", "--json"});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    const nlohmann::json rows = ended.json()["data"]["problems"][0]["energy"];
    REQUIRE(rows.size() == 2);
    CHECK(rows[0]["which"] == "default");
    CHECK(rows[1]["which"] == "dense default");
    CHECK(rows[1]["problem"] ==
          "linear dtype=bf16 norm=no activation=silu gated=yes bias=no residual=no in=256 out=128 tokens=3");
    for (const nlohmann::json& row : rows) {
        const auto energy_mj = row["energy_mj"].get<double>();
        CHECK(row["status"] == "ok");
        CHECK(row["source"] == "counter");
        CHECK(row["power_w"].get<double>() == doctest::Approx(400).epsilon(0.1));
        CHECK(energy_mj == doctest::Approx(row["power_w"].get<double>() * row["us"].get<double>() / 1e3));
        CHECK(row["calls_per_joule"].get<double>() == doctest::Approx(1e3 / energy_mj));
    }

    const std::string no_counter = "nvml:refuse=nvmlDeviceGetTotalEnergyConsumption";
    sandbox.use_fake_gpus(no_counter);
    CHECK(bench(norm).out.find("power over 0.2 s") != std::string::npos);
    sandbox.use_fake_gpus(no_counter + ";nvml:refuse=nvmlDeviceGetPowerUsage");
    const Ended refused = bench(norm);
    CHECK(refused.code == 4);
    CHECK(refused.err.find("gives neither nvmlDeviceGetTotalEnergyConsumption nor") != std::string::npos);
    sandbox.use_fake_gpus("nvml:none");
    CHECK(bench(norm).err.find("NVML is missing or does not know it") != std::string::npos);
}

TEST_CASE("two GPUs of one kind share the problems") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("device:count=2");
    const Ended ended = sandbox.run({"tune", "llama-3-8b", "--op", "linear", "--tokens", "16", "--effort",
                                     "quick", "--gpu", "all", "--json"});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    const nlohmann::json runs = ended.json()["data"]["runs"];
    REQUIRE(runs.size() == 2);
    CHECK(runs[0]["problems"].size() + runs[1]["problems"].size() == 5);
    CHECK(sandbox.run(small_tune({"--gpu", "2"})).code == 3);
    CHECK(sandbox.run(small_tune({"--gpu", "one"})).code == 2);
}

TEST_CASE("GPUs of two kinds are tuned one after the other") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("device:kind=h100+a10");
    const Ended ended = sandbox.run(small_tune({"--gpu", "all", "--json"}));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    const nlohmann::json runs = ended.json()["data"]["runs"];
    REQUIRE(runs.size() == 2);
    CHECK(runs[0]["gpu"]["name"] != runs[1]["gpu"]["name"]);
}

TEST_CASE("without a GPU the first line says so and the results are predictions") {
    Sandbox sandbox;
    sandbox.set("HONE_DATA_DIR", sandbox.path("empty").string());
    std::filesystem::create_directory(sandbox.path("empty"));
    const Ended ended = sandbox.run(small_tune());
    INFO(ended.err);
    CHECK(ended.code == 0);
    CHECK(ended.err.starts_with("no usable GPU"));
    CHECK(ended.out.find("predicted") != std::string::npos);
    CHECK(sandbox.run(small_tune({"--gpu", "0"})).code == 3);
}

TEST_CASE("without a GPU and without NVRTC tuning ends with 3 and says where it looked") {
    Sandbox sandbox;
    sandbox.set("HONE_DATA_DIR", sandbox.path("empty").string());
    sandbox.set("HONE_NVRTC_LIBRARY", "/nonexistent/libnvrtc.so");
    const Ended ended = sandbox.run(small_tune());
    CHECK(ended.code == 3);
    CHECK(ended.err.find("/nonexistent/libnvrtc.so") != std::string::npos);
    CHECK(
        sandbox.run({"compile", "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=4096", "--arch", "sm_90a"})
            .code == 3);
    CHECK(sandbox.run({"doctor"}).code == 3);
}

TEST_CASE("a product's winner between two powers of two has a bucket and an image of its own") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const std::string fields = "dtype=bf16 in=64 out=64";
    const auto words = [&](const char* command, const char* tokens) {
        return Sandbox::Words{command, "--op", "linear", "--fields", fields, "--tokens", tokens, "--json"};
    };
    const auto last_of = [&](const char* tokens) {
        const Ended ended =
            sandbox.run({"explain", "linear", "dtype=bf16", "in=64", "out=64", tokens, "--json"});
        INFO(ended.err);
        return ended.json()["data"]["bucket"]["tokens"][1].get<int>();
    };
    REQUIRE(sandbox.run(words("tune", "256,512")).code == 0);
    CHECK(last_of("tokens=300") == 512);
    REQUIRE(sandbox.run(words("tune", "300,384")).code == 0);
    CHECK(last_of("tokens=256") == 256);
    CHECK(last_of("tokens=300") == 384);
    CHECK(last_of("tokens=385") == 512);

    Sandbox::Words compile = words("compile", "256,512");
    compile.insert(compile.end(), {"--arch", "sm_90a"});
    const nlohmann::json compiled = sandbox.run(compile).json()["data"];
    std::set<std::string> sizes;
    for (const nlohmann::json& kernel : compiled["kernels"]) {
        const std::string problem = kernel["problem"];
        sizes.insert(problem.substr(problem.rfind(' ') + 1));
    }
    CHECK(sizes == std::set<std::string>{"tokens=256", "tokens=384", "tokens=512"});
}

TEST_CASE("a recorded sweep replays to the same winners without a GPU") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const nlohmann::json measured = sandbox.run(small_tune({"--record", "sweep.jsonl", "--json"})).json();
    Sandbox elsewhere;
    elsewhere.write("sweep.jsonl", sandbox.read("sweep.jsonl"));
    const Ended ended = elsewhere.run(small_tune({"--replay", "sweep.jsonl", "--json"}));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    const nlohmann::json replayed = ended.json();
    const nlohmann::json run = replayed["data"]["runs"][0];
    REQUIRE(run["problems"].size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(run["problems"][i]["winner"]["provenance"] == "replayed");
        CHECK(run["problems"][i]["winner"]["candidate"] ==
              measured["data"]["runs"][0]["problems"][i]["winner"]["candidate"]);
    }
    const Ended missing = elsewhere.run(
        {"tune", "--op", "rmsnorm", "--fields", "dtype=fp16 hidden=64", "--replay", "sweep.jsonl"});
    CHECK(missing.code == 4);
    CHECK(elsewhere.run(small_tune({"--replay", "nowhere.jsonl"})).code == 2);
    elsewhere.write("bad.jsonl", "{\"schema\":\"else\"}\n");
    CHECK(elsewhere.run(small_tune({"--replay", "bad.jsonl"})).code == 2);
}

TEST_CASE(
    "--kernels leaves so many kernels for all sizes, says the loss, and compile makes no other images") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const auto words = [](const char* command, Sandbox::Words more) {
        Sandbox::Words all{command,    "--op",          "rmsnorm", "--fields", "dtype=bf16 hidden=4096",
                           "--tokens", "1,16,1024,8192"};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    REQUIRE(sandbox.run(words("tune", {})).code == 0);
    const auto winners = [&] {
        std::set<std::string> kernels;
        const nlohmann::json data = sandbox.run({"list", "--json"}).json()["data"];
        for (const nlohmann::json& winner : data["winners"]) kernels.insert(winner["candidate"]);
        return kernels;
    };
    REQUIRE(winners().size() > 1);
    const Ended text = sandbox.run(words("tune", {"--kernels", "1"}));
    INFO(text.err);
    REQUIRE(text.code == 0);
    CHECK(text.out.find("few kernels for all sizes\n") != std::string::npos);
    CHECK(winners().size() == 1);
    const nlohmann::json again = sandbox.run(words("tune", {"--kernels", "1", "--json"})).json();
    const nlohmann::json run = again["data"]["runs"][0];
    CHECK(run["measurements"] == 0);
    REQUIRE(run["covers"].size() == 1);
    CHECK(run["covers"][0]["sizes"] == 4);
    CHECK(run["covers"][0]["kernels"] == nlohmann::json(winners()));
    CHECK(run["covers"][0]["mean_loss"].is_null());

    const nlohmann::json compiled =
        sandbox.run(words("compile", {"--arch", "sm_90a", "--kernels", "1", "--json"})).json();
    CHECK(compiled["data"]["images"] == 1);
    CHECK(compiled["data"]["covers"][0]["kernels"] == nlohmann::json(winners()));
    for (const char* command : {"tune", "compile"}) {
        for (const char* none : {"0", "-1", "few"}) {
            const Ended refused = sandbox.run(words(command, {"--kernels", none}));
            CHECK(refused.code == 2);
            CHECK(refused.err.find("--kernels") != std::string::npos);
        }
    }
}

TEST_CASE("--kernels covers sizes between two buckets, too, for which winners are stored") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const auto tune = [&](const char* tokens, Sandbox::Words more) {
        Sandbox::Words words{"tune",     "--op", "linear", "--fields", "dtype=bf16 in=512 out=512",
                             "--tokens", tokens, "--json"};
        words.insert(words.end(), more.begin(), more.end());
        return sandbox.run(words).json();
    };
    REQUIRE(tune("320", {})["ok"] == true);
    const nlohmann::json few = tune("256,512", {"--kernels", "1"});
    INFO(few.dump());
    REQUIRE(few["data"]["runs"][0]["covers"].size() == 1);
    CHECK(few["data"]["runs"][0]["covers"][0]["sizes"] == 3);
    std::set<std::string> kernels;
    const nlohmann::json listed = sandbox.run({"list", "linear", "--json"}).json();
    for (const nlohmann::json& winner : listed["data"]["winners"]) kernels.insert(winner["candidate"]);
    CHECK(kernels.size() == 1);
    // None of 640 is asked for up to 512.
    REQUIRE(tune("640", {})["ok"] == true);
    CHECK(tune("256,512", {"--kernels", "1"})["data"]["runs"][0]["covers"][0]["sizes"] == 3);
}

TEST_CASE(
    "compile --kernels chooses by stored times where there are more winners, and says whom it cannot serve") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    Sandbox::Words words{"tune",     "--op",     "rmsnorm", "--fields", "dtype=bf16 hidden=4096",
                         "--tokens", "1,16,8192"};
    REQUIRE(sandbox.run(words).code == 0);
    words.front() = "compile";
    words.insert(words.end(), {"--arch", "sm_90a", "--json", "--kernels", "2"});
    const nlohmann::json two = sandbox.run(words).json();
    const nlohmann::json cover = two["data"]["covers"][0];
    CHECK(cover["sizes"] == 3);
    CHECK(two["data"]["images"].get<std::size_t>() == cover["kernels"].size());
    CHECK(cover["kernels"].size() <= 2);
    CHECK(two["ok"].get<bool>() == cover["failure"].get<std::string>().empty());
    Sandbox nothing;
    words.back() = "1";
    const nlohmann::json empty = nothing.run(words).json();
    CHECK(empty["data"]["images"] == 0);
}

TEST_CASE("no valid candidate ends with 4") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("compile:match=rmsnorm:fail");
    const Ended ended = sandbox.run(small_tune({"--json"}));
    CHECK(ended.code == 4);
    CHECK(ended.json()["ok"] == false);
    CHECK(ended.json()["error"]["code"] == "nothing_valid");
    CHECK(ended.json()["data"]["runs"].is_array());
}

TEST_CASE("an ended budget gives 7 and keeps the best so far") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("compile:sleep_us=200000");
    const Ended ended = sandbox.run({"tune", "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=4096",
                                     "--effort", "exhaustive", "--budget", "2s", "--json"});
    INFO(ended.err);
    CHECK(ended.code == 7);
    CHECK(ended.json()["error"]["code"] == "budget_ended");
    CHECK(ended.json()["data"]["runs"][0]["stopped"] == "budget");
}

TEST_CASE("a budget holds on a GPU that hangs from its first launch on") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("launch:match=source=rmsnorm/reference.cu:hang");
    const auto start = std::chrono::steady_clock::now();
    const Ended ended = sandbox.run(small_tune({"--budget", "1s", "--json"}));
    INFO(ended.err);
    CHECK(ended.code == 7);
    CHECK(ended.json()["data"]["runs"][0]["stopped"] == "budget");
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));  // five workers' limits: 150
}

/// Until the fake compiler has noted the first image: the run is in the middle of its work then.
void wait_for_file(const std::filesystem::path& file) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (!std::filesystem::exists(file) && std::chrono::steady_clock::now() < limit)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(std::filesystem::exists(file));
}

TEST_CASE("Ctrl-C once saves and ends with 130, twice ends at once") {
    Sandbox sandbox;
    const Sandbox::Words words{"tune",     "--op",       "rmsnorm", "--fields", "dtype=bf16 hidden=4096",
                               "--effort", "exhaustive", "--json"};
    const auto interrupted = [&](int times) {
        const std::filesystem::path compiled = sandbox.path("compiled" + std::to_string(times));
        // A cache each: while the first run measures, all that there is may be compiled.
        sandbox.set("HONE_CACHE", sandbox.path("cache" + std::to_string(times) + "/cache.db").string());
        sandbox.use_fake_gpus("launch:sleep_us=2000;compile:log=" + compiled.string());
        return sandbox.run(words, [&](pid_t pid) {
            wait_for_file(compiled);
            std::this_thread::sleep_for(std::chrono::milliseconds(500));
            for (int i = 0; i < times; ++i) {
                kill(pid, SIGINT);
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
            }
        });
    };
    const Ended once = interrupted(1);
    INFO(once.err);
    CHECK(once.code == 130);
    CHECK(once.json()["error"]["code"] == "interrupted");
    CHECK(sandbox.run({"cache", "verify"}).code == 0);
    const Ended twice = interrupted(2);
    CHECK(twice.code == 130);
    CHECK(sandbox.run({"cache", "verify"}).code == 0);
}

TEST_CASE("Ctrl-C does not wait for a GPU that hangs from its first launch on") {
    Sandbox sandbox;
    const std::filesystem::path compiled = sandbox.path("compiled");
    sandbox.use_fake_gpus("launch:match=source=rmsnorm/reference.cu:hang;compile:log=" + compiled.string());
    std::chrono::steady_clock::time_point asked;
    const Ended ended = sandbox.run(small_tune(), [&](pid_t pid) {
        wait_for_file(compiled);
        std::this_thread::sleep_for(std::chrono::seconds(2));
        asked = std::chrono::steady_clock::now();
        kill(pid, SIGINT);
    });
    INFO(ended.err);
    CHECK(ended.code == 130);
    CHECK(std::chrono::steady_clock::now() - asked < std::chrono::seconds(15));  // a worker's limit is 30
}

TEST_CASE("Ctrl-C does not wait for compiles that hang, and nothing is said of what they compiled") {
    Sandbox sandbox;
    const std::filesystem::path compiled = sandbox.path("compiled");
    sandbox.use_fake_gpus("compile:log=" + compiled.string() + ":hang");
    const auto interrupted = [&](const Sandbox::Words& words) {
        std::filesystem::remove(compiled);
        std::chrono::steady_clock::time_point asked;
        Ended ended = sandbox.run(words, [&](pid_t pid) {
            wait_for_file(compiled);
            asked = std::chrono::steady_clock::now();
            kill(pid, SIGINT);
        });
        CHECK(std::chrono::steady_clock::now() - asked < std::chrono::seconds(20));  // a compile has 60
        INFO(ended.err);
        CHECK(ended.code == 130);
        return ended;
    };
    const Ended tuned = interrupted(small_tune({"--json"}));
    CHECK(tuned.json()["error"]["code"] == "interrupted");
    CHECK(tuned.out.find("\"stopped before any candidate was measured\"") != std::string::npos);
    CHECK(sandbox.run({"show", "rmsnorm", "--json"}).out.find("compile_failed") == std::string::npos);
    const Ended listed = interrupted(
        {"compile", "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=4096", "--tokens", "1", "--json"});
    CHECK(listed.json()["data"]["failed"].empty());
    const Sandbox::Words bench{"bench", "rmsnorm", "dtype=bf16", "hidden=4096", "rows=16", "--json"};
    const Ended without_reference = interrupted(bench);
    CHECK(without_reference.err.find("reference") == std::string::npos);
    CHECK(without_reference.json()["data"]["problems"].empty());
    std::string hanging;  // the reference does not
    for (const char* kernel : {"cluster_row", "group_rows", "persistent_rows", "streamed_row"})
        hanging += std::string("compile:match=") + kernel + ":log=" + compiled.string() + ":hang;";
    sandbox.use_fake_gpus(hanging);
    const Ended without_contenders = interrupted(bench);
    CHECK(without_contenders.json()["data"]["problems"].empty());
    CHECK(sandbox.run({"cache", "verify"}).code == 0);
}

TEST_CASE("the head of the output is a summary of a dozen lines, and what has no kernel is said once") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    sandbox.set("COLUMNS", "100");
    const Ended tuned = sandbox.run({"tune", "llama-3-8b", "--tokens", "1,16", "--effort", "quick"});
    INFO(tuned.err);
    REQUIRE(tuned.code == 0);
    const std::vector<std::string> lines = lines_of(tuned.out);
    const auto end = std::ranges::find(lines, "");
    CHECK(end - lines.begin() <= 12);
    const std::string head = tuned.out.substr(0, tuned.out.find("\n\n"));
    for (const char* expected : {"llama-3-8b\n", "measured on GPU 0", " tuned now, 0 known before, 0 failed",
                                 "x as fast as the default in the geometric mean of ", "keep the default",
                                 "most gained: ", "slowest: ", "cache: ", "next: hone explain ",
                                 "hone export --model llama-3-8b -o winners.json"}) {
        CAPTURE(expected);
        CHECK(head.find(expected) != std::string::npos);
    }
    for (auto line = end; line != lines.end(); ++line) CHECK(columns_of(*line) <= 100);

    const Ended missing =
        sandbox.run({"tune", "deepseek-v3", "--tokens", "1", "--effort", "quick", "--op", "rmsnorm"});
    CHECK(missing.code == 0);
    const Ended dry = sandbox.run({"tune", "deepseek-v3", "--dry-run"});
    const std::string said = dry.out + dry.err;
    const std::size_t first = said.find("latent attention");
    CHECK(first != std::string::npos);
    CHECK(said.find("latent attention", first + 1) == std::string::npos);
}

TEST_CASE("what a hint says to run is the same run, quoted for a shell") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("compile:sleep_us=200000");
    const Ended ended = sandbox.run({"tune", "--op", "RmsNorm", "--fields", "dtype=bf16 hidden=4096", "--gpu",
                                     "0", "--effort", "exhaustive", "--budget", "1s"});
    CHECK(ended.code == 7);
    CHECK(ended.err.find("hint: hone tune --op RmsNorm --fields \"dtype=bf16 hidden=4096\" --gpu 0 --effort "
                         "exhaustive --budget 1s goes on from here") != std::string::npos);
    CHECK(ended.out.find("rows=8192 --gpu 0\n") != std::string::npos);  // next: hone explain

    Sandbox offline;
    offline.set("HONE_DATA_DIR", offline.path("empty").string());
    std::filesystem::create_directory(offline.path("empty"));
    const Ended predicted = offline.run(small_tune({"--offline", "--arch=sm_80"}));
    REQUIRE(predicted.code == 0);
    CHECK(predicted.out.find("rows=16 --arch sm_80\n      hone tune --op rmsnorm --fields \"dtype=bf16 "
                             "hidden=4096\" --tokens 1,16 --effort quick   # on a machine with a GPU\n") !=
          std::string::npos);
    const Ended explained =
        offline.run({"explain", "rmsnorm", "dtype=fp16", "hidden=4096", "rows=16", "--arch", "sm_80"});
    CHECK(
        explained.out.find("to improve: hone tune --op rmsnorm --fields \"dtype=fp16 output=same residual=no "
                           "hidden=4096\" --tokens 16 --offline --arch sm_80\n") != std::string::npos);
}

TEST_CASE("without a GPU problems are answered before anything compiles, and Ctrl-C keeps the answers") {
    Sandbox sandbox;
    sandbox.set("HONE_DATA_DIR", sandbox.path("empty").string());
    std::filesystem::create_directory(sandbox.path("empty"));
    const std::filesystem::path compiled = sandbox.path("compiled");
    sandbox.set("HONE_FAKE_SCRIPT", "compile:log=" + compiled.string() + ":sleep_us=5000000");
    const Sandbox::Words words{"tune",     "--op",       "rmsnorm", "--fields", "dtype=bf16 hidden=4096",
                               "--tokens", "1,16,64,256"};
    const Ended ended = sandbox.run(words, [&](pid_t pid) {
        wait_for_file(compiled);
        kill(pid, SIGINT);
    });
    INFO(ended.err);
    CHECK(ended.code == 130);
    CHECK(ended.err.find("4 problems have a predicted answer now") != std::string::npos);
    CHECK(ended.out.find("4 problems: 4 tuned now") != std::string::npos);
    CHECK(sandbox.run({"list", "--json"}).json()["data"]["winners"].size() == 4);
    CHECK(sandbox.run({"cache", "verify"}).code == 0);
}

TEST_CASE("progress: a bar on a terminal, no escape codes elsewhere") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("compile:sleep_us=100000");
    const Ended terminal = sandbox.run_on_terminal(small_tune({"--retune"}));
    CHECK(terminal.code == 0);
    CHECK(terminal.out.find("problems, ") != std::string::npos);
    CHECK(terminal.out.find("\r\033[K[") != std::string::npos);
    const Ended piped = sandbox.run(small_tune({"--retune"}));
    CHECK_FALSE(has_controls(piped.err));
}

TEST_CASE("a dry run tunes nothing and needs nothing") {
    Sandbox sandbox;
    sandbox.set("HONE_NVRTC_LIBRARY", "/nonexistent/libnvrtc.so");
    const Ended ended = sandbox.run({"tune", "llama-3-8b", "--dry-run", "--json"});
    CHECK(ended.code == 0);
    const nlohmann::json data = ended.json()["data"];
    std::map<std::string, int> counts;  // of problems, by family
    std::set<std::string> problems;
    for (const nlohmann::json& each : data["problems"]) {
        const auto problem = each["problem"].get<std::string>();
        ++counts[problem.substr(0, problem.find(' '))];
        problems.insert(problem);
    }
    // At 1, 2, 4 ... 8192 tokens, linear layers at nine more; the language head up to 512, prompts from 32,
    // and two layouts of a cache. Steps have single tokens beside prompts, and others that append. Their
    // products with norms and sums are compiled, and chosen by --chain.
    CHECK(counts["rmsnorm"] == 2 * 14);
    CHECK(counts["linear"] == 4 * (14 + 9) + 10);
    CHECK(counts["attention_prefill"] == 2 * 9);
    CHECK(counts["attention_decode"] == 2 * 18 + 18);
    CHECK(counts["attention_append"] == 18);
    for (const nlohmann::json& op : data["operators"])
        CHECK(problems.contains(op["problem"].get<std::string>()));
    CHECK(data["without_family"].empty());
    CHECK_FALSE(std::filesystem::exists(sandbox.path("cache/cache.db")));
}

TEST_CASE("attention that appends is tuned for GPUs alone on whose kind steps call it") {
    const auto appends = [](const std::string& gpu) {
        Sandbox sandbox;
        sandbox.use_fake_gpus("device:kind=" + gpu);
        const Ended ended = sandbox.run({"tune", "llama-3-8b", "--dry-run", "--json"});
        INFO(ended.err);
        CHECK(ended.code == 0);
        const auto is_append = [](const nlohmann::json& one) {
            return one["problem"].get<std::string>().starts_with("attention_append ");
        };
        const nlohmann::json data = ended.json()["data"];
        CHECK(std::ranges::any_of(data["operators"], is_append) ==
              std::ranges::any_of(data["problems"], is_append));
        return std::ranges::count_if(data["problems"], is_append);
    };
    CHECK(appends("h100") == 18);
    CHECK(appends("a10") == 0);
    // Who names the operator wants it.
    Sandbox sandbox;
    sandbox.use_fake_gpus("device:kind=a10");
    const Ended named = sandbox.run({"tune", "--op", "attention_append", "--fields",
                                     "dtype=bf16 heads=32 kv_heads=8 head_dim=128 rotary_dim=128 "
                                     "page_size=16 batch=1 kv_len=512",
                                     "--dry-run", "--json"});
    INFO(named.err);
    CHECK(named.json()["data"]["problems"].size() == 1);
}

TEST_CASE("a model with quantized weights: by option, by its config.json, or not") {
    const Sandbox sandbox;
    const auto families = [&](Sandbox::Words words) {
        words.insert(words.end(), {"--dry-run", "--json", "--tokens", "4"});
        const Ended ended = sandbox.run(words);
        INFO(ended.err);
        CHECK(ended.code == 0);
        const nlohmann::json problems = ended.json()["data"]["problems"];
        std::string found;
        for (const nlohmann::json& problem : problems) {
            const auto text = problem["problem"].get<std::string>();
            CHECK(problem["candidates"].get<int>() > 0);
            if (text.find("linear ") == std::string::npos) continue;
            found += text.substr(0, text.find(" quantized_x=")).substr(0, text.find(" norm=")) + "\n";
        }
        return found;
    };
    const std::string head = "linear dtype=bf16\n";
    const std::string codes = "quantized_linear dtype=bf16 format=w4a16 group=64 zeros=yes\n";
    CHECK(families({"tune", "llama-3-8b", "--format", "w4a16", "--group", "64", "--zeros"}) ==
          codes + codes + codes + codes + head);
    const nlohmann::json config{
        {"hidden_size", 256},
        {"intermediate_size", 512},
        {"num_attention_heads", 4},
        {"vocab_size", 100},
        {"num_hidden_layers", 2},
        {"rms_norm_eps", 1e-5},
        {"quantization_config", {{"quant_method", "awq"}, {"bits", 4}, {"group_size", 64}}}};
    const std::string file = sandbox.write("config.json", config.dump()).string();
    CHECK(families({"tune", file}) == codes + codes + codes + codes + head);
    CHECK(families({"tune", file, "--format", "dense"}) == head + head + head + head + head);
    CHECK(families({"tune", file, "--op", "quantized_linear"}) == codes + codes + codes + codes);
}

TEST_CASE("one operator of a model") {
    Sandbox sandbox;
    const Ended ended = sandbox.run({"tune", "llama-3-8b", "--op", "linear", "--dry-run", "--json"});
    CHECK(ended.code == 0);
    const nlohmann::json data = ended.json()["data"];
    CHECK(data["problems"].size() == 4 * (14 + 9) + 10);
    CHECK(data["operators"].size() == 5);
    CHECK(data["without_family"].empty());
}

TEST_CASE("an operator of several sizes is tuned, shown and explained at all of them") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const std::string fields = "dtype=bf16 heads=8 kv_heads=2 head_dim=64 q_tokens=1";
    const auto tune = [&](const std::string& sizes, const Sandbox::Words& more) {
        Sandbox::Words words{"tune",     "--op", "attention_decode", "--fields", fields + sizes,
                             "--effort", "quick"};
        words.insert(words.end(), more.begin(), more.end());
        return sandbox.run(words);
    };
    CHECK(tune("", {"--tokens", "8"}).code == 2);
    CHECK(tune(" batch=4", {"--dry-run"}).code == 2);
    const Ended tuned = tune(" batch=4", {"--tokens", "256,1024"});
    INFO(tuned.err);
    REQUIRE(tuned.code == 0);
    CHECK(tuned.out.find("batch  kv_len  q_len  winner") != std::string::npos);
    CHECK(tune(" batch=4 kv_len=256", {"--json"}).json()["data"]["runs"][0]["compiles"] == 0);
    CHECK(sandbox.run({"list", "attention_decode", "--json"}).json()["data"]["winners"].size() == 2);

    const auto explained = [&](const std::string& sizes) {
        Sandbox::Words words{"explain",    "attention_decode", "dtype=bf16", "heads=8",
                             "kv_heads=2", "head_dim=64",      "q_tokens=1", "--json"};
        std::istringstream text(sizes);
        for (std::string word; text >> word;) words.push_back(word);
        return sandbox.run(words).json()["data"];
    };
    CHECK(explained("batch=4 kv_len=1000")["origin"] == "exact");
    CHECK(explained("batch=4 kv_len=1000")["bucket"]["kv_len"] == nlohmann::json({513, 1024}));
    CHECK(explained("batch=8 kv_len=512")["origin"] == "neighbour");
    const std::string command = explained("batch=128 kv_len=512")["tune_command"];
    CHECK(command.find("batch=128") != std::string::npos);
    CHECK(command.find("--tokens 512") != std::string::npos);
    const Ended bench = sandbox.run({"bench", "attention_decode", "dtype=bf16", "heads=8", "kv_heads=2",
                                     "head_dim=64", "q_tokens=1", "batch=4", "kv_len=256", "--json"});
    CHECK(bench.code == 0);
    CHECK(bench.json()["data"]["problems"][0]["rows"][0]["median_us"].get<double>() > 0);
}

TEST_CASE("ahead-of-time compilation fills the image cache without a GPU") {
    Sandbox sandbox;
    const Sandbox::Words words{"compile",  "--op",  "rmsnorm", "--fields", "dtype=bf16 hidden=4096",
                               "--tokens", "1,16",  "--arch",  "sm_90a",   "--top",
                               "3",        "--json"};
    const Ended first = sandbox.run(words);
    INFO(first.err);
    REQUIRE(first.code == 0);
    CHECK(first.json()["data"]["compiled"].get<int>() > 0);
    const nlohmann::json kernels = first.json()["data"]["kernels"];
    CHECK(kernels.size() == first.json()["data"]["images"]);
    std::map<nlohmann::json, std::set<nlohmann::json>> images;  // by candidate: one for both sizes
    std::set<nlohmann::json> plans;
    for (const nlohmann::json& kernel : kernels) {
        images[kernel["candidate"]].insert(kernel["image"]);
        plans.insert(kernel["plan"]);
    }
    for (const auto& [candidate, of_candidate] : images) {
        CAPTURE(candidate);
        CHECK(of_candidate.size() == 1);
    }
    CHECK(images.size() > 1);
    CHECK(plans.size() > 1);
    const nlohmann::json second = sandbox.run(words).json();
    CHECK(second["data"]["compiled"] == 0);
    CHECK(second["data"]["from_cache"] == second["data"]["images"]);
    CHECK(second["data"]["kernels"] == kernels);
    CHECK(sandbox.run({"compile", "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=4096"}).code == 2);
}

TEST_CASE(
    "without a GPU compiling ends five seconds after the predictions, with --offline when all is done") {
    Sandbox sandbox;
    sandbox.set("HONE_DATA_DIR", sandbox.path("empty").string());
    std::filesystem::create_directory(sandbox.path("empty"));
    sandbox.set("HONE_FAKE_SCRIPT", "compile:sleep_us=4000000");
    const Sandbox::Words sizes{"tune",
                               "--op",
                               "rmsnorm",
                               "--fields",
                               "dtype=bf16 hidden=4096",
                               "--tokens",
                               "1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192",
                               "--json"};
    const Ended ended = sandbox.run(sizes);
    INFO(ended.err);
    CHECK(ended.code == 0);
    CHECK(ended.err.find("not all problems were reached within 5 s of compiling") != std::string::npos);
    const nlohmann::json run = ended.json()["data"]["runs"][0];
    CHECK(run["stopped"] == "answered");
    CHECK(run["problems"].size() == 14);
    for (const nlohmann::json& problem : run["problems"]) CHECK(problem["winner"].is_object());
    sandbox.set("HONE_FAKE_SCRIPT", "");
    Sandbox::Words asked = sizes;
    asked.emplace_back("--offline");
    const nlohmann::json all = sandbox.run(asked).json()["data"]["runs"][0];
    CHECK(all["stopped"] == "finished");
}

TEST_CASE("compile says of what no kernel compiled: here of compilers that the system has killed") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("compile:signal=9");
    const Ended ended = sandbox.run({"compile", "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=4096",
                                     "--tokens", "1", "--arch", "sm_90a"});
    CHECK(ended.code == 4);
    CHECK(ended.err.find("nothing compiles for rmsnorm") != std::string::npos);
    CHECK(ended.err.find("the compiler died: signal 9 (Killed)") != std::string::npos);
}
