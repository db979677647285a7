// hone export: the user's winners as one text file (docs/cache-format.md).
#include <fmt/format.h>

#include "cache/bundle.h"
#include "runtime/system/atomic_file.h"
#include "tuner/cli/command_list.h"
#include "tuner/cli/stored.h"
#include "tuner/cli/targets.h"

namespace hone::cli {
namespace {

struct Options {
    std::string output;
    std::string family;
    std::string gpu;
    bool predicted = false;
};

Outcome export_winners(const Options& options, const Console& console) {
    if (!options.family.empty()) static_cast<void>(family_named(options.family));
    std::vector<cache::Trial> winners =
        open_user_cache(cache::OpenMode::read_only).winners(filter_of(options.family));
    std::erase_if(winners, [&](const cache::Trial& trial) {
        const bool left_out = !options.predicted && trial.provenance == cache::Provenance::predicted;
        return left_out || (!options.gpu.empty() && trial.key.gpu.name != options.gpu);
    });
    if (winners.empty()) {
        throw Failure(ExitCode::failure,
                      {"nothing_to_export", "no winner matches", "hone list shows what there is"});
    }
    const std::size_t rows = winners.size();
    const std::string bundle = cache::write_bundle(std::move(winners));
    Outcome outcome{.data = {{"rows", rows}}};
    if (options.output.empty()) {
        outcome.data["bundle"] = bundle;
        outcome.text = bundle;
        return outcome;
    }
    runtime::write_file(options.output, bundle);
    outcome.data["file"] = options.output;
    console.note(fmt::format("{} winners written to {}", rows, options.output));
    return outcome;
}

}  // namespace

Runner declare_export(CLI::App& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("-o,--output", options->output, "File to write (default: stdout)");
    app.add_option("--family", options->family, "Only this operator");
    app.add_option("--gpu-name", options->gpu, "Only winners of this GPU, by its full name");
    app.add_flag("--with-predicted", options->predicted,
                 "Predicted winners too (default: measured and replayed ones)");
    return [options](const Console& console) { return export_winners(*options, console); };
}

}  // namespace hone::cli
