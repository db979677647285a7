// A Runtime on a fake machine, with a cache of its own and made-up winners in it.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "hone/hone.h"
#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"
#include "runtime/cuda/driver.h"
#include "runtime/dispatch/bucket_grid.h"
#include "runtime/nvrtc/nvrtc.h"
#include "runtime/operators/norm.h"
#include "tests/support/fake_machine.h"

namespace hone::test {

constexpr RmsNorm small_norm{.hidden = 4096, .max_rows = 16};

/// A fake machine with an empty cache folder of its own, and everything that was warned about.
class Machine {
  public:
    explicit Machine(const std::string& script = "") : fakes_(script) {
        static int number = 0;
        folder_ =
            std::filesystem::temp_directory_path() / fmt::format("hone-dispatch-{}-{}", getpid(), number++);
        std::filesystem::create_directories(folder_);
        std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
    }
    ~Machine() {
        std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
        std::filesystem::remove_all(folder_);
    }
    [[nodiscard]] std::filesystem::path file() const { return folder_ / "cache.db"; }
    [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
    [[nodiscard]] RuntimeOptions options() {
        RuntimeOptions options;
        options.cache_file = file();
        options.on_warning = [this](std::string_view text) { warnings.emplace_back(text); };
        return options;
    }
    void script(const std::string& text) { script_.emplace("HONE_FAKE_SCRIPT", text); }
    [[nodiscard]] const test::FakeMachine& fakes() const { return fakes_; }
    std::vector<std::string> warnings;

  private:
    test::FakeMachine fakes_;
    std::optional<test::ScopedVariable> script_;
    std::filesystem::path folder_;
};

inline const DeviceTraits& traits() {
    static const DeviceTraits of_fake = [] {
        const test::FakeMachine machine;
        return runtime::device_traits(*runtime::Driver::load(), 0);
    }();
    return of_fake;
}

/// Candidates for all buckets of `small_norm` that are not the fallback of any.
inline std::vector<Candidate> other_candidates() {
    const Problem problem = runtime::problem_of(small_norm);
    const auto field = dynamic_fields(*problem.family)[0];
    std::vector<Candidate> others;
    for (const RankedCandidate& ranked : ranked_space(problem, traits())) {
        const bool fits =
            std::ranges::all_of(bucket_edges(small_norm.max_rows), [&](std::int64_t rows) {
                const Problem there = with(problem, field, rows);
                const Candidate safe = *fallback(there, traits());
                // another first tunable, so that the fake's script can tell the two apart
                return allowed(there, ranked.candidate, traits()) &&
                       (ranked.candidate.variant != safe.variant ||
                        ranked.candidate.config[0] != safe.config[0]);
            });
        if (fits) others.push_back(ranked.candidate);
    }
    REQUIRE_FALSE(others.empty());
    return others;
}

inline Candidate other_candidate() { return other_candidates().front(); }

inline cache::Trial trial(std::int64_t rows, const Candidate& candidate) {
    const auto driver = runtime::Driver::load();
    const Problem problem = runtime::problem_of(small_norm);
    const Problem there = with(problem, dynamic_fields(*problem.family)[0], rows);
    cache::Trial trial;
    trial.key = {runtime::gpu_key(*driver, 0), "rmsnorm", static_text(there), dynamic_text(there)};
    trial.toolchain = {driver->version(), runtime::Nvrtc::load()->version()};
    trial.candidate = to_string(candidate);
    trial.template_hash = template_hash(*candidate.variant);
    trial.stage = cache::Stage::final_round;
    trial.winner = true;
    trial.timing = {.median_us = 2.0, .p10_us = 1.9, .p90_us = 2.1, .samples = 20};
    trial.created_at = 1'700'000'000'000;
    trial.tool_version = "test";
    return trial;
}

inline void store(const std::filesystem::path& file, const std::vector<cache::Trial>& trials) {
    cache::Cache::open(file).store(trials);
}

}  // namespace hone::test
