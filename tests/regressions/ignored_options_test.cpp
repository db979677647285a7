// Options that did nothing and said nothing, and a pipe that held `hone list --compare` up.
#include <doctest/doctest.h>

#include <sys/stat.h>

#include "tests/cli/program.h"

using namespace hone::test;

TEST_CASE("list --compare refuses a pipe that nobody writes to, and does not wait for it") {
    Sandbox sandbox;
    const std::string pipe = sandbox.path("pipe").string();
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    const Ended ended = sandbox.run({"list", "--compare", pipe});
    CHECK(ended.code == 2);
    CHECK(ended.err.find(pipe + ": not a regular file") != std::string::npos);
}

TEST_CASE("options that have no effect are refused") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const auto refused = [&](const Sandbox::Words& words, int code, const std::string& text) {
        const Ended ended = sandbox.run(words);
        CAPTURE(ended.err);
        CHECK(ended.code == code);
        CHECK(ended.err.find(text) != std::string::npos);
    };
    const Sandbox::Words norm{"--op", "rmsnorm", "--fields", "dtype=bf16 hidden=4096", "--tokens", "1"};
    const auto with = [&](const char* command, const Sandbox::Words& more) {
        Sandbox::Words words{command};
        words.insert(words.end(), norm.begin(), norm.end());
        words.insert(words.end(), more.begin(), more.end());
        return words;
    };
    refused(with("tune", {"--dry-run", "--tp", "2"}), 2, "--tp 2 divides a MODEL's sizes");
    refused(with("tune", {"--dry-run", "--tp", "-1"}), 2, "--tp -1 divides a MODEL's sizes");
    refused(with("compile", {"--tp", "2"}), 2, "--tp 2 divides a MODEL's sizes");
    refused(with("tune", {"--dry-run", "--gpu", "first"}), 2, "--gpu 'first': give a number or 'all'");
    refused(with("tune", {"--dry-run", "--gpu", "7"}), 3, "--gpu 7: this machine has GPUs 0 to 0");
    refused(with("tune", {"--budget", "soon"}), 2, "--budget: 'soon' is no duration");
    refused({"explain", "rmsnorm", "dtype=bf16", "hidden=4096", "rows=16", "--gpu", "0", "--arch", "sm_80"},
            2, "excludes");
    CHECK(sandbox.run(with("tune", {"--dry-run", "--gpu", "all"})).code == 0);
    CHECK(sandbox.run(with("tune", {"--dry-run", "--gpu", "0"})).code == 0);
}
