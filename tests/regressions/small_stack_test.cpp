// A table of 128 KiB on the stack ended every thread that has no more of one: those of `ulimit -s 128`, and
// an engine's.
#include <doctest/doctest.h>

#include "tests/cli/program.h"

using namespace hone::test;

#if !defined(__SANITIZE_ADDRESS__)  // which takes several times as much of a stack
TEST_CASE("images are compiled and kept by threads with small stacks") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const std::string command =
        R"(ulimit -s 128; exec "$0" tune --op rmsnorm --fields "dtype=bf16 hidden=512" --tokens 1)";
    const Ended ended = sandbox.run_other("/bin/sh", {"-c", command, HONE_PROGRAM});
    INFO(ended.err);
    CHECK(ended.code == 0);
    CHECK(sandbox.run({"cache", "stats", "--json"}).json()["data"]["images"] > 0);
}
#endif
