// hone list: tables that fit the page, what is shown of which winner, and filters.
#include <doctest/doctest.h>

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
    CHECK(lines[0] == "gpu,layer,operator,fields,sizes,winner,us,provenance,trust,tuned_at\r");
    for (std::size_t i = 1; i < lines.size(); ++i) {
        CHECK(lines[i].starts_with('"'));  // the GPU's name has commas
        CHECK(lines[i].find(",user,rmsnorm,") != std::string::npos);
    }
    CHECK(tuned.sandbox.run({"list", "--csv", "--wide"}).code == 2);
}
