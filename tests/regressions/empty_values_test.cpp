// Options whose value is empty, as a script writes them whose variable is unset: `cache clear --op "$OP"
// --yes`.
#include <doctest/doctest.h>

#include "tests/cli/program.h"

using namespace hone::test;

namespace {

const Sandbox::Words one_norm{"tune",     "--op", "rmsnorm",  "--fields", "dtype=bf16 hidden=4096",
                              "--tokens", "1",    "--effort", "quick"};

std::size_t winners_in(const Sandbox& sandbox) {
    return sandbox.run({"list", "--json"}).json()["data"]["winners"].size();
}

}  // namespace

TEST_CASE("clearing the operator of an unset variable clears nothing") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    REQUIRE(sandbox.run(one_norm).code == 0);
    REQUIRE(winners_in(sandbox) == 1);
    for (const Sandbox::Words& words :
         {Sandbox::Words{"cache", "clear", "--op", "", "--yes"}, {"cache", "clear", "--op=", "--yes"}}) {
        const Ended ended = sandbox.run(words);
        CHECK(ended.code == 2);
        CHECK(ended.err.find("--op: the value is empty: give one, or leave the option out") !=
              std::string::npos);
        CHECK(winners_in(sandbox) == 1);
    }
    CHECK(sandbox.run({"cache", "clear", "--op", "rmsnorm", "--yes"}).code == 0);
    CHECK(winners_in(sandbox) == 0);
}

TEST_CASE("what an unset variable selects, limits or names is no selection, limit or name") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    REQUIRE(sandbox.run(one_norm).code == 0);
    for (const Sandbox::Words& words : {Sandbox::Words{"export", "--model", ""},
                                        {"export", "--gpu", ""},
                                        {"export", "--captured", ""},
                                        {"export", "-o", ""},
                                        {"list", "--compare", ""},
                                        {"tune", "gpt2", "--dry-run", "--budget", ""},
                                        {"tune", "gpt2", "--dry-run", "--shard", ""},
                                        {"tune", "gpt2", "--dry-run", "--tokens", ""},
                                        {"tune", "gpt2", "--dry-run", "--record", ""},
                                        {"tune", "gpt2", "--dry-run", "--record="},
                                        {"export", "--model=", "-o", "winners.json"},
                                        {"model", ""},
                                        {"import", ""}}) {
        const Ended ended = sandbox.run(words);
        CAPTURE(words[1]);
        CAPTURE(ended.err);
        CHECK(ended.code == 2);
        CHECK(ended.err.find("the value is empty") != std::string::npos);
        CHECK(ended.out.empty());
    }
    CHECK(sandbox.run({"tune", "gpt2", "--dry-run", "--op", "LayerNorm", "--replay"}).code == 0);
}

TEST_CASE("a value that ends like an empty option is a value") {
    const Sandbox sandbox;
    const Ended ended = sandbox.run({"tune", "--op", "rmsnorm", "--fields", "--- hidden =", "--dry-run"});
    CHECK(ended.code == 2);
    CHECK(ended.err.find("no option") == std::string::npos);
    CHECK(ended.err.find("'---' is not of the form") != std::string::npos);
}
