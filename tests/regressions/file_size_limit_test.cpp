// ulimit -f: a file that may not grow on ended the program by SIGXFSZ, without a word.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/cli/made_checkpoints.h"
#include "tests/cli/program.h"

using namespace hone::test;

namespace {

/// With files of `blocks` times 512 bytes at most.
Ended limited(const Sandbox& sandbox, int blocks, const std::string& words) {
    const std::string command = "ulimit -f " + std::to_string(blocks) + "; exec \"$0\" " + words;
    return sandbox.run_other("/bin/sh", {"-c", command, HONE_PROGRAM});
}

}  // namespace

TEST_CASE("a file that may not grow on is an error with words, and leaves nothing behind") {
    const Sandbox sandbox;
    write_checkpoint(sandbox.path("in"), small_model());
    REQUIRE(sandbox.run({"import", HONE_SOURCE_DIR "/configs/tuned/h100-sxm.json"}).code == 0);
    for (const std::string words :
         {"quantize in --format w4a16 -o out", "export -o winners.json", "report -o page.html"}) {
        CAPTURE(words);
        const Ended ended = limited(sandbox, 1, words);
        CHECK(ended.code == 1);
        CHECK(ended.err.find("File too large") != std::string::npos);
        CHECK(ended.err.find("ulimit -f") != std::string::npos);
    }
    for (const char* made : {"out", "winners.json", "page.html"})
        CHECK_FALSE(std::filesystem::exists(sandbox.path(made)));
}

TEST_CASE("a cache that may not grow on is an error with words, and loses nothing") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const Sandbox::Words tune{"tune",     "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=1024",
                              "--tokens", "1"};
    REQUIRE(sandbox.run(tune).code == 0);
    const std::string known = sandbox.run({"export"}).out;
    const std::string more = R"(tune --op rmsnorm --fields "dtype=bf16 hidden=2048" --tokens 1,2,4)";
    for (const int blocks : {0, 1, 8, 64}) {
        CAPTURE(blocks);
        const Ended ended = limited(sandbox, blocks, more);
        CHECK(ended.code < 128);
        if (ended.code != 0) CHECK_FALSE(ended.err.empty());
        CHECK(sandbox.run({"export", "hidden=1024"}).out == known);
    }
    CHECK(sandbox.run({"cache", "verify"}).code == 0);
}
