// Errors quote what they were given, but not all of it; a bundle that is too long is refused as a bundle.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/cli/program.h"

using namespace hone::test;

namespace {

constexpr std::size_t most_bytes = 2000;

}  // namespace

TEST_CASE("an error shows the ends of a long value, and what is allowed") {
    const Sandbox sandbox;
    const std::string value(100'000, 'x');
    sandbox.write("model.json", R"({"model_type": "llama", "hidden_size": ")" + value + value + "\"}");
    sandbox.write("keys.json", "{\"" + value + "\": 1, \"" + value + "\": 2}");
    sandbox.write("bundle.json", R"({"schema": ")" + value + "\"}");
    const std::vector<Sandbox::Words> commands{{value},
                                               {"tune", value},
                                               {"tune", "--" + value},
                                               {"tune", "llama-3-8b", "--effort", value},
                                               {"tune", "model.json", "--dry-run"},
                                               {"tune", "keys.json", "--dry-run"},
                                               {"import", "bundle.json"},
                                               {"import", value},
                                               {"explain", value, "rows=1"},
                                               {"explain", "rmsnorm", "dtype=" + value},
                                               {"quantize", value, "--format", "w4a16", "-o", "out"}};
    for (Sandbox::Words words : commands) {
        CAPTURE(words.front().substr(0, 20));
        const Ended ended = sandbox.run(words);
        CHECK(ended.code != 0);
        CHECK_MESSAGE(ended.err.size() < most_bytes, ended.err.substr(0, most_bytes));
        words.emplace_back("--json");
        const Ended json = sandbox.run(words);
        CHECK(json.out.size() < most_bytes);
        CHECK(json.json()["ok"] == false);
    }
}

TEST_CASE("a bundle of more than 16 MiB is refused with 6") {
    const Sandbox sandbox;
    std::filesystem::resize_file(sandbox.write("long.json", "{"), (std::size_t{16} << 20) + 1);
    const Ended ended = sandbox.run({"import", "long.json", "--json"});
    CHECK(ended.code == 6);
    CHECK(ended.json()["error"]["message"] == "long.json: 16777217 bytes; allowed are up to 16777216");
    CHECK(sandbox.run({"import", "no-such-file.json"}).code == 2);
}
