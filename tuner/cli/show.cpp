// hone show PROBLEM: every stored trial of one problem, failures with their causes.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tuner/cli/command_list.h"
#include "tuner/cli/stored.h"
#include "tuner/cli/targets.h"
#include "tuner/report/report_text.h"

namespace hone::cli {
namespace {

using tuner::Align;

/// Fastest first, failures last.
bool before(const StoredTrial& left, const StoredTrial& right) {
    const auto key = [](const cache::Trial& trial) {
        return std::tuple(describe(trial.key.gpu), trial.status != cache::TrialStatus::ok,
                          trial.timing.median_us, trial.candidate);
    };
    return key(left.trial) < key(right.trial);
}

std::vector<std::string> cells(const StoredTrial& stored) {
    const cache::Trial& trial = stored.trial;
    std::string remark = trial.winner ? "winner" : "";
    if (trial.is_default) remark += remark.empty() ? "default" : ", default";
    if (!trial.detail.empty()) remark += (remark.empty() ? "" : ", ") + trial.detail;
    return {trial.candidate,
            std::string(name(trial.status)),
            tuner::format_us(trial.timing.median_us),
            tuner::format_us(trial.timing.p10_us),
            tuner::format_us(trial.timing.p90_us),
            std::to_string(trial.timing.samples),
            std::to_string(trial.resources.registers),
            std::to_string(trial.resources.shared_bytes),
            std::to_string(trial.resources.spill_bytes),
            std::string(name(trial.stage)),
            std::string(name(trial.provenance)),
            remark};
}

Outcome show(const std::vector<std::string>& words, const Console& console) {
    const Problem problem = problem_from_words(words);
    std::vector<StoredTrial> trials = stored_trials(filter_of(problem), console);
    std::sort(trials.begin(), trials.end(), before);
    Outcome outcome{.data = {{"problem", to_string(problem)}, {"trials", Json::array()}}};
    std::map<std::string, tuner::Table> by_gpu;
    for (const StoredTrial& stored : trials) {
        Json row = tuner::as_json(stored.trial);
        row["layer"] = stored.layer;
        outcome.data["trials"].push_back(std::move(row));
        auto [table, added] = by_gpu.try_emplace(describe(stored.trial.key.gpu),
                                                 std::vector<tuner::Table::Column>{{"candidate"},
                                                                                   {"status"},
                                                                                   {"us", Align::right},
                                                                                   {"p10", Align::right},
                                                                                   {"p90", Align::right},
                                                                                   {"samples", Align::right},
                                                                                   {"regs", Align::right},
                                                                                   {"shared", Align::right},
                                                                                   {"spills", Align::right},
                                                                                   {"stage"},
                                                                                   {"provenance"},
                                                                                   {""}});
        table->second.add(cells(stored));
    }
    outcome.text = to_string(problem) + "\n";
    for (const auto& [gpu, table] : by_gpu) {
        outcome.text +=
            fmt::format("\n{}\n{}", tuner::escape_controls(gpu), table.render(console.page, "  "));
    }
    if (trials.empty()) outcome.text += "no trials stored\n";
    return outcome;
}

}  // namespace

Runner declare_show(CLI::App& app) {
    const auto words = std::make_shared<std::vector<std::string>>();
    app.add_option("PROBLEM", *words, "An operator and its fields")->required();
    return [words](const Console& console) { return show(*words, console); };
}

}  // namespace hone::cli
