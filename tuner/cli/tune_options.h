// What the user asked of `hone tune`, as values.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "tuner/cli/arguments.h"
#include "tuner/cli/targets.h"
#include "tuner/search/tuner.h"

namespace hone::cli {

struct TuneCommandOptions {
    Target target;
    std::string gpu;     ///< a number, "all", or empty for the first
    std::string effort;  ///< empty: standard, and quick where nothing is measured
    std::string budget;
    bool retune = false;
    bool offline = false;
    std::string arch = "sm_90a";
    bool replay = false;
    std::string replay_file;  ///< empty: every file of configs/recorded/
    std::string record_file;
    bool dry_run = false;

    void declare(const Arguments& app);
    /// Throws Failure (usage) for contradictions and values that make no sense.
    void check() const;
    [[nodiscard]] tuner::TuneOptions tune_options() const;
};

/// "500ms", "90s", "10m", "2h", or seconds without a unit; at most a week. Throws Failure (usage).
[[nodiscard]] std::chrono::milliseconds duration_from(const std::string& text);

}  // namespace hone::cli
