// HONE_CAPTURE and --captured: what a process ran is tuned, listed and exported.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/cli/program.h"

using namespace hone::test;
using nlohmann::json;

namespace {

const std::string one_row = "rmsnorm dtype=bf16 output=same residual=no hidden=4096 rows=1";
const std::string many_rows = "rmsnorm dtype=bf16 output=same residual=no hidden=4096 rows=4096";
const std::string product =
    "linear dtype=bf16 activation=none gated=no norm=no bias=no residual=no in=4096 out=4096 tokens=16";

json entry(const std::string& problem, std::int64_t calls) {
    return {{"calls", calls}, {"gpu", "NVIDIA H200"}, {"problem", problem}};
}

std::string capture(const std::vector<json>& entries) {
    return json{{"schema", "hone.capture/1"}, {"problems", entries}}.dump();
}

/// The product once, one row often, many rows most of the time.
std::string usual_capture() {
    return capture({entry(product, 1), entry(one_row, 2'000), entry(many_rows, 900), entry(one_row, 1)});
}

std::vector<std::string> texts(const json& list, const char* member) {
    std::vector<std::string> found;
    for (const json& one : list) found.push_back(one[member]);
    return found;
}

}  // namespace

TEST_CASE("a capture's problems are tuned in the order of the time that they take") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const std::string file = sandbox.write("engine.json", usual_capture()).string();
    const json planned = sandbox.run({"tune", "--captured", file, "--dry-run", "--json"}).json()["data"];
    CHECK(planned["name"] == "engine.json");
    const std::vector<std::string> order = texts(planned["captured"], "problem");
    REQUIRE(order.size() == 3);
    CHECK(order.front() == many_rows);
    CHECK(order[1] == one_row);
    CHECK(texts(planned["problems"], "problem") == order);
    CHECK(planned["captured"][1]["calls"] == 2001);
    double total = 0;
    for (const json& use : planned["captured"]) total += use["share"].get<double>();
    CHECK(total == doctest::Approx(1));
    const Ended shown = sandbox.run({"tune", "--captured", file, "--dry-run"});
    CHECK(shown.out.find("of the time") != std::string::npos);

    const Ended tuned = sandbox.run({"tune", "--captured", file, "--json"});
    INFO(tuned.err);
    REQUIRE(tuned.code == 0);
    std::vector<std::string> measured = texts(tuned.json()["data"]["runs"][0]["problems"], "problem");
    CHECK(measured.size() == 3);
    CHECK(std::ranges::is_permutation(measured, order));
}

TEST_CASE("with a budget the most important problem has its winner first") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const std::string file = sandbox.write("engine.json", usual_capture()).string();
    const Ended tuned = sandbox.run({"tune", "--captured", file, "--op", "RmsNorm", "--json"});
    REQUIRE(tuned.code == 0);
    const json problems = tuned.json()["data"]["captured"];
    CHECK(texts(problems, "problem") == std::vector{many_rows, one_row});
    const Ended first = sandbox.run({"tune", "--captured", file, "--shard", "1/2", "--dry-run", "--json"});
    const Ended second = sandbox.run({"tune", "--captured", file, "--shard", "2/2", "--dry-run", "--json"});
    CHECK(first.json()["data"]["problems"].size() + second.json()["data"]["problems"].size() == 3);
    CHECK(first.json()["data"]["captured"].size() == first.json()["data"]["problems"].size());
}

TEST_CASE("list and export select what was captured, and an export says what it is for") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const std::string file = sandbox.write("engine [1].json", usual_capture()).string();
    REQUIRE(sandbox.run({"tune", "--captured", file}).code == 0);
    REQUIRE(sandbox.run({"tune", "--op", "RmsNorm", "--fields", "dtype=bf16 hidden=512 rows=1"}).code == 0);
    CHECK(sandbox.run({"list", "--json"}).json()["data"]["winners"].size() == 4);
    CHECK(sandbox.run({"list", "--captured", file, "--json"}).json()["data"]["winners"].size() == 3);
    const std::string exported = sandbox.path("winners.json").string();
    REQUIRE(sandbox.run({"export", "--captured", file, "-o", exported}).code == 0);
    const json bundle = json::parse(sandbox.read("winners.json"));
    CHECK(bundle["winners"].size() == 3);
    CHECK(bundle["for"]["name"] == "engine__1_.json");
    CHECK(bundle["for"]["shares"].size() == 3);
    CHECK(bundle["for"]["shares"][many_rows].get<double>() > 0.5);

    Sandbox other;
    const Ended imported = other.run({"import", exported});
    INFO(imported.err);
    CHECK(imported.code == 0);
    CHECK(imported.out.find("made for engine__1_.json") != std::string::npos);
    CHECK(other.run({"import", exported, "--json"}).json()["data"]["for"] == "engine__1_.json");
}

TEST_CASE("an export of a model says which one") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const Sandbox::Words model{"gpt2", "--op", "layernorm", "--tokens", "1"};
    Sandbox::Words words{"tune"};
    words.insert(words.end(), model.begin(), model.end());
    REQUIRE(sandbox.run(words).code == 0);
    const json bundle = json::parse(sandbox.run({"export", "--model", "gpt2"}).out);
    CHECK(bundle["for"] == json{{"name", "gpt2"}, {"shares", json::object()}});
}

TEST_CASE("mistakes say what is allowed") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const std::string good = sandbox.write("good.json", usual_capture()).string();
    const std::string none = sandbox.write("none.json", capture({entry(one_row, 0)})).string();
    const std::string other =
        sandbox.write("other.json", R"({"schema": "hone.tuned/2", "problems": []})").string();
    const auto refused = [&](const Sandbox::Words& words, int code, const std::string& text) {
        const Ended ended = sandbox.run(words);
        CAPTURE(ended.err);
        CHECK(ended.code == code);
        CHECK(ended.err.find(text) != std::string::npos);
    };
    refused({"tune", "--captured", good, "gpt2"}, 2, "not with a MODEL");
    refused({"tune", "--captured", good, "--tokens", "1"}, 2, "not with --tokens, --dtype or --tp");
    refused({"tune", "--captured", good, "--op", "RmsNorm", "--fields", "rows=1"}, 2,
            "without a MODEL or --captured");
    refused({"tune", "--captured", none}, 2, "HONE_CAPTURE=");
    refused({"tune", "--captured", other}, 2, "its schema is not \"hone.capture/1\"");
    refused({"tune", "--captured", sandbox.path("missing").string()}, 2, "missing");
    refused({"list", "--captured", good, "--model", "gpt2"}, 2, "excludes");
}

TEST_CASE("problems of another build are left out by name") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const std::string file =
        sandbox
            .write("engine.json", capture({entry("grouped_linear experts=8 tokens=1", 5), entry(one_row, 1)}))
            .string();
    const Ended ended = sandbox.run({"tune", "--captured", file, "--dry-run", "--json"});
    CHECK(ended.code == 0);
    CHECK(ended.json()["data"]["problems"].size() == 1);
    CHECK(ended.err.find("left out: grouped_linear experts=8 tokens=1") != std::string::npos);
}

TEST_CASE("names in a capture or a bundle begin no line of their own") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const std::string forged = "rmsnorm x\nwarning: the cache is damaged\nhone: warning: so is this\033[2J";
    const std::string file =
        sandbox.write("engine.json", capture({entry(forged, 5), entry(one_row, 1)})).string();
    const auto begins_one_message = [](const Ended& ended, const std::string& word) {
        CAPTURE(ended.err);
        CHECK_FALSE(has_controls(ended.err));
        CHECK(ended.err.find("the cache is damaged") != std::string::npos);
        const std::vector<std::string> lines = lines_of(ended.err);
        const auto begins = [&](const std::string& line) { return line.starts_with(word); };
        CHECK(std::ranges::count_if(lines, begins) == 1);
        for (const std::string& line : lines) CHECK((begins(line) || line.starts_with("  ")));
    };
    begins_one_message(sandbox.run({"tune", "--captured", file, "--dry-run"}), "warning:");
    const std::string bundle =
        sandbox.write("bundle.json", json{{"schema", "hone.tuned/3"}, {forged, 1}}.dump()).string();
    begins_one_message(sandbox.run({"import", bundle}), "error:");
    begins_one_message(sandbox.run({"import", sandbox.path(forged).string()}), "usage error:");
    begins_one_message(sandbox.run({"tune", "--captured", sandbox.path(forged).string()}), "usage error:");
}
