// Where the system starts no more threads (ulimit -u, or no room for their stacks), commands that could do
// without ended with "Resource temporarily unavailable".
#include <doctest/doctest.h>

#include "tests/cli/program.h"

using namespace hone::test;

#if !defined(__SANITIZE_ADDRESS__)  // which needs more room itself
namespace {

/// Room for the program's data, none for the stack of another thread.
Ended cramped(const Sandbox& sandbox, const std::string& words) {
    const std::string command = "ulimit -s 65536; ulimit -d 32768; exec \"$0\" " + words;
    return sandbox.run_other("/bin/sh", {"-c", command, HONE_PROGRAM});
}

}  // namespace

TEST_CASE("looking needs no second thread, and what does need one says which limit to raise") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const std::string norm = R"(--op rmsnorm --fields "dtype=bf16 hidden=512" --tokens 1)";
    for (const std::string& words :
         {std::string("list"), std::string("explain rmsnorm dtype=bf16 hidden=512 rows=1"),
          std::string("spaces rmsnorm"), "tune --dry-run " + norm}) {
        CAPTURE(words);
        const Ended ended = cramped(sandbox, words);
        CAPTURE(ended.err);
        CHECK(ended.code == 0);
    }
    const Ended tuned = cramped(sandbox, "tune " + norm);
    CHECK(tuned.code == 1);
    CHECK(tuned.err.find("no thread can be started") != std::string::npos);
    CHECK(tuned.err.find("ulimit -u") != std::string::npos);
    CHECK(sandbox.run({"cache", "verify"}).code == 0);
}
#endif
