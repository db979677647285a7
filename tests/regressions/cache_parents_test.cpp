// A cache that others can replace is no cache.
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/cli/program.h"

using namespace hone::test;
namespace fs = std::filesystem;

namespace {

/// Writes to "parent/own/cache.db" in the sandbox.
Ended open_below(Sandbox& sandbox) {
    sandbox.set("HONE_CACHE", sandbox.path("parent/own/cache.db").string());
    return sandbox.run({"import", HONE_SOURCE_DIR "/configs/tuned/h100-sxm.json", "--json"});
}

void check_refused(const Ended& ended, const std::string& why) {
    CHECK(ended.code == 5);
    const nlohmann::json error = ended.json().at("error");
    CHECK(error.at("code") == "cache_unsafe_permissions");
    CHECK_MESSAGE(error.at("message").get<std::string>().find(why) != std::string::npos, error.at("message"));
}

}  // namespace

TEST_CASE("a cache below a folder that everybody may write is refused, but with the sticky bit") {
    Sandbox sandbox;
    fs::create_directories(sandbox.path("parent/own"));
    REQUIRE(::chmod(sandbox.path("parent/own").c_str(), 0700) == 0);
    REQUIRE(open_below(sandbox).code == 0);
    REQUIRE(::chmod(sandbox.path("parent").c_str(), 0777) == 0);
    check_refused(open_below(sandbox), "/parent: may be written by everybody (mode 0777)");
    REQUIRE(::chmod(sandbox.path("parent").c_str(), 01777) == 0);
    CHECK(open_below(sandbox).code == 0);
    REQUIRE(::chmod(sandbox.path("parent").c_str(), 0775) == 0);  // a group of its own is usual
    CHECK(open_below(sandbox).code == 0);
}

TEST_CASE("a cache below a folder of another user is refused") {
    Sandbox sandbox;
    fs::create_directories(sandbox.path("parent/own"));
    REQUIRE(::chmod(sandbox.path("parent/own").c_str(), 0700) == 0);
    if (::chown(sandbox.path("parent").c_str(), 12345, 12345) != 0) {
        MESSAGE("skipped: only root can give a folder away");
        return;
    }
    check_refused(open_below(sandbox), "/parent: belongs to user 12345");
}
