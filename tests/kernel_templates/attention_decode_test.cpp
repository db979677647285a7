#include "kernel_templates/attention_decode/attention_decode.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernel_templates/attention_decode/variants.h"
#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"
#include "tests/kernel_templates/drawn_cases.h"

using namespace hone;
using attention_decode::CallScalar;
using test::tunable;

namespace {

Problem problem_of(const std::string& text) {
    std::string error;
    const auto problem = parse_problem("attention_decode " + text, &error);
    INFO(text << ": " << error);
    REQUIRE(problem.has_value());
    return *problem;
}

const std::string llama = "dtype=bf16 heads=32 kv_heads=8 head_dim=128 ";
template <class Check>
void for_every_problem_and_device(Check check) {
    test::for_every_problem_and_device(*find_family("attention_decode"), 24, check);
}

double predicted(const std::string& problem, const std::string& candidate) {
    const Family& family = *find_family("attention_decode");
    std::string error;
    const auto parsed = parse_candidate(family, candidate, &error);
    INFO(candidate << ": " << error);
    REQUIRE(parsed.has_value());
    const DeviceTraits h100 = *representative_device({9, 0, true});
    CHECK(why_not(problem_of(problem), *parsed, h100) == "");
    return parsed->variant->predict_us(problem_of(problem), parsed->config, h100);
}

std::string ring(const std::string& values, const std::string& rest = "join=0 side_by_side=0") {
    return "ring rows=8 " + values + " " + rest;
}

}  // namespace

TEST_CASE("the fields of attention_decode stand in their order, with their defaults") {
    CHECK(to_string(problem_of(llama + "batch=2 kv_len=100 q_len=1")) ==
          "attention_decode dtype=bf16 kv_dtype=same causal=no window=0 softcap=no lse=no lengths=no "
          "page_size=0 heads=32 kv_heads=8 head_dim=128 q_tokens=1 batch=2 kv_len=100 q_len=1");
}

TEST_CASE("attention_decode refuses what it cannot mean, in words") {
    const auto error_of = [](const std::string& text) {
        std::string error;
        CHECK_FALSE(parse_problem("attention_decode " + text, &error).has_value());
        return error;
    };
    const std::string sizes = "batch=1 kv_len=64 q_len=1";
    CHECK(error_of("dtype=bf16 heads=30 kv_heads=8 head_dim=128 " + sizes).find("kv_heads=8") !=
          std::string::npos);
    CHECK(error_of(llama + "q_tokens=2 batch=1 kv_len=64 q_len=3").find("q_tokens=2") != std::string::npos);
    CHECK(error_of("dtype=bf16 heads=8 kv_heads=8 head_dim=257 " + sizes).find("head_dim") !=
          std::string::npos);
    CHECK(error_of(llama + "batch=65536 kv_len=16777216 q_len=1").find("2^40") != std::string::npos);
    CHECK(
        error_of("dtype=bf16 heads=1024 kv_heads=1 head_dim=1 q_tokens=16 batch=1024 kv_len=16777216 q_len=1")
            .find("2^34") != std::string::npos);
}

TEST_CASE("the floor of decode counts what the queries see of the cache, and the rest once") {
    const auto bytes = [](const std::string& text) {
        const Problem problem = problem_of(text);
        return problem.family->work(problem).bytes;
    };
    const double queries = 2 * 2.0 * 32 * 128;  // q and out of one token
    CHECK(bytes(llama + "batch=3 kv_len=1000 q_len=1") == 3 * (2.0 * 2 * 1000 * 8 * 128 + queries));
    CHECK(bytes(llama + "kv_dtype=fp8_e4m3 batch=1 kv_len=1000 q_len=1") ==
          2.0 * 1000 * 8 * 128 + queries + 2 * 4 * 8);
    CHECK(bytes(llama + "causal=yes window=100 q_tokens=2 batch=1 kv_len=1000 q_len=1") ==
          2.0 * 2 * 101 * 8 * 128 + queries);
    CHECK(bytes(llama + "page_size=16 lengths=yes batch=2 kv_len=100 q_len=1") ==
          2 * (2.0 * 2 * 100 * 8 * 128 + queries + 4 * 7 + 4));
}

TEST_CASE("the fallback of decode is ring, registers or plain by the rows' bytes and the chip") {
    for_every_problem_and_device([](const Problem& problem, const DeviceTraits& traits) {
        const auto candidate = fallback(problem, traits);
        REQUIRE(candidate);
        const attention_decode::DecodeProblem p(problem);
        const bool wide_rows = p.dtype != Dtype::fp32 && p.head_dim % (p.fp8_cache() ? 16 : 8) == 0;
        const bool held = p.head_dim * p.cache_element_bytes() < 512;  // rows, in registers
        const std::string_view expected = !wide_rows || traits.compute_major < 8 ? "plain"
                                          : traits.compute_major >= 9            ? "ring"
                                          : held                                 ? "registers"
                                                                                 : "plain";
        // The widest of the rows that may be held leave no room for many queries.
        const bool crowded = expected == "registers" && p.head_dim * p.cache_element_bytes() > 400;
        CHECK((candidate->variant->name == expected || (crowded && candidate->variant->name == "plain")));
        // plain takes whatever the others do not.
        CHECK(attention_decode::plain.fallback(problem, traits).has_value());
    });
}

TEST_CASE("constraints and grids of decode do not depend on how many query tokens a call has") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    const std::string text = llama + "q_tokens=8 lengths=yes batch=4 kv_len=1000 q_len=";
    const Problem one = problem_of(text + "1");
    const Problem eight = problem_of(text + "8");
    for (const Variant* variant : one.family->variants) {
        const std::vector<Config> configs = enumerate(one, *variant, h100);
        CHECK(configs == enumerate(eight, *variant, h100));
        for (const Config& config : configs) {
            const Plan a = variant->plan(one, config, h100);
            const Plan b = variant->plan(eight, config, h100);
            CHECK(a.launches[0].grid == b.launches[0].grid);
            CHECK(a.workspace_bytes == b.workspace_bytes);
        }
    }
}

TEST_CASE("the workspace of decode holds two pieces a block, and its threads fit a multiprocessor") {
    for_every_problem_and_device([](const Problem& problem, const DeviceTraits& traits) {
        const attention_decode::DecodeProblem p(problem);
        for (const Variant* variant : problem.family->variants) {
            test::for_some_candidates(problem, *variant, traits, 100, [&](const Candidate& candidate) {
                const Plan plan = variant->plan(problem, candidate.config, traits);
                const Launch& main = plan.launches[0];
                CHECK(main.block.x * tunable(candidate, "blocks_per_sm") <= traits.max_threads_per_sm);
                const std::int64_t rows = std::min<std::int64_t>(p.rows(), tunable(candidate, "rows"));
                const std::int64_t piece = rows * ((p.head_dim + 3) / 4 * 4 + 2) * 4 + 8;
                const bool cluster = main.cluster.x > 1;
                CHECK(plan.workspace_bytes == (cluster ? 0 : 2 * main.grid.x * piece));
                CHECK(plan.launch_count == (cluster || tunable(candidate, "join") == 1 ? 1 : 2));
                if (plan.launch_count == 2)
                    CHECK(plan.launches[1].grid == Dim3{main.grid.x, static_cast<std::uint32_t>(rows), 1});
                // Beside prompts it is planned for some of the multiprocessors, in the same workspace.
                for (const int some : {1, traits.sm_count / 2, traits.sm_count * 5 / 6}) {
                    DeviceTraits fewer = traits;
                    fewer.sm_count = std::max(some, 1);
                    const Plan beside = variant->plan(problem, candidate.config, fewer);
                    CHECK(beside.workspace_bytes <= plan.workspace_bytes);
                    CHECK(beside.launch_count == plan.launch_count);
                }
            });
        }
    });
}

TEST_CASE("a ring asks ahead where the host knows what it will read") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    for (const int producers : {0, 4}) {
        const Candidate candidate = *parse_candidate(
            *find_family("attention_decode"),
            ring("warps=4 unit=16 stages=12 producers=" + std::to_string(producers) + " cluster=8") +
                " blocks_per_sm=1 ahead=1");
        const auto refused = [&](const std::string& rest) {
            return why_not(problem_of(llama + "batch=1 kv_len=4096 q_len=1 " + rest), candidate, h100);
        };
        CHECK(refused("") == "");
        CHECK(refused("window=300") == "");
        for (const char* unknown : {"lengths=yes", "lengths=packed page_size=16", "page_size=16"})
            CHECK(refused(unknown).find("known before the call ahead has ended") != std::string::npos);
    }
}

TEST_CASE("the ring's maps see heads inside of tokens, whole pages and the pool") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    const Candidate candidate =
        *parse_candidate(*find_family("attention_decode"),
                         ring("warps=4 unit=32 stages=12 producers=0 cluster=1", "join=0 side_by_side=1") +
                             " blocks_per_sm=1 ahead=0");
    const auto map_of = [&](const std::string& text) {
        const Problem problem = problem_of(text);
        REQUIRE(why_not(problem, candidate, h100) == "");
        return candidate.variant->plan(problem, candidate.config, h100).tensor_maps[1];
    };
    const TensorMap paged = map_of(llama + "page_size=16 batch=2 kv_len=100 q_len=1");
    CHECK(paged.pointer == attention_decode::v_cache);
    CHECK(paged.extents[1] == 16);
    CHECK(paged.extent_scalars[3] == CallScalar::pool_pages);
    CHECK(paged.box == std::array<std::uint16_t, 5>{64, 16, 1, 1, 1});
    const TensorMap codes = map_of(llama + "kv_dtype=fp8_e4m3 batch=2 kv_len=100 q_len=1");
    CHECK(codes.dtype == Dtype::fp8_e4m3);
    CHECK(codes.extent_scalars[1] == CallScalar::kv_len);
    CHECK(codes.extent_scalars[3] == CallScalar::batch);
    CHECK(codes.box == std::array<std::uint16_t, 5>{128, 32, 1, 1, 1});
}

TEST_CASE("the cost model puts candidates of decode in the order in which an H100 ran them") {
    const std::string short_one = llama + "batch=1 kv_len=4096 q_len=1";
    const std::string whole = "warps=4 unit=32 stages=12 producers=0 cluster=1";
    const std::string clusters = "warps=8 unit=32 stages=8 producers=0 cluster=8";
    const std::string registers =
        "registers rows=8 warps=12 unit=16 join=0 side_by_side=0 load_hint=1 blocks_per_sm=1";
    // 9.9, 12.1 and 13.4 us.
    CHECK(predicted(short_one, ring(clusters) + " blocks_per_sm=1 ahead=0") <
          predicted(short_one, ring(whole) + " blocks_per_sm=1 ahead=0"));
    CHECK(predicted(short_one, ring(whole) + " blocks_per_sm=1 ahead=0") < predicted(short_one, registers));
    // 27.3 and 31.8 us: so many clusters of 4 do not fit at once.
    const std::string many_heads = "dtype=bf16 heads=32 kv_heads=32 head_dim=128 batch=1 kv_len=4096 q_len=1";
    CHECK(predicted(many_heads, ring(whole) + " blocks_per_sm=1 ahead=0") <
          predicted(many_heads,
                    ring("warps=4 unit=32 stages=12 producers=0 cluster=4") + " blocks_per_sm=1 ahead=0"));
    // 694 us, 700 with smaller units, 715 through registers.
    const std::string large = llama + "batch=64 kv_len=8192 q_len=1";
    CHECK(predicted(large, ring(whole) + " blocks_per_sm=1 ahead=0") <
          predicted(large,
                    ring("warps=4 unit=16 stages=12 producers=0 cluster=1") + " blocks_per_sm=2 ahead=0"));
    CHECK(predicted(large, ring(whole) + " blocks_per_sm=1 ahead=0") < predicted(large, registers));
    CHECK(predicted(large, ring(whole) + " blocks_per_sm=1 ahead=0") == doctest::Approx(694).epsilon(0.06));
}
