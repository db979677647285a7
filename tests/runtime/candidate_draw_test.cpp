#include "tests/runtime/candidate_draw.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

#include "kernel_templates/device_traits.h"
#include "kernel_templates/linear/variants.h"

using namespace hone;
using namespace hone::test;

namespace {

DeviceTraits hopper() { return *representative_device({9, 0, true}); }

Problem linear_problem(int tokens) {
    return *parse_problem("linear dtype=bf16 in=1032 out=4104 tokens=" + std::to_string(tokens));
}

std::size_t pairs_of(const Problem& problem, const std::vector<Candidate>& candidates) {
    SeenPairs seen;
    for (const Candidate& candidate : candidates) seen.add(problem, *candidate.variant, candidate.config);
    return seen.count();
}

}  // namespace

TEST_CASE("pairs of values are counted once, those of a tunable and a field, too") {
    const Problem problem = linear_problem(3);
    const Config config = *linear::ring.fallback(problem, hopper());
    const std::size_t tunables = linear::ring.tunables.size();
    const std::size_t pairs = tunables * (tunables - 1) / 2 + tunables * problem.family->fields.size();
    SeenPairs seen;
    CHECK(seen.added_by(problem, linear::ring, config) == pairs);
    seen.add(problem, linear::ring, config);
    CHECK(seen.count() == pairs);
    CHECK(seen.added_by(problem, linear::ring, config) == 0);
    CHECK(seen.added_by(linear_problem(4), linear::ring, config) == tunables);  // tokens are another
}

TEST_CASE("candidates that are drawn have more pairs of values than as many at random") {
    constexpr std::size_t count = 8;
    for (const Variant* variant : {&linear::ring, &linear::wgmma}) {
        CAPTURE(variant->name);
        const Problem problem = linear_problem(40);
        const std::vector<Config> configs = enumerate(problem, *variant, hopper());
        CandidateDraw draw(hopper());
        const std::vector<Candidate> drawn = draw.of_variant(problem, *variant, count, any_candidate);
        REQUIRE(drawn.size() == count);
        const std::size_t found = pairs_of(problem, drawn);
        std::mt19937 random(1);
        for (int round = 0; round < 20; ++round) {
            std::vector<Candidate> others;
            for (std::size_t i = 0; i < count; ++i)
                others.push_back({variant, configs[random() % configs.size()]});
            CHECK(pairs_of(problem, others) < found);
        }
    }
}

TEST_CASE("sizes of the same static fields have the same candidates, where these are allowed") {
    CandidateDraw draw(hopper());
    std::set<Config> all;
    for (const int tokens : {5, 6, 7, 8, 9, 12, 13, 16}) {
        CAPTURE(tokens);
        const Problem problem = linear_problem(tokens);
        const std::vector<Candidate> drawn = draw.of_variant(problem, linear::ring, 6, any_candidate);
        CHECK(drawn.size() >= 6);
        for (const Candidate& candidate : drawn) {
            CHECK(allowed(problem, candidate, hopper()));
            all.insert(candidate.config);
        }
    }
    CHECK(all.size() <= 16);  // 48, if each had its own
}

TEST_CASE("draws are the same every time, what does not suit is left out, and the fallback comes first") {
    const Problem problem = linear_problem(40);
    const auto suits = [](const Candidate& candidate) { return candidate.variant->name != "wgmma"; };
    const auto drawn = [&] { return CandidateDraw(hopper()).with_fallback(problem, 3, suits); };
    const std::vector<Candidate> candidates = drawn();
    CHECK(candidates == drawn());
    CHECK(std::ranges::all_of(candidates, suits));
    const Candidate first = *fallback(problem, hopper());
    CHECK(std::ranges::count(candidates, first) == (suits(first) ? 1 : 0));
    for (const Variant* variant : problem.family->variants) {
        CAPTURE(variant->name);
        const auto of_variant = [&](const Candidate& one) { return one.variant == variant && one != first; };
        const auto many = std::ranges::count_if(candidates, of_variant);
        CHECK(many == (variant->name == "wgmma" || enumerate(problem, *variant, hopper()).empty() ? 0 : 3));
    }
}

TEST_CASE("where one config is asked for, the fallback stands for its variant every second time") {
    CandidateDraw draw(hopper());
    for (int round = 0; round < 4; ++round) {
        CAPTURE(round);
        const Problem problem = *parse_problem(
            "linear dtype=bf16 in=1032 out=" + std::to_string(4104 + 8 * round) + " tokens=40");
        const Candidate first = *fallback(problem, hopper());
        const std::vector<Candidate> drawn = draw.with_fallback(problem, 1, any_candidate);
        for (const Variant* variant : problem.family->variants) {
            CAPTURE(variant->name);
            const auto many = std::ranges::count(drawn, variant, &Candidate::variant);
            const bool has_any = !enumerate(problem, *variant, hopper()).empty();
            CHECK(many == (variant == first.variant ? 2 - round % 2 : has_any ? 1 : 0));
        }
    }
}
