// The variants that deal tiles by blockIdx: mma and plain.
#include <set>
#include <utility>

#include "kernel_templates/attention_prefill/mma/plan.h"
#include "kernel_templates/attention_prefill/plain/plan.h"
#include "kernel_templates/attention_prefill/variants.h"
#include "tests/kernel_templates/attention_prefill_cases.h"

using namespace hone;
using namespace hone::attention_prefill_cases;
using attention_prefill::AttentionProblem;
using attention_prefill::mma;
using attention_prefill::plain;

namespace {

attention_prefill::warp_mma::Geometry mma_geometry(const Problem& problem, const Candidate& candidate) {
    return attention_prefill::warp_mma::geometry(
        AttentionProblem(problem), values_of<attention_prefill::warp_mma::MmaConfig>(candidate.config));
}

attention_prefill::cuda_cores::Geometry plain_geometry(const Problem& problem, const Candidate& candidate) {
    return attention_prefill::cuda_cores::geometry(
        AttentionProblem(problem), values_of<attention_prefill::cuda_cores::PlainConfig>(candidate.config));
}

template <class Check>
void for_every_candidate(const Variant& variant, Check check) {
    for_every_problem_and_device([&](const Problem& problem, const DeviceTraits& traits) {
        for (const Config& config : enumerate(problem, variant, traits)) {
            const Candidate candidate{&variant, config};
            INFO(to_string(candidate));
            check(problem, candidate, traits);
        }
    });
}

/// The tiles of a launch as tile.cuh numbers them, as (head of a sequence, row of tiles).
std::multiset<std::pair<std::int64_t, std::int64_t>> tiles_of(const Plan& plan, const AttentionProblem& p) {
    const Dim3 grid = plan.launches[0].grid;
    const std::int64_t section = plan.values[0].number;
    std::multiset<std::pair<std::int64_t, std::int64_t>> tiles;
    for (std::int64_t y = 0; y < grid.y; ++y) {
        for (std::int64_t x = 0; x < grid.x; ++x) {
            const std::int64_t slot = y * section + x % section;
            if (slot < p.slots()) tiles.emplace(slot, x / section);
        }
    }
    return tiles;
}

}  // namespace

TEST_CASE("attention by plain covers every problem on every chip, and takes any strides") {
    for_every_problem_and_device([](const Problem& problem, const DeviceTraits& traits) {
        const auto config = plain.fallback(problem, traits);
        REQUIRE(config.has_value());
        CHECK(why_not(problem, {&plain, *config}, traits).empty());
        CHECK(plain.access_elements(problem, *config) == 1);
    });
    for (int head_dim = 1; head_dim <= 256; ++head_dim) {
        const Problem problem = problem_of(
            "dtype=fp32 heads=4 kv_heads=2 batch=2 q_len=99 kv_len=99 head_dim=" + std::to_string(head_dim));
        for (const Arch arch : supported_archs())
            CHECK(plain.fallback(problem, *representative_device(arch)).has_value());
    }
}

TEST_CASE("attention by mma covers 16-bit heads of multiples of 8, before sm_80 fp16 alone") {
    for_every_problem_and_device([](const Problem& problem, const DeviceTraits& traits) {
        const AttentionProblem p(problem);
        const bool multiplies =
            p.dtype == Dtype::fp16 || (p.dtype == Dtype::bf16 && traits.compute_major >= 8);
        const auto config = mma.fallback(problem, traits);
        CHECK(config.has_value() == (multiplies && p.head_dim % 8 == 0));
        if (config) CHECK(why_not(problem, {&mma, *config}, traits).empty());
    });
}

TEST_CASE("attention by mma: resident blocks fit the multiprocessor, stages are copied in whole rounds") {
    for_every_candidate(
        mma, [](const Problem& problem, const Candidate& candidate, const DeviceTraits& traits) {
            const auto g = mma_geometry(problem, candidate);
            const Plan plan = mma.plan(problem, candidate.config, traits);
            CHECK(plan.launches[0].block.x == static_cast<std::uint32_t>(g.threads()));
            CHECK(plan.launches[0].shared_bytes == static_cast<std::uint32_t>(g.shared_bytes()));
            CHECK(g.shared_bytes() <= traits.max_shared_bytes_per_block);
            CHECK(g.blocks_per_sm * g.shared_bytes() <= traits.shared_bytes_per_sm);
            CHECK(g.blocks_per_sm * g.threads() <= traits.max_threads_per_sm);
            CHECK(g.rounds() * g.rows_a_round() == g.tile_n);
            CHECK(g.tile_m() % g.rows_a_round() == 0);
            CHECK(g.pitch() / 16 % 2 == 1);
            CHECK((g.stages == 2 || traits.has_async_copy()));
            CHECK(mma.predict_us(problem, candidate.config, traits) > 0);
        });
}

TEST_CASE("attention by plain: a step's numbers fit its buffer, threads' columns cover the head") {
    for_every_candidate(plain,
                        [](const Problem& problem, const Candidate& candidate, const DeviceTraits& traits) {
                            const auto g = plain_geometry(problem, candidate);
                            CHECK(plain.plan(problem, candidate.config, traits).launches[0].shared_bytes ==
                                  static_cast<std::uint32_t>(g.shared_bytes()));
                            CHECK(g.shared_bytes() <= traits.max_shared_bytes_per_block);
                            CHECK(g.key_steps() * g.key_columns() >= g.head_dim);
                            CHECK(g.key_columns() % 4 == 0);
                            CHECK(g.key_pitch() / 4 % 2 == 1);
                            CHECK(g.value_pitch() >= g.head_dim);
                            CHECK(g.value_steps() * g.value_rows() == g.tile_n);
                            CHECK(g.value_rows() % 4 == 0);
                            CHECK(g.weights_at() % 4 == 0);
                            CHECK(g.buffer_floats() % 4 == 0);
                            CHECK(plain.predict_us(problem, candidate.config, traits) > 0);
                        });
}

TEST_CASE("every tile of attention is one block's, whatever the level 2 cache holds") {
    for (const Variant* variant : {&mma, &plain}) {
        for (const std::int64_t l2_bytes : {1, 1 << 20, 4 << 20, 1 << 30}) {
            for (const std::string size : {"batch=1 q_len=1 kv_len=1", "batch=7 q_len=500 kv_len=900",
                                           "batch=3 q_len=2000 kv_len=100000"}) {
                const Problem problem =
                    problem_of("dtype=fp16 causal=yes heads=12 kv_heads=4 head_dim=64 " + size);
                DeviceTraits traits = *representative_device({8, 0, false});
                traits.l2_bytes = l2_bytes;
                const AttentionProblem p(problem);
                const Config config = *variant->fallback(problem, traits);
                const Candidate candidate{variant, config};
                const std::int64_t tile_m = variant == &mma ? mma_geometry(problem, candidate).tile_m()
                                                            : tunable(candidate, "tile_m");
                const Plan plan = variant->plan(problem, config, traits);
                const auto tiles = tiles_of(plan, p);
                const std::int64_t rows = ceil_div(p.q_len, tile_m);
                CHECK(static_cast<std::int64_t>(plan.launches[0].grid.x) == rows * plan.values[0].number);
                CHECK(static_cast<std::int64_t>(tiles.size()) == rows * p.slots());
                CHECK(std::set(tiles.begin(), tiles.end()).size() == tiles.size());
            }
        }
    }
}
