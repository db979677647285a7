// Programs that begin without standard streams: the first files that they open got the streams' numbers, and
// what was meant for a terminal was written into a checkpoint. Programs whose terminal goes, or whose stderr
// is on a full disk: a line that could not be written ended them.
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

TEST_CASE("a warning that cannot be written takes nothing from the answer") {
    Sandbox sandbox;
    sandbox.set("HONE_CACHE", sandbox.path("").string());
    const Ended ended = sandbox.run_other("/bin/sh", {"-c", "exec \"$0\" list 2>/dev/full", HONE_PROGRAM});
    CHECK(ended.code == 0);
    CHECK(ended.out == "nothing is tuned yet: hone tune MODEL\n");
}

TEST_CASE("a run that outlives its terminal goes on to the end") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("compile:sleep_us=100000");
    const std::string command =
        "trap '' HUP; exec \"$0\" tune --op rmsnorm --fields 'dtype=bf16 hidden=4096' --tokens 1 >tuned.txt";
    const Ended ended =
        sandbox.run_on_terminal_until("/bin/sh", {"-c", command, HONE_PROGRAM}, "0/1 problems");
    CHECK(ended.out.find("0/1 problems") != std::string::npos);  // a bar, which the terminal did not outlive
    CHECK(ended.code == 0);
    CHECK(sandbox.read("tuned.txt").find("1 problems: 1 tuned now") != std::string::npos);
}
