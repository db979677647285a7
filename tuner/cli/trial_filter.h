// Which trials the words of a command line ask for: an operator, FIELD=VALUE, a part of the GPU's name. Used
// by `hone list` and `hone report`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cache/records.h"

namespace hone::cli {

/// Values of the options.
struct TrialFilterOptions {
    std::vector<std::string> words;  ///< an operator, and fields that trials must have
    std::string gpu;                 ///< part of a GPU's name

    /// FILTER and --gpu.
    void declare(CLI::App& app);
    [[nodiscard]] bool is_empty() const { return words.empty() && gpu.empty(); }
};

class TrialFilter {
  public:
    /// Throws Failure (usage) for an operator or a field that there is not.
    explicit TrialFilter(const TrialFilterOptions& options);

    /// The operator, "" for all.
    [[nodiscard]] const std::string& family() const { return family_; }
    /// Fields and values are compared in any case.
    [[nodiscard]] bool wants(const cache::TuningKey& key) const;

  private:
    std::string family_;
    std::string gpu_;
    std::vector<std::pair<std::string, std::string>> fields_;
};

}  // namespace hone::cli
