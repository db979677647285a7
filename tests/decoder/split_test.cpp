#include "decoder/tokenizer/split.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "decoder/tokenizer/pattern.h"
#include "tests/decoder/support.h"

using namespace hone::decoder;

namespace {

using Texts = std::vector<std::string>;

Texts split_at_dashes(SplitBehavior behavior, bool invert = false) {
    const std::string text = "the-final--countdown";
    std::vector<Span> matches;
    Pattern::of_text("-").find_all(text, matches);
    Texts out;
    for (const Span& span : split(text.size(), matches, behavior, invert))
        out.push_back(text.substr(span.begin, span.end - span.begin));
    return out;
}

}  // namespace

TEST_CASE("what becomes of matches") {
    CHECK(split_at_dashes(SplitBehavior::removed) == Texts{"the", "final", "countdown"});
    CHECK(split_at_dashes(SplitBehavior::isolated) == Texts{"the", "-", "final", "-", "-", "countdown"});
    CHECK(split_at_dashes(SplitBehavior::merged_with_previous) == Texts{"the-", "final-", "-", "countdown"});
    CHECK(split_at_dashes(SplitBehavior::merged_with_next) == Texts{"the", "-final", "-", "-countdown"});
    CHECK(split_at_dashes(SplitBehavior::contiguous) == Texts{"the", "-", "final", "--", "countdown"});
    CHECK(split_at_dashes(SplitBehavior::removed, true) == Texts{"-", "-", "-"});
}

TEST_CASE("empty matches cut, and leave nothing empty") {
    CHECK(split(3, {{0, 0}, {2, 2}, {3, 3}}, SplitBehavior::isolated, false) ==
          std::vector<Span>{{0, 2}, {2, 3}});
    CHECK(split(0, {}, SplitBehavior::isolated, false).empty());
}

TEST_CASE("a behavior is spelled as the file has it") {
    const nlohmann::json json = "Isolate";
    CHECK_THROWS_WITH(static_cast<void>(read_split_behavior(JsonPlace(json, "f.json: behavior"))),
                      "f.json: behavior: \"Isolate\": has to be Removed, Isolated, MergedWithPrevious, "
                      "MergedWithNext or Contiguous");
}
