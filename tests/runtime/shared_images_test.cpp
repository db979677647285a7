#include "runtime/dispatch/shared_images.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "kernel_templates/calibration.h"
#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"
#include "runtime/dispatch/explain.h"
#include "tests/kernel_templates/drawn_cases.h"

namespace hone::runtime {
namespace {

const DeviceTraits& h100() {
    static const DeviceTraits traits = *representative_device({9, 0, true});
    return traits;
}

Problem parsed(const std::string& text) {
    std::string error;
    const auto problem = parse_problem(text, &error);
    REQUIRE_MESSAGE(problem, error);
    return *problem;
}

/// Calls of few queries, for which no GPU has winners.
Problem few_queries(std::int64_t q_tokens) {
    return parsed(
        "attention_decode dtype=bf16 kv_dtype=same causal=yes window=0 softcap=no lse=no lengths=no "
        "page_size=0 heads=32 kv_heads=8 head_dim=128 q_tokens=" +
        std::to_string(q_tokens) + " batch=16 kv_len=8192 q_len=" + std::to_string(q_tokens));
}

std::vector<std::optional<Choice>> each_by_itself(const BucketGrid& grid, const DeviceTraits& traits,
                                                  std::span<const KnownWinner> winners = {}) {
    std::vector<std::optional<Choice>> choices;
    for (std::size_t i = 0; i < grid.cells(); ++i) choices.push_back(choose(grid.last(i), winners, traits));
    return choices;
}

std::size_t images(std::span<const std::optional<Choice>> choices) {
    std::vector<Candidate> known;
    for (const auto& choice : choices) {
        const Candidate made = image_candidate(choice->candidate, h100().arch());
        if (std::ranges::find(known, made) == known.end()) known.push_back(made);
    }
    return known.size();
}

void check_slack(const BucketGrid& grid, std::span<const std::optional<Choice>> alone,
                 std::span<const std::optional<Choice>> together, const DeviceTraits& traits) {
    REQUIRE(alone.size() == together.size());
    for (std::size_t i = 0; i < alone.size(); ++i) {
        REQUIRE(alone[i].has_value() == together[i].has_value());
        if (!alone[i]) continue;
        const auto us = [&](const Choice& choice) {
            return predicted_us(grid.last(i), choice.candidate, traits);
        };
        CHECK(together[i]->candidate.variant == alone[i]->candidate.variant);
        CHECK(allowed(grid.last(i), together[i]->candidate, traits));
        CHECK(us(*together[i]) <= us(*alone[i]) * (1 + shared_image_slack) * 1.000001);
    }
}

TEST_CASE("fallbacks share images where the cost model holds them for nearly as fast") {
    std::size_t before = 0;
    std::size_t after = 0;
    for (const std::int64_t queries : {2, 4, 8, 16}) {
        const BucketGrid grid(few_queries(queries));
        const auto alone = each_by_itself(grid, h100());
        const auto together = choose_cells(grid, {}, h100());
        check_slack(grid, alone, together, h100());
        CHECK(images(together) <= images(alone));
        before += images(alone);
        after += images(together);
    }
    CHECK(before >= 30);
    CHECK(after <= 22);
}

TEST_CASE("what is measured stays, and fallbacks take its image where it is as good") {
    const BucketGrid grid(few_queries(4));
    const auto alone = each_by_itself(grid, h100());
    const Candidate common = alone.back()->candidate;
    KnownWinner winner{
        .problem = grid.last(grid.cells() - 1), .candidate = common, .trust = Trust::exact, .of_kin = {}};
    cache::LoadedWinner record;
    record.trial.candidate = to_string(common);
    winner.record = &record;
    const std::vector<KnownWinner> winners{winner};

    const auto by_itself = each_by_itself(grid, h100(), winners);
    const auto together = choose_cells(grid, winners, h100());
    check_slack(grid, by_itself, together, h100());
    std::size_t measured = 0;
    for (std::size_t i = 0; i < together.size(); ++i) {
        CHECK(together[i]->origin == by_itself[i]->origin);
        CHECK(together[i]->record == by_itself[i]->record);
        if (together[i]->record == nullptr) continue;
        CHECK(together[i]->candidate == by_itself[i]->candidate);
        ++measured;
    }
    CHECK(measured > 1);
    CHECK(measured < together.size());
    CHECK(images(together) < images(by_itself));
}

TEST_CASE("explain says what choose_cells says, also where small sizes are not needed") {
    const Problem largest = parsed(
        "attention_prefill dtype=bf16 causal=yes window=0 softcap=no lse=no lengths=none heads=32 "
        "kv_heads=8 head_dim=128 batch=16 q_len=2048 kv_len=8192");
    const WinnerTable nothing;
    Sizes least{};
    for (const std::int64_t least_queries : {1, 17}) {
        least[1] = least_queries;
        const BucketGrid grid(largest, least);
        const auto choices = choose_cells(grid, {}, h100());
        for (std::size_t i = 0; i < choices.size(); ++i) {
            const Explanation explained =
                explain(grid.last(i), largest, {.winners = &nothing, .traits = &h100()}, least);
            CHECK(explained.bucket.candidate == to_string(choices[i]->candidate));
        }
    }
}

TEST_CASE("fallbacks of every family are allowed and within the slack, on every device") {
    for (const Family* family : families()) {
        test::for_every_problem_and_device(
            *family, 4, [](const Problem& problem, const DeviceTraits& traits) {
                const BucketGrid grid(problem);
                check_slack(grid, each_by_itself(grid, traits), choose_cells(grid, {}, traits), traits);
            });
    }
}

}  // namespace
}  // namespace hone::runtime
