#include "cache/records.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "support.h"

using namespace hone::cache;
using namespace hone::cache::test;

TEST_CASE("every name on disk reads back as the value it stands for") {
    for (const char* text :
         {"ok", "over_limits", "compile_failed", "launch_failed", "wrong_result", "timed_out", "crashed"}) {
        REQUIRE(trial_status_from_name(text));
        CHECK(name(*trial_status_from_name(text)) == text);
    }
    for (const char* text : {"measured", "replayed", "predicted"}) {
        REQUIRE(provenance_from_name(text));
        CHECK(name(*provenance_from_name(text)) == text);
    }
    for (const char* text : {"screened", "raced", "final_round"}) {
        REQUIRE(stage_from_name(text));
        CHECK(name(*stage_from_name(text)) == text);
    }
    CHECK_FALSE(trial_status_from_name("OK"));
    CHECK_FALSE(provenance_from_name(""));
    CHECK_FALSE(stage_from_name("final"));
    CHECK(name(Trust::foreign) == "foreign");
}

TEST_CASE("changing any fact of a trial changes its identity") {
    const std::vector<std::function<void(Trial&)>> changes{
        [](Trial& t) { t.key.gpu.name += "x"; },
        [](Trial& t) { ++t.key.gpu.compute_major; },
        [](Trial& t) { ++t.key.gpu.compute_minor; },
        [](Trial& t) { ++t.key.gpu.sm_count; },
        [](Trial& t) { ++t.key.gpu.memory_clock_mhz; },
        [](Trial& t) { t.key.gpu.mig_profile = "1g.10gb"; },
        [](Trial& t) { t.key.family += "x"; },
        [](Trial& t) { t.key.static_fields += "x"; },
        [](Trial& t) { t.key.dynamic_fields += "x"; },
        [](Trial& t) { t.toolchain.driver += "x"; },
        [](Trial& t) { t.toolchain.nvrtc += "x"; },
        [](Trial& t) { t.candidate += "x"; },
        [](Trial& t) { t.template_hash += "x"; },
        [](Trial& t) { t.status = TrialStatus::crashed; },
        [](Trial& t) { t.stage = Stage::raced; },
        [](Trial& t) { t.provenance = Provenance::replayed; },
        [](Trial& t) { t.winner = !t.winner; },
        [](Trial& t) { t.is_default = !t.is_default; },
        [](Trial& t) { t.timing.median_us += 1e-9; },
        [](Trial& t) { t.timing.p10_us += 1e-9; },
        [](Trial& t) { t.timing.p90_us += 1e-9; },
        [](Trial& t) { ++t.timing.samples; },
        [](Trial& t) { ++t.timing.sm_clock_mhz; },
        [](Trial& t) { t.timing.sm_clock_mhz = 0; },
        [](Trial& t) { t.timing.incumbent_ratio += 1e-9; },
        [](Trial& t) { t.timing.sm_clock_mhz = 0, t.timing.incumbent_ratio = 0; },
        [](Trial& t) { ++t.resources.registers; },
        [](Trial& t) { ++t.resources.shared_bytes; },
        [](Trial& t) { ++t.resources.spill_bytes; },
        [](Trial& t) { t.energy_mj += 0.5; },
        [](Trial& t) { t.detail = "x"; },
        [](Trial& t) { ++t.created_at; },
        [](Trial& t) { t.tool_version += "x"; },
        // Text that only moves from one field to the next.
        [](Trial& t) { std::swap(t.toolchain.driver, t.toolchain.nvrtc); },
        [](Trial& t) { t.key.family += "h", t.key.static_fields.erase(0, 1); },
    };
    std::set<std::string> seen{identity(sample_trial(1))};
    for (const auto& change : changes) {
        Trial trial = sample_trial(1);
        change(trial);
        CHECK(seen.insert(identity(trial)).second);
    }
    CHECK(seen.size() == changes.size() + 1);
}

TEST_CASE("equal trials have equal identities, also with a negative zero") {
    Trial a = sample_trial(3);
    Trial b = a;
    b.energy_mj = -0.0;
    REQUIRE(a == b);
    CHECK(identity(a) == identity(b));
}

TEST_CASE("an identity is the same on every machine and for ever") {
    // From docs/cache-format.md, computed there by a second program.
    CHECK(identity(sample_trial(0)) == "980b6943a208f4fc41db6d4d7ab4fb71");
    CHECK(identity(sample_trial(1)) == "863f71b162adc63ee6241e0fe4ec547f");  // with a clock
}
