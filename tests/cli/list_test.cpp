// hone list, show and export: tables that fit the page, what is shown of which winner, and filters.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <sstream>

#include "tests/cli/program.h"

using namespace hone::test;

namespace {

/// Three winners of a fake H100.
struct Tuned {
    Sandbox sandbox;

    Tuned() {
        sandbox.use_fake_gpus();
        REQUIRE(sandbox
                    .run({"tune", "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=4096", "--tokens",
                          "2,16,1000", "--effort", "quick"})
                    .code == 0);
    }
};

}  // namespace

TEST_CASE("the list is never wider than the page, and nothing is cut off with --wide") {
    Tuned tuned;
    tuned.sandbox.unset("HONE_PACKAGED");
    const std::size_t winners = tuned.sandbox.run({"list", "--json"}).json()["data"]["winners"].size();
    REQUIRE(winners > 100);
    for (const std::size_t columns : {60, 80, 120, 200}) {
        CAPTURE(columns);
        tuned.sandbox.set("COLUMNS", std::to_string(columns));
        const std::vector<std::string> lines = lines_of(tuned.sandbox.run({"list"}).out);
        CHECK(lines.size() > winners);
        for (const std::string& line : lines) CHECK(columns_of(line) <= columns);
    }
    CHECK(tuned.sandbox.run({"list", "--wide"}).out.find("\u2026") == std::string::npos);
}

TEST_CASE("sizes stand in numeric order, below what all of them have") {
    const Tuned tuned;
    const Ended ended = tuned.sandbox.run({"list", "rmsnorm"});
    const std::vector<std::string> lines = lines_of(ended.out);
    REQUIRE(lines.size() == 8);
    CHECK(lines[2].starts_with("rmsnorm dtype=bf16 output=same residual=no hidden=4096  ("));
    CHECK(lines[3].starts_with("  rows"));
    CHECK(lines[4].starts_with("     2  "));
    CHECK(lines[5].starts_with("    16  "));
    CHECK(lines[6].starts_with("  1000  "));
    CHECK(lines[7].empty());
}

TEST_CASE("filters are an operator, fields in any case and a part of the GPU's name") {
    const Tuned tuned;
    const auto count = [&](Sandbox::Words words) {
        words.insert(words.begin(), "list");
        words.emplace_back("--json");
        return tuned.sandbox.run(words).json()["data"]["winners"].size();
    };
    CHECK(count({"--gpu", "h100"}) == 3);
    CHECK(count({"--gpu", "h200"}) == 0);
    CHECK(count({"--gpu", "H100", "rows=16"}) == 1);
    CHECK(count({"dtype=BF16", "rmsnorm"}) == 3);
    CHECK(count({"linear"}) == 0);
    const Ended unknown = tuned.sandbox.run({"list", "rmsnorm", "hiden=4096"});
    CHECK(unknown.code == 2);
    CHECK(unknown.err.find("no field 'hiden' (did you mean 'hidden'?)") != std::string::npos);
    const Ended none = tuned.sandbox.run({"list", "rows=12345"});
    CHECK(none.code == 0);
    CHECK(none.out == "no winner is like that: hone list shows all\n");
}

TEST_CASE("--csv has a line a winner, with cells quoted as RFC 4180 says") {
    const Tuned tuned;
    const std::vector<std::string> lines = lines_of(tuned.sandbox.run({"list", "--csv"}).out);
    REQUIRE(lines.size() == 4);
    CHECK(lines[0] ==
          "gpu,layer,operator,fields,sizes,winner,us,provenance,trust,tuned_at,ties,tied_within,sm_clock_mhz,"
          "incumbent_ratio,chain\r");
    for (std::size_t i = 1; i < lines.size(); ++i) {
        CHECK(lines[i].starts_with('"'));  // the GPU's name has commas
        CHECK(lines[i].find(",user,rmsnorm,") != std::string::npos);
    }
    CHECK(tuned.sandbox.run({"list", "--csv", "--wide"}).code == 2);
}

TEST_CASE("show names a candidate once, the winner first, on any page") {
    Tuned tuned;
    REQUIRE(tuned.sandbox
                .run({"tune", "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=4096", "--tokens", "16",
                      "--effort", "quick", "--retune"})
                .code == 0);
    const Sandbox::Words words{"show", "rmsnorm", "dtype=bf16", "hidden=4096", "rows=16"};
    const Ended wide =
        tuned.sandbox.run({"show", "rmsnorm", "dtype=bf16", "hidden=4096", "rows=16", "--wide"});
    const std::vector<std::string> rows = lines_of(wide.out);
    REQUIRE(rows.size() > 10);
    CHECK(rows[4].find("  winner") != std::string::npos);
    std::set<std::string> candidates;
    for (std::size_t i = 4; i < rows.size(); ++i)
        CHECK(candidates.insert(rows[i].substr(rows[i].rfind("  "))).second);
    const nlohmann::json winners = tuned.sandbox.run({"list", "rmsnorm", "rows=16", "--json"}).json();
    CHECK(rows[4].ends_with("  " + winners["data"]["winners"][0]["candidate"].get<std::string>()));
    Sandbox::Words json = words;
    json.emplace_back("--json");
    CHECK(tuned.sandbox.run(json).json()["data"]["trials"].size() > candidates.size());
    for (const std::size_t columns : {60, 80, 120}) {
        CAPTURE(columns);
        tuned.sandbox.set("COLUMNS", std::to_string(columns));
        for (const std::string& line : lines_of(tuned.sandbox.run(words).out))
            CHECK(columns_of(line) <= columns);
    }
}

TEST_CASE("list, show and export agree about what there is, packaged winners too") {
    Tuned tuned;
    tuned.sandbox.unset("HONE_PACKAGED");
    const nlohmann::json listed = tuned.sandbox.run({"list", "linear", "--json"}).json()["data"]["winners"];
    REQUIRE_FALSE(listed.empty());
    const Ended exported = tuned.sandbox.run({"export", "linear", "--json"});
    CHECK(exported.json()["data"]["rows"] == listed.size());
    Sandbox::Words words{"show", "linear"};
    for (const char* fields : {"static", "dynamic"}) {
        std::istringstream text(listed[0][fields].get<std::string>());
        for (std::string word; text >> word;) words.push_back(word);
    }
    const Ended shown = tuned.sandbox.run(words);
    CHECK(shown.code == 0);
    CHECK(shown.out.find("winner, ") != std::string::npos);
    CHECK(shown.out.find("packaged") != std::string::npos);
}

TEST_CASE("--model selects what a model's layers run") {
    const Tuned tuned;
    const auto count = [&](Sandbox::Words words) {
        words.emplace_back("--json");
        return tuned.sandbox.run(words).json()["data"];
    };
    CHECK(count({"list", "--model", "llama-3-8b"})["winners"].size() == 3);
    CHECK(count({"list", "--model", "llama-3-8b", "rows=16"})["winners"].size() == 1);
    CHECK(count({"list", "--model", "llama-3-8b", "--dtype", "Float16"})["winners"].empty());
    CHECK(count({"list", "--model", "gpt2"})["winners"].empty());
    CHECK(count({"export", "--model", "llama-3-8b"})["rows"] == 3);
    CHECK(tuned.sandbox.run({"export", "--model", "gpt2"}).code == 1);
    CHECK(count({"show", "--model", "llama-3-8b", "rows=16"})["trials"].size() > 3);
    CHECK(count({"show", "--model", "gpt2"})["trials"].empty());
    CHECK(tuned.sandbox.run({"list", "--model", "gtp2"}).err.find("did you mean 'gpt2'") !=
          std::string::npos);
}

TEST_CASE("operators and element types have the names that C++, Python and PyTorch give them, in any case") {
    const Tuned tuned;
    const auto count = [&](const Sandbox::Words& words) {
        return tuned.sandbox.run(words).json()["data"]["winners"].size();
    };
    for (const char* op : {"RmsNorm", "rms_norm", "RMSNORM", "rmsnorm"})
        CHECK(count({"list", op, "dtype=BFloat16", "--json"}) == 3);
    CHECK(count({"list", "LayerNorm", "--json"}) == 0);
    CHECK(count({"list", "rmsnorm", "dtype=half", "--json"}) == 0);
    const Ended shown = tuned.sandbox.run({"show", "RmsNorm", "dtype=BF16", "hidden=4096", "rows=16"});
    CHECK(shown.out.starts_with("rmsnorm dtype=bf16 output=same residual=no hidden=4096 rows=16\n"));
    const nlohmann::json attention =
        tuned.sandbox.run({"tune", "llama-3-8b", "--op", "attention", "--dry-run", "--json"}).json();
    std::set<std::string> families;
    for (const nlohmann::json& each : attention["data"]["problems"]) {
        const auto problem = each["problem"].get<std::string>();
        families.insert(problem.substr(0, problem.find(' ')));
    }
    CHECK(families == std::set<std::string>{"attention_decode", "attention_prefill"});
    const Ended one = tuned.sandbox.run(
        {"tune", "--op", "Attention", "--fields",
         "dtype=Half heads=8 kv_heads=2 head_dim=64 batch=4 q_tokens=1 kv_len=256", "--dry-run", "--json"});
    INFO(one.err);
    const nlohmann::json problems = one.json()["data"]["problems"];
    REQUIRE(problems.size() == 1);
    CHECK(problems[0]["problem"].get<std::string>().starts_with("attention_decode dtype=fp16 "));
    CHECK(tuned.sandbox.run({"spaces", "Attention", "--json"}).json()["data"]["families"].size() == 2);
}

TEST_CASE("an operator that shares its family selects its own problems, for every command the same") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    REQUIRE(
        sandbox.run({"tune", "llama-3-8b", "--op", "linear", "--tokens", "16", "--effort", "quick", "--json"})
            .code == 0);
    const auto of_list = [&](const Sandbox::Words& words) {
        std::multiset<std::string> found;
        const nlohmann::json data = sandbox.run(words).json()["data"];
        for (const nlohmann::json& each : data["winners"]) found.insert(each["static"]);
        return found;
    };
    const auto of_tune = [&](const std::string& op) {
        std::multiset<std::string> found;
        const nlohmann::json data =
            sandbox.run({"tune", "llama-3-8b", "--op", op, "--tokens", "16", "--dry-run", "--json"})
                .json()["data"];
        for (const nlohmann::json& each : data["problems"]) {
            const auto text = each["problem"].get<std::string>();
            found.insert(text.substr(7, text.rfind(' ') - 7));
        }
        return found;
    };
    const std::map<std::string, std::size_t> counts{
        {"FusedFfn", 2}, {"fused_ffn", 2}, {"Linear", 4}, {"LINEAR", 4}, {"linear", 5}};
    for (const auto& [op, count] : counts) {
        CAPTURE(op);
        const auto tuned = of_tune(op);
        CHECK(tuned.size() == count);
        CHECK(of_list({"list", op, "--json"}) == tuned);
        CHECK(of_list({"list", op, "--model", "llama-3-8b", "--json"}) == tuned);
        std::set<std::string> shown;
        const nlohmann::json data =
            sandbox.run({"show", op, "--model", "llama-3-8b", "--json"}).json()["data"];
        for (const nlohmann::json& each : data["trials"]) shown.insert(each["static"]);
        CHECK(shown == std::set<std::string>(tuned.begin(), tuned.end()));
    }
    const std::size_t all = of_list({"list", "linear", "--json"}).size();
    REQUIRE(sandbox.run({"cache", "clear", "--op", "FusedFfn", "--yes"}).code == 0);
    CHECK(of_list({"list", "FusedFfn", "--json"}).empty());
    CHECK(of_list({"list", "linear", "--json"}).size() + 2 == all);
    CHECK(sandbox.run({"list", "FusedFn"}).err.find("did you mean 'FusedFfn'") != std::string::npos);
}

TEST_CASE("predictions stand under an architecture, not under a GPU that is not here") {
    Sandbox sandbox;
    sandbox.set("HONE_DATA_DIR", sandbox.path("empty").string());
    std::filesystem::create_directory(sandbox.path("empty"));
    const Sandbox::Words words{"tune",     "--op", "rmsnorm",  "--fields", "dtype=bf16 hidden=4096",
                               "--tokens", "16",   "--effort", "quick",    "--offline",
                               "--arch",   "sm_80"};
    const Ended tuned = sandbox.run(words);
    INFO(tuned.err);
    REQUIRE(tuned.code == 0);
    for (const Ended& ended : {tuned, sandbox.run({"list"}),
                               sandbox.run({"show", "rmsnorm", "dtype=bf16", "hidden=4096", "rows=16"})}) {
        CHECK(ended.out.find("predicted for sm_80") != std::string::npos);
        CHECK(ended.out.find("NVIDIA") == std::string::npos);
    }
    CHECK(sandbox.run({"list", "--gpu", "sm_80", "--json"}).json()["data"]["winners"].size() == 1);
    CHECK(sandbox.run({"list", "--gpu", "nvidia", "--json"}).json()["data"]["winners"].empty());
}
