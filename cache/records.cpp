#include "cache/records.h"

#include <array>
#include <utility>

#include "cache/checksum.h"

namespace hone::cache {
namespace {

template <class Enum, std::size_t N>
using Names = std::array<std::pair<Enum, std::string_view>, N>;

// These texts are on disk: never rename or reuse one.
constexpr Names<TrialStatus, 7> status_names{{
    {TrialStatus::ok, "ok"},
    {TrialStatus::over_limits, "over_limits"},
    {TrialStatus::compile_failed, "compile_failed"},
    {TrialStatus::launch_failed, "launch_failed"},
    {TrialStatus::wrong_result, "wrong_result"},
    {TrialStatus::timed_out, "timed_out"},
    {TrialStatus::crashed, "crashed"},
}};
constexpr Names<Provenance, 3> provenance_names{{
    {Provenance::measured, "measured"},
    {Provenance::replayed, "replayed"},
    {Provenance::predicted, "predicted"},
}};
constexpr Names<Stage, 3> stage_names{{
    {Stage::screened, "screened"},
    {Stage::raced, "raced"},
    {Stage::final_round, "final_round"},
}};
constexpr Names<Trust, 5> trust_names{{
    {Trust::exact, "exact"},
    {Trust::compatible, "compatible"},
    {Trust::stale, "stale"},
    {Trust::foreign, "foreign"},
    {Trust::unusable, "unusable"},
}};

template <class Enum, std::size_t N>
std::string_view name_in(const Names<Enum, N>& names, Enum value) {
    for (const auto& [known, text] : names) {
        if (known == value) return text;
    }
    return "?";
}

template <class Enum, std::size_t N>
std::optional<Enum> value_in(const Names<Enum, N>& names, std::string_view text) {
    for (const auto& [value, known] : names) {
        if (known == text) return value;
    }
    return std::nullopt;
}

}  // namespace

std::string_view name(TrialStatus status) { return name_in(status_names, status); }
std::string_view name(Provenance provenance) { return name_in(provenance_names, provenance); }
std::string_view name(Stage stage) { return name_in(stage_names, stage); }
std::string_view name(Trust trust) { return name_in(trust_names, trust); }

std::optional<TrialStatus> trial_status_from_name(std::string_view text) {
    return value_in(status_names, text);
}
std::optional<Provenance> provenance_from_name(std::string_view text) {
    return value_in(provenance_names, text);
}
std::optional<Stage> stage_from_name(std::string_view text) { return value_in(stage_names, text); }

std::string identity(const Trial& trial) {
    const GpuKey& gpu = trial.key.gpu;
    // Rows of older schemas keep their identities.
    const bool has_clock = trial.timing.sm_clock_mhz != 0 || trial.timing.incumbent_ratio != 0;
    Fingerprint print(has_clock ? "hone.trial/2" : "hone.trial/1");
    print.text(gpu.name).integer(gpu.compute_major).integer(gpu.compute_minor).integer(gpu.sm_count);
    print.integer(gpu.memory_clock_mhz).text(gpu.mig_profile);
    print.text(trial.key.family).text(trial.key.static_fields).text(trial.key.dynamic_fields);
    print.text(trial.toolchain.driver).text(trial.toolchain.nvrtc);
    print.text(trial.candidate).text(trial.template_hash);
    print.text(name(trial.status)).text(name(trial.stage)).text(name(trial.provenance));
    print.integer(trial.winner ? 1 : 0).integer(trial.is_default ? 1 : 0);
    print.real(trial.timing.median_us).real(trial.timing.p10_us).real(trial.timing.p90_us);
    print.integer(trial.timing.samples);
    print.integer(trial.resources.registers).integer(trial.resources.shared_bytes);
    print.integer(trial.resources.spill_bytes).real(trial.energy_mj);
    print.text(trial.detail).integer(trial.created_at).text(trial.tool_version);
    if (has_clock) print.integer(trial.timing.sm_clock_mhz).real(trial.timing.incumbent_ratio);
    if (!trial.chain.empty()) print.text(trial.chain);
    return print.hex();
}

}  // namespace hone::cache
