// hone list: the winners of every cache layer, grouped by GPU.
#include <fmt/format.h>

#include <map>

#include "tuner/cli/command_list.h"
#include "tuner/cli/devices.h"
#include "tuner/cli/stored.h"
#include "tuner/cli/targets.h"
#include "tuner/report/report_text.h"

namespace hone::cli {
namespace {

using tuner::Align;

Outcome list(const std::string& family, const Console& console) {
    if (!family.empty()) static_cast<void>(family_named(family));
    const std::vector<tuner::DeviceInfo> devices = find_gpus().devices;
    Outcome outcome{.data = {{"winners", Json::array()}}};
    std::map<std::string, tuner::Table> by_gpu;
    for (const StoredTrial& stored : stored_winners(filter_of(family), console)) {
        const cache::Trial& trial = stored.trial;
        const std::string trust = trust_here(trial, devices);
        Json row = tuner::as_json(trial);
        row["layer"] = stored.layer;
        row["trust"] = devices.empty() ? Json(nullptr) : Json(trust);
        outcome.data["winners"].push_back(std::move(row));
        auto [table, added] = by_gpu.try_emplace(describe(trial.key.gpu),
                                                 std::vector<tuner::Table::Column>{{"problem"},
                                                                                   {"winner"},
                                                                                   {"us", Align::right},
                                                                                   {"provenance"},
                                                                                   {"layer"},
                                                                                   {"trust here"},
                                                                                   {"tuned at (UTC)"}});
        table->second.add(
            {fmt::format("{} {} {}", trial.key.family, trial.key.static_fields, trial.key.dynamic_fields),
             trial.candidate, tuner::format_us(trial.timing.median_us), std::string(name(trial.provenance)),
             stored.layer, trust, tuner::format_time(trial.created_at)});
    }
    for (const auto& [gpu, table] : by_gpu) {
        outcome.text +=
            fmt::format("{}\n{}\n", tuner::escape_controls(gpu), table.render(console.stdout_colour, "  "));
    }
    if (by_gpu.empty()) outcome.text = "nothing is tuned yet: hone tune MODEL\n";
    return outcome;
}

}  // namespace

Runner declare_list(CLI::App& app) {
    const auto family = std::make_shared<std::string>();
    app.add_option("FAMILY", *family, "Only this operator");
    return [family](const Console& console) { return list(*family, console); };
}

}  // namespace hone::cli
