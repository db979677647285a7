// The files of configs/tuned, which ship with the build: what they name is there, and nothing of it is stale.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "bench/measured_files.h"
#include "cache/bundle.h"
#include "kernel_templates/catalog.h"

using namespace hone;

namespace {

struct Rows {
    int winners = 0;
    int contenders = 0;
    std::string first;  ///< one of them, to look for in the file

    void add(const cache::Trial& trial) {
        if (first.empty()) first = trial.key.static_fields + ' ' + trial.key.dynamic_fields;
        ++(trial.winner ? winners : contenders);
    }
};

/// By family, variant, and what is wrong with them.
using Faults = std::map<std::tuple<std::string, std::string, std::string>, Rows>;

/// Empty where the row counts: of another hash it is a mere seed. Contenders are tried, whatever rules say
/// today.
std::string fault_of(const cache::Trial& trial, const Problem& problem, const Candidate& candidate) {
    const std::string_view hash = template_hash(*candidate.variant);
    if (trial.template_hash != hash)
        return fmt::format("carry the hash {} of a template whose hash is {} in this build",
                           trial.template_hash, hash);
    if (!trial.winner) return "";
    const cache::GpuKey& gpu = trial.key.gpu;
    std::optional<DeviceTraits> traits =
        representative_device(native_arch(gpu.compute_major, gpu.compute_minor));
    if (!traits) return "are of a GPU that this build does not compile for";
    traits->sm_count = gpu.sm_count;
    const std::string_view reason = why_not(problem, candidate, *traits);
    return reason.empty() ? "" : fmt::format("have a config that may not be used: {}", reason);
}

Faults faults_of(const std::vector<cache::Trial>& trials) {
    Faults faults;
    for (const cache::Trial& trial : trials) {
        const cache::TuningKey& key = trial.key;
        // Reading the file has asked for both.
        const Problem problem =
            *parse_problem(key.family + ' ' + key.static_fields + ' ' + key.dynamic_fields);
        const Candidate candidate = *parse_candidate(*problem.family, trial.candidate);
        if (const std::string fault = fault_of(trial, problem, candidate); !fault.empty())
            faults[{key.family, std::string(candidate.variant->name), fault}].add(trial);
    }
    return faults;
}

}  // namespace

TEST_CASE("every winner that ships may be used and carries its template's hash, as do those that it beat") {
    constexpr const char* what_to_do =
        "bench/carry_winners.py writes the new hash where machine code and launches are what they were; "
        "sweep the others again, or leave them out with its --drop (docs/add-a-kernel.md says how)";
    int files = 0;
    for (const auto& file : bench::files_by_name(std::filesystem::path(HONE_SOURCE_DIR) / "configs/tuned")) {
        ++files;
        for (const auto& [what, rows] : faults_of(bench::trials_of(file))) {
            const auto& [family, variant, fault] = what;
            FAIL_CHECK(fmt::format("{}: {} winners and {} contenders of {} {} {}. The first: {}. {}",
                                   file.filename().string(), rows.winners, rows.contenders, family, variant,
                                   fault, rows.first, what_to_do));
        }
    }
    CHECK(files > 0);
}
