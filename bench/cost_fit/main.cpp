// Fits the cost models' corrections to the recorded sweeps of configs/recorded, and prints what the first 16
// predictions lose against the best recorded: by the models alone, and corrected by a fit that has not seen
// the static problem.
//
//   build/release/bench/cost_fit [--write]
//
// --write puts the coefficients into the tree, kernel_templates/<family or namespace>/calibration.h, for each
// family that has such a file.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "bench/cost_fit/cost_fit.h"
#include "kernel_templates/catalog.h"
#include "tuner/errors.h"

namespace {

using namespace hone;
using namespace hone::cost_fit;
namespace fs = std::filesystem;

constexpr std::array<std::size_t, 2> first_predictions{16, 6};  // of whole sweeps, and of quick ones

void print(const Family& family, std::span<const Case> cases, std::size_t count) {
    const std::pair<std::string_view, Loss> lines[] = {{"models", loss_of_model(cases, count)},
                                                       {"corrected, left out", loss_left_out(cases, count)}};
    for (const auto& [what, loss] : lines) {
        if (loss.problems == 0) continue;
        fmt::print(
            "{:<18} first {:<2} {:<20} {:>4} problems: {:5.2f} % mean, {:5.2f} % 95th percentile, {:5.2f} % "
            "worst\n",
            family.name, count, what, loss.problems, 100 * loss.mean, 100 * loss.p95, 100 * loss.worst);
    }
}

/// Its own folder's, or where it has corrections, that of its namespace; empty where it is to have none.
fs::path file_of(const Family& family) {
    const fs::path templates = fs::path(HONE_SOURCE_DIR) / "kernel_templates";
    const fs::path own = templates / family.name / "calibration.h";
    if (fs::exists(own)) return own;
    return family.calibration.empty() ? fs::path() : templates / room_of(family) / "calibration.h";
}

void write(const Family& family, std::span<const Coefficient> coefficients) {
    std::ofstream out(file_of(family), std::ios::trunc);
    out << source_of(coefficients, family);
    if (!out.flush()) throw tuner::ConfigError(file_of(family).string() + ": cannot be written");
}

int run(std::span<const std::string_view> arguments) {
    const bool writes = std::ranges::find(arguments, "--write") != arguments.end();
    std::vector<tuner::Recording> recordings;
    for (const fs::directory_entry& file : fs::directory_iterator(HONE_SOURCE_DIR "/configs/recorded"))
        recordings.push_back(tuner::read_recording(file.path()));
    for (const Family* family : families()) {
        const std::vector<Case> cases = cases_of(recordings, *family);
        for (const std::size_t count : first_predictions) print(*family, cases, count);
        if (writes && !cases.empty() && !file_of(*family).empty()) write(*family, fit(cases));
    }
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    try {
        return run(std::vector<std::string_view>(arguments + 1, arguments + count));
    } catch (const std::exception& error) {
        fmt::print(stderr, "cost_fit: {}\n", error.what());
        return 1;
    }
}
