// umask 0777: what a user had made nobody could read, and hone quantize ended with "Device or resource busy".
#include <doctest/doctest.h>

#include <sys/stat.h>

#include "tests/cli/made_checkpoints.h"
#include "tests/cli/program.h"

using namespace hone::test;

TEST_CASE("files and folders that are made under any umask are their owner's to read") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    write_checkpoint(sandbox.path("in"), small_model());
    sandbox.set("HONE_CAPTURE", sandbox.path("calls.json").string());
    const std::string command =
        R"(umask 0777; "$0" tune --op rmsnorm --fields "dtype=bf16 hidden=512" --tokens 1 --record sweep.jsonl &&
           "$0" export -o winners.json && "$0" quantize in --format w4a16 -o packed &&
           "$0" generate )" HONE_SOURCE_DIR R"(/examples/tiny-llama -p a -n 1)";
    const Ended ended = sandbox.run_other("/bin/sh", {"-c", command, HONE_PROGRAM});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    for (const char* name : {"sweep.jsonl", "winners.json", "calls.json", "packed/model.safetensors"}) {
        CAPTURE(name);
        struct stat made {};
        REQUIRE(stat(sandbox.path(name).c_str(), &made) == 0);
        CHECK((made.st_mode & 0777) == 0600);
    }
    struct stat folder {};
    REQUIRE(stat(sandbox.path("packed").c_str(), &folder) == 0);
    CHECK((folder.st_mode & 0777) == 0700);
}
