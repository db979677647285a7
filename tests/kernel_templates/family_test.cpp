#include "kernel_templates/family.h"

#include <doctest/doctest.h>

#include "kernel_templates/catalog.h"

using namespace hone;

TEST_CASE("a candidate's text is refused when a tunable is unknown, missing, repeated or undeclared") {
    const Family& family = *find_family("rmsnorm");
    const std::string good = "streamed_row threads=256 vector=8 store_hint=0 programmatic=1";
    REQUIRE(parse_candidate(family, good));
    const auto error_of = [&](const std::string& text) {
        std::string error;
        CHECK_FALSE(parse_candidate(family, text, &error));
        return error;
    };
    CHECK(error_of("streamed_rows threads=256").find("did you mean 'streamed_row'") != std::string::npos);
    CHECK(error_of("streamed_row threads=256").find("'vector' is missing") != std::string::npos);
    CHECK(error_of(good + " threads=256").find("given twice") != std::string::npos);
    CHECK(error_of("streamed_row thread=256").find("did you mean 'threads'") != std::string::npos);
    CHECK(error_of("streamed_row threads=257 vector=8").find("'257'") != std::string::npos);
    CHECK(error_of("streamed_row threads=256;rm vector=8").find("'256;rm'") != std::string::npos);
}
