// Rows of a cache database: an input's rows are the cells of `trial` or `in_flight`, of any value and type
// (the first cell of a row names the table), read as dispatch, `hone list`, `verify`, `merge` and `export`
// do. An identity "=" stands for the right one, so that what lies behind that check is reached as well.
#include <cmath>

#include "cache/bundle.h"
#include "cache/cache.h"
#include "cache/layers.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/made_trials.h"
#include "tests/fuzz/table_writer.h"

namespace {

using namespace hone;
using namespace hone::cache;
using namespace hone::fuzz;

constexpr std::size_t most_rows = 8;
constexpr std::size_t trial_cells = 30;  // of schema version 1
constexpr std::size_t clock_cells = 2;   // behind them, if they are there
constexpr std::size_t chain_cells = 1;   // behind them, if there is one

std::string text_in(const Cell& cell) {
    const auto* text = std::get_if<std::string>(&cell);
    return text == nullptr ? std::string() : *text;
}
std::int64_t integer_in(const Cell& cell) {
    const auto* integer = std::get_if<std::int64_t>(&cell);
    return integer == nullptr ? 0 : *integer;
}
int small_in(const Cell& cell) { return static_cast<int>(integer_in(cell)); }
double real_in(const Cell& cell) {
    const auto* real = std::get_if<double>(&cell);
    return real == nullptr ? static_cast<double>(integer_in(cell)) : *real;
}

/// The trial that the cells of a row mean; the order is that of schema.sql, then that of schema_3.sql. The
/// table has `imported` between these, as version 2 added it.
Trial trial_of(const std::vector<Cell>& c) {
    Trial trial;
    trial.key = {.gpu = {.name = text_in(c[1]),
                         .compute_major = small_in(c[2]),
                         .compute_minor = small_in(c[3]),
                         .sm_count = small_in(c[4]),
                         .memory_clock_mhz = small_in(c[5]),
                         .mig_profile = text_in(c[6])},
                 .family = text_in(c[7]),
                 .static_fields = text_in(c[8]),
                 .dynamic_fields = text_in(c[9])};
    trial.toolchain = {.driver = text_in(c[10]), .nvrtc = text_in(c[11])};
    trial.candidate = text_in(c[12]);
    trial.template_hash = text_in(c[13]);
    trial.status = trial_status_from_name(text_in(c[14])).value_or(TrialStatus::ok);
    trial.stage = stage_from_name(text_in(c[15])).value_or(Stage::screened);
    trial.provenance = provenance_from_name(text_in(c[16])).value_or(Provenance::measured);
    trial.winner = integer_in(c[17]) != 0;
    trial.is_default = integer_in(c[18]) != 0;
    trial.timing = {.median_us = real_in(c[19]),
                    .p10_us = real_in(c[20]),
                    .p90_us = real_in(c[21]),
                    .samples = small_in(c[22])};
    trial.resources = {
        .registers = small_in(c[23]), .shared_bytes = small_in(c[24]), .spill_bytes = small_in(c[25])};
    trial.energy_mj = real_in(c[26]);
    trial.detail = text_in(c[27]);
    trial.created_at = integer_in(c[28]);
    trial.tool_version = text_in(c[29]);
    trial.timing.sm_clock_mhz = small_in(c[30]);
    trial.timing.incumbent_ratio = real_in(c[31]);
    if (c.size() > trial_cells + clock_cells) trial.chain = text_in(c[32]);
    return trial;
}

std::string row_of(const Trial& trial) {
    const GpuKey& gpu = trial.key.gpu;
    const auto number = [](auto value) { return cell_text(static_cast<std::int64_t>(value)); };
    const auto text = [](std::string_view value) { return cell_text(std::string(value)); };
    const std::vector<std::string> cells{"trial",
                                         "=",
                                         text(gpu.name),
                                         number(gpu.compute_major),
                                         number(gpu.compute_minor),
                                         number(gpu.sm_count),
                                         number(gpu.memory_clock_mhz),
                                         text(gpu.mig_profile),
                                         text(trial.key.family),
                                         text(trial.key.static_fields),
                                         text(trial.key.dynamic_fields),
                                         text(trial.toolchain.driver),
                                         text(trial.toolchain.nvrtc),
                                         text(trial.candidate),
                                         text(trial.template_hash),
                                         text(name(trial.status)),
                                         text(name(trial.stage)),
                                         text(name(trial.provenance)),
                                         number(trial.winner),
                                         number(trial.is_default),
                                         cell_text(trial.timing.median_us),
                                         cell_text(trial.timing.p10_us),
                                         cell_text(trial.timing.p90_us),
                                         number(trial.timing.samples),
                                         number(trial.resources.registers),
                                         number(trial.resources.shared_bytes),
                                         number(trial.resources.spill_bytes),
                                         cell_text(trial.energy_mj),
                                         text(trial.detail),
                                         number(trial.created_at),
                                         text(trial.tool_version),
                                         number(trial.timing.sm_clock_mhz),
                                         cell_text(trial.timing.incumbent_ratio)};
    std::string row;
    for (const std::string& cell : cells) row += (row.empty() ? "" : std::string(1, cell_end)) + cell;
    if (!trial.chain.empty()) row += cell_end + text(trial.chain);
    return row + row_end;
}

/// Returns how many rows are in the tables.
std::size_t fill(TableWriter& writer, std::string_view input) {
    std::size_t rows = 0;
    writer.begin();
    writer.clear("trial");
    writer.clear("in_flight");
    for (const std::string_view row : split(input, row_end)) {
        const std::vector<std::string_view> parts = split(row, cell_end);
        if (rows == most_rows || (parts[0] != "trial" && parts[0] != "in_flight")) continue;
        std::vector<Cell> cells;
        for (std::size_t i = 1; i < parts.size(); ++i) cells.push_back(cell_from(parts[i]));
        if (parts[0] == "trial" && cells.size() == trial_cells) {
            cells.emplace_back(std::int64_t{0});
            cells.emplace_back(0.0);
        }
        if (parts[0] == "trial" && cells.size() == trial_cells + clock_cells) cells.emplace_back(std::string());
        if (parts[0] == "trial" && cells.size() == trial_cells + clock_cells + chain_cells) {
            if (parts[1] == "=") cells[0] = identity(trial_of(cells));
            constexpr std::int64_t imported = 1;
            cells.insert(cells.begin() + trial_cells, imported);
        }
        rows += writer.insert(std::string(parts[0]), cells) ? 1 : 0;
    }
    writer.commit();
    return rows;
}

/// The cache under test, the writer past its checks, and another cache that is merged into.
struct Caches {
    std::filesystem::path file = scratch_folder() / "from.db";
    TableWriter writer{file};
    Cache from = Cache::open(file, OpenMode::read_only);
    Cache into = Cache::open(scratch_folder() / "into.db");
};

/// What `verify` calls sound can be merged, all of it, and is the same afterwards.
void check_merge(Caches& caches, const std::vector<Trial>& trials) {
    caches.into.clear({}, false);
    const MergeReport merged = merge(caches.into, caches.from);
    require(merged.refused.empty(), "sound trials are refused by nobody");
    require(merged.added == static_cast<std::int64_t>(trials.size()), "sound trials are merged, all of them");
    require(caches.into.trials() == trials, "merged trials are those that were there");
    require(merge(caches.into, caches.from).added == 0, "merging again changes nothing");
}

/// A winner that is no text of ours is a refusal that says so.
void check_export(const std::vector<Trial>& winners) {
    try {
        require(read_bundle(write_bundle(winners), "exported").size() == winners.size(),
                "exported winners are read");
    } catch (const BundleError&) {
        return;
    }
}

std::string in_flight_row() {
    const std::vector<std::string> cells{
        "in_flight", "tH100",       "i9",      "i0",          "i132", "i2619",          "t",
        "trmsnorm",  "tdtype=bf16", "trows=1", "tgroup_rows", "i1",   "i1790000000000", "i1",
        "thost",     "tboot",       "i77"};
    std::string row;
    for (const std::string& cell : cells) row += (row.empty() ? "" : std::string(1, cell_end)) + cell;
    return row + row_end;
}

}  // namespace

const int hone::fuzz::mutations = 1000;

std::vector<hone::fuzz::Seed> hone::fuzz::seeds() {
    const std::vector<Trial> winners = made_winners();
    Trial failed = winners[0];
    failed.status = TrialStatus::wrong_result;
    failed.winner = false;
    failed.timing = {};
    failed.detail = "relative error 0.5";
    Trial clocked = winners[0];
    clocked.timing.sm_clock_mhz = 1755;
    clocked.timing.incumbent_ratio = 0.984;
    Trial older = winners[1];
    older.created_at -= 1000;
    older.provenance = Provenance::replayed;
    Trial in_chain = winners[0];
    in_chain.created_at -= 1000;
    in_chain.chain = "llama-3-8b tokens=1 kv=1024";
    return {{"one", row_of(winners[0])},
            {"clocked", row_of(clocked)},
            {"failed", row_of(failed) + row_of(winners[0])},
            {"two_of_a_key", row_of(winners[1]) + row_of(older)},
            {"chosen_in_chain", row_of(winners[0]) + row_of(in_chain)},
            {"in_flight", in_flight_row() + row_of(winners[2])}};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Caches caches;
    const std::size_t rows = fill(caches.writer, text_of(data, size));
    const std::vector<Trial> trials = caches.from.trials();
    const std::vector<Trial> winners = caches.from.winners();
    require(trials.size() <= rows && winners.size() <= trials.size(), "no more is read than there is");
    static_cast<void>(caches.from.in_flight());
    static_cast<void>(caches.from.abandoned());
    static_cast<void>(caches.from.stats());
    for (const Trial& winner : winners) static_cast<void>(trust_of(winner, winner.key.gpu, winner.toolchain));
    check_export(winners);
    const VerifyReport report = caches.from.verify();
    require(report.ok == report.problems.empty(), "a report that is not ok says why");
    require(!report.ok || report.trials_checked == static_cast<std::int64_t>(trials.size()),
            "trials of a sound cache are read, all of them");
    if (!report.ok || trials.empty()) return 0;
    check_merge(caches, trials);
    count_read();
    return 0;
}
