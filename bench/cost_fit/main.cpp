// Fits the cost models' corrections to the recorded sweeps of configs/recorded, and prints what the first 16
// predictions lose against the best recorded: by the models alone, and corrected by a fit that has not seen
// the static problem.
//
//   build/release/bench/cost_fit [--write] [--list]
//
// --list says which problems lose something with the first 16, and to what.
// --write puts the coefficients into the tree, kernel_templates/<family or namespace>/calibration.h, for each
// family that has such a file.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "bench/cost_fit/cost_fit.h"
#include "bench/measured_files.h"
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
    if (lines[0].second.problems != 0)
        fmt::print("{:<18} first {:<2} {}\n", family.name, count, judges_of(cases, count));
    for (const auto& [what, loss] : lines) {
        if (loss.problems == 0) continue;
        fmt::print(
            "{:<18} first {:<2} {:<20} {:>4} problems: {:5.2f} % mean, {:5.2f} % 95th percentile, {:5.2f} % "
            "worst\n",
            family.name, count, what, loss.problems, 100 * loss.mean, 100 * loss.p95, 100 * loss.worst);
    }
}

/// Those that lose something, the worst first.
void print_worst(std::span<const Case> cases) {
    std::vector<Judged> all = judged_left_out(cases, first_predictions.front());
    std::ranges::stable_sort(all, std::ranges::greater{}, &Judged::loss);
    for (const Judged& one : all) {
        if (one.loss <= 0) break;
        fmt::print("  {:6.2f} %  {} on {}\n", 100 * one.loss, to_string(one.judge->problem),
                   one.judge->traits.name);
        fmt::print("            best  {:9.2f} us, model {:9.2f}, rank {}: {}\n", one.best.us,
                   one.best.model_us, one.rank, to_string(one.best.candidate));
        fmt::print("            first {:9.2f} us, model {:9.2f}: {}\n", one.first.us, one.first.model_us,
                   to_string(one.first.candidate));
    }
}

const fs::path templates = fs::path(HONE_SOURCE_DIR) / "kernel_templates";

/// The folder of its `calibration.h`: its own, or where it has corrections, that of its namespace; empty
/// where it is to have none.
std::string_view room_of(const Family& family) {
    if (fs::exists(templates / family.name / "calibration.h")) return family.name;
    return family.calibration.empty() ? std::string_view() : family.device_namespace;
}

void write(std::string_view room, std::span<const Coefficient> coefficients) {
    const fs::path file = templates / room / "calibration.h";
    std::ofstream out(file, std::ios::trunc);
    out << source_of(coefficients, room);
    if (!out.flush()) throw tuner::ConfigError(file.string() + ": cannot be written");
}

int run(std::span<const std::string_view> arguments) {
    const bool lists = std::ranges::find(arguments, "--list") != arguments.end();
    const bool writes = std::ranges::find(arguments, "--write") != arguments.end();
    const std::vector<tuner::Recording> recordings = bench::recordings_of_tree(HONE_SOURCE_DIR);
    const std::vector<cache::Trial> races = bench::races_of_tree(HONE_SOURCE_DIR);
    for (const Family* family : families()) {
        const std::vector<Case> cases = training_cases(recordings, races, *family);
        for (const std::size_t count : first_predictions) print(*family, cases, count);
        if (lists) print_worst(cases);
        if (writes && !cases.empty() && !room_of(*family).empty()) write(room_of(*family), fit(cases));
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
