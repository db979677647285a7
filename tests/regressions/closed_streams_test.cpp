// Programs that begin without standard streams: the first files that they open got the streams' numbers, and
// what was meant for a terminal was written into a checkpoint.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/cli/made_checkpoints.h"
#include "tests/cli/program.h"

using namespace hone::test;

TEST_CASE("quantize writes the same checkpoint whichever standard streams are closed") {
    const Sandbox sandbox;
    write_checkpoint(sandbox.path("in"), small_model());
    REQUIRE(sandbox.run({"quantize", "in", "--format", "w4a16", "-o", "whole"}).code == 0);
    const std::string whole = sandbox.read("whole/model.safetensors");
    for (const std::string closed : {"2>&-", ">&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"}) {
        CAPTURE(closed);
        const std::string command = "exec \"$0\" quantize in --format w4a16 -o out " + closed;
        CHECK(sandbox.run_other("/bin/sh", {"-c", command, HONE_PROGRAM}).code == 0);
        CHECK(sandbox.read("out/model.safetensors") == whole);
        std::filesystem::remove_all(sandbox.path("out"));
    }
}
