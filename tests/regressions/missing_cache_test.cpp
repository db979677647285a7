// Caches that were named and are not there, or that cannot be looked at: `hone list` said of both that
// nothing is tuned yet.
#include <doctest/doctest.h>

#include "tests/cli/program.h"

using namespace hone::test;

TEST_CASE("a site's cache that is not there is missed by every command that reads it") {
    Sandbox sandbox;
    sandbox.set("HONE_SITE_CACHE", sandbox.path("site.db").string());
    for (const Sandbox::Words& words :
         {Sandbox::Words{"list"},
          Sandbox::Words{"explain", "rmsnorm", "dtype=bf16", "hidden=4096", "rows=1"}}) {
        CAPTURE(words.front());
        const Ended ended = sandbox.run(words);
        CHECK(ended.code == 0);
        CHECK(ended.err.find("site cache") != std::string::npos);
        CHECK(ended.err.find("site.db: cannot look at it") != std::string::npos);
    }
}

TEST_CASE("a cache that cannot be looked at is not taken for one that is not there") {
    Sandbox sandbox;
    CHECK(sandbox.run({"list"}).err.empty());
    sandbox.set("HONE_CACHE", sandbox.path(std::string(300, 'x')).string());
    const Ended ended = sandbox.run({"list"});
    CHECK(ended.code == 0);
    CHECK(ended.err.find("warning: user cache left out: ") != std::string::npos);
    CHECK(ended.err.find("File name too long") != std::string::npos);
}
