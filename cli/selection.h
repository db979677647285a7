// Which stored results a command is about: an operator, fields, a part of the GPU's name, a model's layers.
// One form for list, show, export and report.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cache/records.h"
#include "cli/arguments.h"
#include "cli/targets.h"

namespace hone::cli {

/// Values of the options; declare() binds them.
struct Selection {
    std::vector<std::string> words;  ///< an operator, and fields that results must have
    std::string gpu;                 ///< part of a GPU's name
    Target target;                   ///< what --model or --captured names

    /// FILTER, --gpu, and --model with what goes with it, or --captured.
    void declare(const Arguments& app);
    void declare_words(const Arguments& app);
    void declare_gpu(const Arguments& app);
    void declare_model(const Arguments& app);
    [[nodiscard]] bool is_everything() const { return words.empty() && gpu.empty() && !target.names_many(); }
};

/// A selection made sense of.
class Selected {
  public:
    /// Throws Failure (usage) for a word that is no operator and no field of one, and ConfigError.
    explicit Selected(const Selection& selection);
    /// To be called with all that there is before contains(): a first half of a feed-forward network among it
    /// tells which product is its second.
    void consider(const cache::Trial& trial);
    [[nodiscard]] bool contains(const cache::Trial& trial) const;

  private:
    [[nodiscard]] bool is_of_operators(const cache::TuningKey& key) const;
    [[nodiscard]] bool has_fields(const cache::TuningKey& key) const;

    std::vector<OperatorProblems> operators_;  ///< empty: all
    std::vector<std::pair<std::string, std::string>> fields_;
    std::string gpu_;
    bool of_model_ = false;
    std::set<std::pair<std::string, std::string>> model_problems_;  ///< families with static fields
};

}  // namespace hone::cli
