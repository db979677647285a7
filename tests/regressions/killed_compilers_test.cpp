// The system kills compilers where memory is short. Their candidates were stored as ones that do not compile,
// and no later run tried them again.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/cli/program.h"

using namespace hone::test;
using nlohmann::json;

namespace {

const Sandbox::Words one_norm{"tune",     "--op", "rmsnorm",  "--fields", "dtype=bf16 hidden=1024",
                              "--tokens", "1",    "--retune", "--json"};

std::size_t failures_of(const Sandbox& sandbox) {
    const json trials = sandbox.run({"show", "rmsnorm", "dtype=bf16", "hidden=1024", "rows=1", "--json"})
                            .json()["data"]["trials"];
    return static_cast<std::size_t>(
        std::ranges::count_if(trials, [](const json& trial) { return trial["status"] != "ok"; }));
}

}  // namespace

TEST_CASE("a candidate whose compiler was killed has not failed, and one that crashes its compiler has") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("compile:signal=9:match=norm,threads=128");
    const Ended killed = sandbox.run(one_norm);
    INFO(killed.err);
    REQUIRE(killed.code == 0);
    CHECK(killed.json()["data"]["runs"][0]["problems"][0]["failed"] > 0);
    CHECK(failures_of(sandbox) == 0);

    sandbox.use_fake_gpus();
    const Ended again = sandbox.run(one_norm);
    REQUIRE(again.code == 0);
    CHECK(again.json()["data"]["runs"][0]["problems"][0]["failed"] == 0);

    Sandbox other;
    other.use_fake_gpus("compile:signal=11:match=norm,threads=128");
    REQUIRE(other.run(one_norm).code == 0);
    CHECK(failures_of(other) > 0);
}

TEST_CASE("a compile whose compiler was killed once is tried once more") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("compile:signal=9:match=norm:once=" + sandbox.path("killed").string());
    const Ended ended = sandbox.run(one_norm);
    REQUIRE(ended.code == 0);
    CHECK(sandbox.read("killed").empty());
    CHECK(ended.json()["data"]["runs"][0]["problems"][0]["failed"] == 0);
}
