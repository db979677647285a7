#include "kernel_templates/space.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>

#include "kernel_templates/catalog.h"

using namespace hone;

namespace {

const std::vector<std::string> problems{
    "rmsnorm dtype=bf16 hidden=4096 rows=1",
    "rmsnorm dtype=bf16 hidden=4096 residual=yes rows=8192",
    "rmsnorm dtype=fp32 hidden=65536 rows=64",
    "rmsnorm dtype=fp16 output=int8 hidden=4097 rows=333",
    "layernorm dtype=fp16 hidden=768 rows=1024",
    "layernorm dtype=fp32 output=fp8 residual=yes hidden=32 rows=7",
    "layernorm dtype=bf16 bias=no hidden=1 rows=1",
    "rmsnorm dtype=bf16 hidden=128 rows=65536",
    "attention_decode dtype=bf16 heads=32 kv_heads=8 head_dim=128 batch=16 kv_len=4096",
    "attention_decode dtype=fp16 kv_dtype=fp8_e4m3 causal=yes window=512 lse=yes lengths=yes "
    "page_size=16 heads=64 kv_heads=8 head_dim=128 q_tokens=4 batch=3 kv_len=1000",
    "attention_decode dtype=fp32 heads=5 kv_heads=5 head_dim=33 batch=1 kv_len=1",
    "rope_kv_append dtype=bf16 heads=32 kv_heads=8 head_dim=128 rotary_dim=128 tokens=512",
    "rope_kv_append dtype=fp16 kv_dtype=fp8_e4m3 style=interleaved norm=yes page_size=16 "
    "heads=6 kv_heads=2 head_dim=80 rotary_dim=20 tokens=33",
    "quantize_weights dtype=bf16 format=w4a16 group=128 in=4096 out=28672",
    "quantize_weights dtype=fp32 format=w4a16 zeros=yes scale_dtype=fp16 in=4097 out=3",
    "quantize_weights dtype=fp16 format=fp8 one_scale=yes in=77 out=1000"};

template <class Check>
void for_every_problem_and_device(Check check) {
    for (const std::string& text : problems) {
        for (const Arch arch : supported_archs()) {
            INFO(text << " on " << to_string(arch));
            check(*parse_problem(text), *representative_device(arch));
        }
    }
}

}  // namespace

TEST_CASE("every problem has a fallback on every architecture, and it obeys its own constraints") {
    for_every_problem_and_device([](const Problem& problem, const DeviceTraits& traits) {
        const auto candidate = fallback(problem, traits);
        REQUIRE(candidate);
        CHECK(why_not(problem, *candidate, traits).empty());
    });
}

TEST_CASE("no variant exceeds the device, whatever the config") {
    for_every_problem_and_device([](const Problem& problem, const DeviceTraits& traits) {
        for (const auto& [candidate, predicted] : ranked_space(problem, traits)) {
            const Plan plan = candidate.variant->plan(problem, candidate.config, traits);
            REQUIRE(plan.launch_count >= 1);
            for (int i = 0; i < plan.launch_count; ++i) {
                const Launch& launch = plan.launches[static_cast<std::size_t>(i)];
                CHECK(launch.grid.x >= 1);
                CHECK(launch.block.x * launch.block.y * launch.block.z <= 1024);
                CHECK(launch.shared_bytes <= traits.max_shared_bytes_per_block);
                CHECK(launch.grid.x % launch.cluster.x == 0);
                CHECK((!launch.programmatic || traits.has_programmatic_launch()));
                CHECK((!launch.has_cluster() || traits.has_clusters()));
            }
            CHECK(predicted > 0);
            CHECK(predicted < 1e8);
        }
    });
}

TEST_CASE("the ranked space is sorted, complete and without repeats") {
    for_every_problem_and_device([](const Problem& problem, const DeviceTraits& traits) {
        const std::vector<RankedCandidate> space = ranked_space(problem, traits);
        CHECK(std::ranges::is_sorted(space, {}, &RankedCandidate::predicted_us));
        std::size_t allowed_count = 0;
        for (const Variant* variant : problem.family->variants) {
            const SpaceCount count = count_space(problem, *variant, traits);
            std::size_t rejected = 0;
            for (const std::size_t by_one : count.rejected_by) rejected += by_one;
            CHECK(count.declared == count.allowed + rejected);
            allowed_count += count.allowed;
        }
        CHECK(space.size() == allowed_count);
        std::set<std::string> names;
        for (const RankedCandidate& ranked : space) names.insert(to_string(ranked.candidate));
        CHECK(names.size() == space.size());
    });
}

TEST_CASE("candidate and text are inverse to each other") {
    const Problem problem = *parse_problem(problems[0]);
    const auto space = ranked_space(problem, *representative_device({9, 0, true}));
    CHECK(rc::check("round trip", [&] {
        const Candidate candidate = space[*rc::gen::inRange<std::size_t>(0, space.size())].candidate;
        RC_ASSERT(parse_candidate(*problem.family, to_string(candidate)) == candidate);
    }));
}

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

TEST_CASE("a plan's kernels and arguments do not depend on run-time fields, only its grid does") {
    for_every_problem_and_device([](const Problem& problem, const DeviceTraits& traits) {
        const auto candidate = *fallback(problem, traits);
        const Plan plan = candidate.variant->plan(problem, candidate.config, traits);
        for (const std::uint8_t field : run_time_fields(*problem.family)) {
            const std::int64_t value = std::min<std::int64_t>(3, problem.family->fields[field].max);
            const Plan other = candidate.variant->plan(with(problem, field, value), candidate.config, traits);
            REQUIRE(plan.launch_count == other.launch_count);
            for (std::size_t i = 0; i < static_cast<std::size_t>(plan.launch_count); ++i) {
                CHECK(plan.launches[i].kernel == other.launches[i].kernel);
                CHECK(plan.launches[i].substitutions == other.launches[i].substitutions);
                CHECK(plan.launches[i].block == other.launches[i].block);
            }
        }
    });
}
