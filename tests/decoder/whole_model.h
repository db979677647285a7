// Models whose steps of one token have norms and sums in their products, or share norms between these, by
// what won races.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "cache/cache.h"
#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"
#include "runtime/cuda/driver.h"
#include "runtime/nvrtc/nvrtc.h"
#include "runtime/operators/runtime_state.h"
#include "tests/decoder/small_model.h"
#include "tests/support/scratch.h"

namespace hone::test {

/// Whose race a kernel won, and in which step: empty where it was the fastest alone.
struct Race {
    std::string family = "linear";
    std::string chain{};
};

/// As if `candidate` had won a race for this problem here.
inline void store_winner(cache::Cache& cache, const std::string& fields, const std::string& candidate,
                         const Race& race = {}) {
    const Family& family = *find_family(race.family);
    const std::optional<Problem> problem = parse_problem(family, fields);
    const std::optional<Candidate> winner = parse_candidate(family, candidate);
    REQUIRE(problem);
    REQUIRE(winner);
    const auto driver = runtime::Driver::load();
    REQUIRE(allowed(*problem, *winner, runtime::device_traits(*driver, 0)));
    cache::Trial trial;
    trial.key = {runtime::gpu_key(*driver, 0), race.family, static_text(*problem), dynamic_text(*problem)};
    trial.toolchain = {driver->version(), runtime::Nvrtc::load()->version()};
    trial.candidate = to_string(*winner);
    trial.template_hash = template_hash(*winner->variant);
    trial.stage = cache::Stage::final_round;
    trial.winner = true;
    trial.timing = {.median_us = 2.0, .p10_us = 1.9, .p90_us = 2.1, .samples = 20};
    trial.created_at = 1'700'000'000'000;
    trial.tool_version = "test";
    trial.chain = race.chain;
    cache.store(trial);
}

inline decoder::ModelOptions whole_options(const Scratch& scratch) {
    {
        cache::Cache cache = scratch.cache();
        store_winner(
            cache, "dtype=bf16 in=2048 out=4096 tokens=1",
            "ring tokens=1 rows=32 consumers=2 stage_columns=256 stages=8 cluster_k=1 early=2 spread=0 "
            "programmatic=1");
        store_winner(
            cache, "dtype=bf16 gated=yes activation=silu in=2048 out=2048 tokens=1",
            "ring tokens=1 rows=16 consumers=2 stage_columns=256 stages=8 cluster_k=1 early=2 spread=0 "
            "programmatic=1");
    }
    decoder::ModelOptions options = small_options();
    options.made_up->hidden_size = 2048;
    options.made_up->intermediate_size = 2048;
    options.made_up->num_attention_heads = 32;
    options.made_up->num_key_value_heads = 16;
    options.runtime = {.cache_file = scratch.path("cache.db")};
    return options;
}

/// A kernel of few tokens that shares no norms.
inline std::string strips(int tokens) {
    return fmt::format(
        "strips tokens={} rows={} k_warps=4 row_warps=1 unroll=1 load_hint=1 blocks_per_sm=0 programmatic=1 "
        "fold_norm=0",
        tokens, 2 * tokens);
}

/// A layer's products with kernels that can share norms.
inline void store_rings(cache::Cache& cache, int tokens, const Race& race = {}) {
    const bool shares = race.family != "linear";
    const auto store = [&](const std::string& fields, const std::string& norms, int rows, int columns,
                           int stages) {
        store_winner(
            cache, fmt::format("dtype=bf16 {} {} tokens={}", shares ? norms : "", fields, tokens),
            fmt::format("ring tokens={} rows={} consumers=4 stage_columns={} stages={} cluster_k=1 early=2 "
                        "spread=0 programmatic=1",
                        tokens, rows, columns, stages),
            race);
    };
    store("in=1280 out=2560", "norm=yes", 32, 128, 12);
    store("in=1280 out=1280", "next_norm=yes residual=yes", 16, 256, 8);
    store("gated=yes activation=silu in=1280 out=2048", "norm=yes", 16, 128, 12);
    store("in=2048 out=1280", "next_norm=yes residual=yes", 16, 256, 8);
}

/// Its steps share norms where its products have such kernels, which those behind attention and at the end of
/// the network, narrow as they are, have not where nobody has chosen.
inline decoder::ModelOptions sharing_options(const Scratch& scratch) {
    decoder::ModelOptions options = small_options();
    options.made_up->hidden_size = 1280;
    options.made_up->intermediate_size = 2048;
    options.made_up->num_attention_heads = 20;
    options.made_up->num_key_value_heads = 10;
    options.runtime = {.cache_file = scratch.path("cache.db")};
    return options;
}

}  // namespace hone::test
