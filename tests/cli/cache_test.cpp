// The cache as the program meets it: missing, read-only, foreign, damaged, without a home; and refused
// imports.
#include <doctest/doctest.h>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/cli/program.h"

using namespace hone::test;
namespace fs = std::filesystem;

namespace {

const Sandbox::Words tune_words{"tune",     "--op", "rmsnorm",  "--fields", "dtype=bf16 hidden=4096",
                                "--tokens", "16",   "--effort", "quick"};

/// A sandbox with one measured winner and its export in winners.json.
void tune_and_export(Sandbox& sandbox) {
    sandbox.use_fake_gpus();
    const Ended tuned = sandbox.run(tune_words);
    INFO(tuned.err);
    REQUIRE(tuned.code == 0);
    REQUIRE(sandbox.run({"export", "-o", "winners.json"}).code == 0);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("cache path, stats, verify, gc and clear") {
    Sandbox sandbox;
    tune_and_export(sandbox);
    CHECK(sandbox.run({"cache", "path"}).out == sandbox.path("cache/cache.db").string() + "\n");
    const nlohmann::json stats = sandbox.run({"cache", "stats", "--json"}).json();
    CHECK(stats["schema"] == "hone.cache/1");
    CHECK(stats["data"]["action"] == "stats");
    CHECK(stats["data"]["winners"] == 1);
    CHECK(stats["data"]["images"].get<int>() > 0);
    CHECK(sandbox.run({"cache", "verify"}).code == 0);
    CHECK(sandbox.run({"cache", "gc", "--json"}).json()["ok"] == true);
    CHECK(sandbox.run({"cache", "clear", "--yes", "--images"}).code == 0);
    CHECK(sandbox.run({"list", "--json"}).json()["data"]["winners"].empty());
}

TEST_CASE("where there is no cache yet, what reads one says which commands make it") {
    const Sandbox sandbox;
    const auto check = [&] {
        for (const Sandbox::Words& words :
             {Sandbox::Words{"export"}, {"cache", "stats"}, {"cache", "verify"}}) {
            CAPTURE(words.back());
            const Ended ended = sandbox.run(words);
            CHECK(ended.code == 5);
            CHECK(ended.err.find("hint: hone tune and hone import make a cache") != std::string::npos);
        }
    };
    check();
    fs::create_directory(sandbox.path("cache"));
    check();
}

TEST_CASE("without HOME, XDG_CACHE_HOME and HONE_CACHE tuning ends with 5 and says what to set") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    sandbox.unset("HOME");
    sandbox.unset("HONE_CACHE");
    const Ended ended = sandbox.run(tune_words);
    CHECK(ended.code == 5);
    CHECK(ended.err.find("HONE_CACHE") != std::string::npos);
    CHECK(sandbox.run({"list"}).code == 0);
    CHECK(sandbox.run({"cache", "path"}).code == 5);
    CHECK(sandbox.run({"doctor"}).code == 5);
}

TEST_CASE("a variable with a value that means nothing is named") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    sandbox.set("HONE_PACKAGED", "no");
    CHECK(sandbox.run({"list"}).err.find("HONE_PACKAGED is 'no', allowed: off, on") != std::string::npos);
    sandbox.set("HONE_PACKAGED", "off");
    sandbox.set("HONE_CHECK_INDICES", "0");
    sandbox.set("HONE_NVML_LIBRARY", "/nonexistent/nvml.so");
    const std::string doctor = sandbox.run({"doctor"}).out;
    CHECK(doctor.find("not available from /nonexistent/nvml.so, which HONE_NVML_LIBRARY names") !=
          std::string::npos);
    CHECK(doctor.find("HONE_CHECK_INDICES=0") != std::string::npos);
    const std::string tuned = sandbox.run(tune_words).err;
    const std::size_t warning =
        tuned.find("NVML is not available from /nonexistent/nvml.so, which HONE_NVML_LIBRARY names");
    REQUIRE_MESSAGE(warning != std::string::npos, tuned);
    CHECK(tuned.find("HONE_NVML_LIBRARY", tuned.find('\n', warning)) == std::string::npos);
    sandbox.set("HONE_CUDA_LIBRARY", "/nonexistent/cuda.so");
    CHECK(sandbox.run({"compile", "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=512"})
              .err.find("/nonexistent/cuda.so") != std::string::npos);
}

TEST_CASE("HONE_WORKER_EXECUTABLE=off is for engines: tune starts its workers all the same") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    sandbox.set("HONE_WORKER_EXECUTABLE", "off");
    CHECK(sandbox.run(tune_words).code == 0);
    sandbox.set("HONE_WORKER_EXECUTABLE", "hone");
    CHECK(sandbox.run({"tune", "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=1536", "--tokens", "1"})
              .err.find("which HONE_WORKER_EXECUTABLE names") != std::string::npos);
}

TEST_CASE("the site cache is listed where no place for the user's is known") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    REQUIRE(sandbox.run(tune_words).code == 0);
    sandbox.set("HONE_SITE_CACHE", sandbox.path("cache/cache.db").string());
    sandbox.unset("HOME");
    sandbox.unset("HONE_CACHE");
    CHECK(sandbox.run({"list"}).out.find("site") != std::string::npos);
}

TEST_CASE("a cache is not merged into itself, under whatever name") {
    Sandbox sandbox;
    tune_and_export(sandbox);
    fs::create_directory_symlink(sandbox.path("cache"), sandbox.path("other"));
    for (const char* name : {"cache/cache.db", "other/cache.db"}) {
        const Ended ended = sandbox.run({"merge", name});
        CHECK(ended.code == 2);
        CHECK(ended.err.find("is the cache that trials would be added to") != std::string::npos);
    }
}

TEST_CASE("a merge says how many rows of the other cache are damaged") {
    Sandbox sandbox;
    tune_and_export(sandbox);
    std::string bytes = sandbox.read("cache/cache.db");
    for (std::size_t at = bytes.find("rmsnorm"); at != std::string::npos; at = bytes.find("rmsnorm", at))
        bytes[at] = 'R';
    sandbox.write("cache/damaged.db", bytes);
    fs::permissions(sandbox.path("cache/damaged.db"), fs::perms::owner_read | fs::perms::owner_write);
    const std::int64_t rows = sandbox.run({"cache", "stats", "--json"}).json()["data"]["trials"];
    REQUIRE(rows > 0);
    const Sandbox::Words merge{"merge", sandbox.path("cache/damaged.db").string()};
    const Ended ended = sandbox.run(merge);
    CAPTURE(ended.err);
    CHECK(ended.code == 6);
    CHECK(ended.err.find("0 rows that cannot be true and " + std::to_string(rows) +
                         " damaged ones were left out") != std::string::npos);
    Sandbox::Words as_json = merge;
    as_json.push_back("--json");
    const nlohmann::json data = sandbox.run(as_json).json()["data"];
    CHECK(data["new"] == 0);
    CHECK(data["damaged"] == rows);
    CHECK(data["refused"].empty());
}

TEST_CASE("compile reads what is stored once, and says once what of it is damaged") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const Sandbox::Words problems{"--op",     "rmsnorm", "--fields", "dtype=bf16 hidden=512",
                                  "--tokens", "1,8,64"};
    Sandbox::Words tune{"tune"};
    tune.insert(tune.end(), problems.begin(), problems.end());
    REQUIRE(sandbox.run(tune).code == 0);
    std::string bytes = sandbox.read("cache/cache.db");
    for (std::size_t at = bytes.find("threads="); at != std::string::npos; at = bytes.find("threads=", at))
        bytes[at] = 'T';
    sandbox.write("cache/cache.db", bytes);
    Sandbox::Words compile{"compile", "--arch", "sm_90a"};
    compile.insert(compile.end(), problems.begin(), problems.end());
    const Ended ended = sandbox.run(compile);
    CAPTURE(ended.err);
    CHECK(ended.code == 0);
    const std::size_t first = ended.err.find(" damaged winners left out");
    REQUIRE(first != std::string::npos);
    CHECK(ended.err.find("damaged winners left out", first + 10) == std::string::npos);
}

TEST_CASE("Ctrl-C ends compile while it lists what to compile") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const auto start = std::chrono::steady_clock::now();
    const Ended ended =
        sandbox.run({"compile", "llama-3-8b", "--arch", "sm_90a", "--top", "1000000"}, [](pid_t pid) {
            std::this_thread::sleep_for(std::chrono::seconds(1));
            kill(pid, SIGINT);
        });
    CHECK(ended.code == 130);
    CHECK(ended.err.find("stopping; what was compiled is kept") != std::string::npos);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
}

TEST_CASE("a read-only cache can be read, and tuning ends with 5") {
    if (geteuid() == 0) return;  // root may write everything
    Sandbox sandbox;
    tune_and_export(sandbox);
    fs::permissions(sandbox.path("cache/cache.db"), fs::perms::owner_read);
    fs::permissions(sandbox.path("cache"), fs::perms::owner_read | fs::perms::owner_exec);
    CHECK(sandbox.run({"list", "--json"}).json()["data"]["winners"].size() == 1);
    CHECK(
        sandbox.run({"tune", "--op", "rmsnorm", "--fields", "dtype=fp16 hidden=64", "--tokens", "1"}).code ==
        5);
    CHECK(sandbox.run({"import", "winners.json"}).code == 5);
}

TEST_CASE("a file that is no cache is refused with 5 and left as it is") {
    Sandbox sandbox;
    fs::create_directory(sandbox.path("cache"));
    fs::permissions(sandbox.path("cache"), fs::perms::owner_all);
    sandbox.write("cache/cache.db",
                  "this is a letter to my aunt, not a database, and it is long enough for a header");
    fs::permissions(sandbox.path("cache/cache.db"), fs::perms::owner_read | fs::perms::owner_write);
    const std::string before = sandbox.read("cache/cache.db");
    for (const Sandbox::Words& words : {Sandbox::Words{"cache", "stats"}, {"cache", "verify"}, {"export"}}) {
        CAPTURE(words);
        const Ended ended = sandbox.run(words);
        CHECK(ended.code == 5);
        CHECK(ended.err.find("cache.db") != std::string::npos);
    }
    CHECK(sandbox.run({"list"}).code == 0);  // with a warning: dispatch and reading degrade
    CHECK(sandbox.read("cache/cache.db") == before);
    fs::copy_file(sandbox.path("cache/cache.db"), sandbox.path("cache/letter.db"));
    CHECK(sandbox.run({"merge", sandbox.path("cache/letter.db").string()}).code == 5);
}

TEST_CASE("bad imports are refused with 6 as a whole") {
    Sandbox sandbox;
    tune_and_export(sandbox);
    const std::string good = sandbox.read("winners.json");
    const nlohmann::json bundle = nlohmann::json::parse(good);
    const std::vector<std::pair<const char*, std::string>> bad{
        {"empty", ""},
        {"no JSON", "hello"},
        {"truncated", good.substr(0, good.size() / 2)},
        {"another schema", replaced(good, "hone.tuned/3", "hone.tuned/9")},
        {"changed value, old checksum", replaced(good, "rmsnorm", "layernorm")},
        {"a list", "[]"},
        {"deep", std::string(100000, '[')},
        {"control characters", "{\"schema\":\"\\u001b[2J\"}"},
        {"too large", std::string((std::size_t{16} << 20) + 10, ' ')},
    };
    Sandbox elsewhere;
    for (const auto& [what, text] : bad) {
        CAPTURE(what);
        elsewhere.write("bad.json", text);
        const Ended ended = elsewhere.run({"import", "bad.json"});
        CHECK(ended.code == 6);
        CHECK_FALSE(has_controls(ended.err));
        CHECK(ended.err.find("bad.json") != std::string::npos);
    }
    CHECK(elsewhere.run({"list", "--json"}).json()["data"]["winners"].empty());
}

TEST_CASE("doctor finds two GPUs, tenants and throttling") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("device:count=2; nvml:tenant=4242; nvml:throttle=0x40");
    const Ended ended = sandbox.run({"doctor", "--json"});
    INFO(ended.err);
    CHECK(ended.code == 0);
    const std::string text = ended.json()["data"]["findings"].dump();
    for (const char* expected :
         {"GPU 0", "GPU 1", "4242", "throttled", "NVRTC", "HONE_CACHE", "compile workers"}) {
        CAPTURE(expected);
        CHECK(text.find(expected) != std::string::npos);
    }
}

TEST_CASE("a driver that is too old or does not start counts as no GPU") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("driver:init=803");
    const Ended doctor = sandbox.run({"doctor"});
    CHECK(doctor.code == 3);
    CHECK(sandbox.run({"bench", "rmsnorm", "dtype=bf16", "hidden=4096", "rows=1"}).code == 3);
    sandbox.use_fake_gpus("device:count=0");
    CHECK(sandbox.run({"doctor"}).code == 3);
}
