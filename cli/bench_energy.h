// hone bench --energy: power, energy of a call and calls a joule of what dispatch would take, and of the
// dense product in place of a quantized one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "tuner/measure/measurer.h"

namespace hone::cli {

struct EnergyRow {
    std::string part;  ///< "winner", "default", "dense winner", ...
    Problem problem;
    Candidate candidate;
    tuner::Sustained sustained;
};

/// Throws Failure where NVML says neither energy nor power of this GPU.
void check_energy(const tuner::DeviceInfo& device);

/// `linear` with numbers of the dtype for codes, with all else of a problem of quantized_linear; nullopt for
/// other problems.
[[nodiscard]] std::optional<Problem> dense_problem(const Problem& problem);

/// docs/json-output.md.
[[nodiscard]] Json energy_json(const std::vector<EnergyRow>& rows);
/// A table; what could not be measured says why.
[[nodiscard]] std::string energy_text(const std::vector<EnergyRow>& rows, const tuner::Page& page);

}  // namespace hone::cli
