#include "cli/decoder/loaded_model.h"

#include "cli/progress.h"

namespace hone::cli {

std::unique_ptr<decoder::RunningModel> loaded_model(decoder::ModelOptions options, const Console& console) {
    ProgressDisplay display(console, {.problems = "MB", .candidates = "GB", .are_alike = true});
    options.on_weights = [&](std::int64_t done, std::int64_t all) {
        display.update({.problems_done = static_cast<std::size_t>(done >> 20),
                        .problems_total = static_cast<std::size_t>(all >> 20),
                        .candidates_done = static_cast<std::size_t>(done >> 30),
                        .candidates_total = static_cast<std::size_t>(all >> 30),
                        .current = "weights"});
    };
    return std::make_unique<decoder::RunningModel>(options);
}

}  // namespace hone::cli
