#include "cli/dispatched.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"

using namespace hone;
using namespace hone::cli;

namespace {

const DeviceTraits& h100() {
    static const DeviceTraits traits = *representative_device({9, 0, true});
    return traits;
}

Problem product(const std::string& fields, std::int64_t tokens) {
    return *parse_problem("linear in=4096 out=4096 " + fields + " tokens=" + std::to_string(tokens));
}

/// The n-th prediction won, the default left out, which is there whoever wins.
StoredTrial won(const Problem& problem, std::size_t n, const std::string& gpu = "NVIDIA H200") {
    std::vector<RankedCandidate> ranked = ranked_space(problem, h100());
    std::erase_if(ranked, [safe = fallback(problem, h100())](const RankedCandidate& one) {
        return one.candidate == safe;
    });
    const Candidate candidate = ranked.at(n).candidate;
    StoredTrial stored{.trial = {}, .layer = "packaged"};
    stored.trial.key = {{.name = gpu, .compute_major = 9, .compute_minor = 0, .sm_count = 132},
                        "linear",
                        static_text(problem),
                        dynamic_text(problem)};
    stored.trial.candidate = to_string(candidate);
    stored.trial.template_hash = template_hash(*candidate.variant);
    stored.trial.winner = true;
    stored.trial.timing.median_us = 2;
    return stored;
}

bool has(const std::vector<Candidate>& candidates, const StoredTrial& stored) {
    return std::ranges::any_of(
        candidates, [&](const Candidate& one) { return to_string(one) == stored.trial.candidate; });
}

}  // namespace

TEST_CASE(
    "what dispatch chooses is its own winner, a neighbour's, its kin's or the other type's, and the "
    "default") {
    const StoredTrial at_512 = won(product("dtype=bf16", 512), 3);
    const std::vector<StoredTrial> stored{at_512};
    Dispatched dispatched(h100(), stored);
    for (const std::string fields : {"dtype=bf16", "dtype=fp16", "dtype=bf16 residual=yes"}) {
        CAPTURE(fields);
        const std::vector<Candidate> choices = dispatched.choices(product(fields, 512));
        CHECK(has(choices, at_512));
        CHECK(std::ranges::find(choices, *fallback(product(fields, 512), h100())) != choices.end());
    }
    CHECK(has(dispatched.choices(product("dtype=bf16", 1024)), at_512));
    CHECK_FALSE(has(dispatched.choices(product("dtype=fp32", 512)), at_512));
}

TEST_CASE("each kind of GPU chooses its own winner, of two layers' the first") {
    const Problem problem = product("dtype=bf16", 512);
    const StoredTrial users = won(problem, 1);
    const StoredTrial packaged = won(problem, 2);
    const StoredTrial of_h100 = won(problem, 3, "NVIDIA H100 80GB HBM3");
    StoredTrial stale = won(product("dtype=bf16", 256), 4);
    stale.trial.template_hash = std::string(32, '0');
    const std::vector<StoredTrial> stored{users, packaged, of_h100, stale};
    Dispatched dispatched(h100(), stored);
    const std::vector<Candidate> choices = dispatched.choices(problem);
    CHECK(has(choices, users));
    CHECK_FALSE(has(choices, packaged));
    CHECK(has(choices, of_h100));
    CHECK_FALSE(has(dispatched.choices(product("dtype=bf16", 256)), stale));
}

TEST_CASE(
    "sizes between powers of two join where a winner has a bucket of its own there, up to the largest size") {
    const std::vector<StoredTrial> stored{won(product("dtype=bf16", 384), 1),
                                          won(product("dtype=bf16", 640), 1)};
    Dispatched dispatched(h100(), stored);
    for (const std::string dtype : {"dtype=bf16", "dtype=fp16"}) {
        const std::vector<Problem> asked{product(dtype, 256), product(dtype, 512)};
        std::vector<Problem> expected = asked;
        expected.push_back(product(dtype, 384));
        CHECK(dispatched.with_sizes_between(asked) == expected);
    }
}

TEST_CASE("between sizes those are made, too, that take other kernels") {
    const std::vector<StoredTrial> nothing;
    Dispatched dispatched(h100(), nothing);
    const std::string fields =
        "attention_append dtype=bf16 heads=32 kv_heads=8 head_dim=128 rotary_dim=128 page_size=16";
    const auto pair = [&](std::int64_t batch, std::int64_t kv_len) {
        return *parse_problem(fields + " batch=" + std::to_string(batch) +
                              " kv_len=" + std::to_string(kv_len));
    };
    const std::vector<Problem> tuned{pair(1, 256), pair(1, 4096), pair(16, 256), pair(16, 4096)};
    const std::vector<Problem> all = dispatched.with_sizes_between(tuned);
    CHECK(all.size() > tuned.size());
    std::vector<Candidate> made;
    for (const Problem& problem : all) {
        for (const Candidate& choice : dispatched.choices(problem)) made.push_back(choice);
    }
    for (std::int64_t batch = 1; batch <= 16; batch *= 2) {
        for (std::int64_t kv_len = 1; kv_len <= 4096; kv_len *= 2) {
            for (const Candidate& choice : dispatched.choices(pair(batch, kv_len)))
                CHECK(std::ranges::find(made, choice) != made.end());
        }
    }
    CHECK(dispatched.with_sizes_between({pair(16, 4096)}) == std::vector<Problem>{pair(16, 4096)});
}
