// Errors about a cache that HONE_CACHE does not name: what they advise is about the file that was named.
#include <doctest/doctest.h>

#include <sys/stat.h>

#include "tests/cli/program.h"

using namespace hone::test;

TEST_CASE("merge and compare of a file that is no usable cache do not advise to move the user's cache") {
    Sandbox sandbox;
    const std::string text = sandbox.write("other.db", "no database, this one").string();
    const Ended merged = sandbox.run({"merge", text});
    CHECK(merged.code == 5);
    CHECK(merged.err.find("hint: name another file; this one was left as it is") != std::string::npos);
    const Ended missing = sandbox.run({"merge", sandbox.path("nowhere.db").string()});
    CHECK(missing.code == 5);
    CHECK(missing.err.find("or name another file") != std::string::npos);
    const std::string open = sandbox.write("open.db", "SQLite format 3").string();
    REQUIRE(chmod(open.c_str(), 0666) == 0);
    const Ended compared = sandbox.run({"list", "--compare", open});
    CHECK(compared.code == 5);
    CHECK(compared.err.find("or name another place") != std::string::npos);
    for (const Ended* ended : {&merged, &missing, &compared})
        CHECK(ended->err.find("HONE_CACHE") == std::string::npos);
}

TEST_CASE("what is wrong with the site's cache is mended by HONE_SITE_CACHE") {
    Sandbox sandbox;
    sandbox.set("HONE_SITE_CACHE", sandbox.write("site.db", "no database, this one").string());
    const Ended ended = sandbox.run({"explain", "rmsnorm", "dtype=bf16", "hidden=4096", "rows=16"});
    CHECK(ended.code == 0);
    CHECK(ended.err.find("the site cache is left out") != std::string::npos);
    CHECK(ended.err.find("set HONE_SITE_CACHE to another file") != std::string::npos);
    CHECK(ended.err.find("set HONE_CACHE") == std::string::npos);
}
