#include "cache/trial_store.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "cache/provenance.h"
#include "cache/validator.h"

namespace hone::cache {
namespace {

using sqlite::Connection;
using sqlite::Statement;
using sqlite::Transaction;

// The order in which `bind_trial` and `read_trial` go through the columns.
constexpr std::string_view columns =
    "identity, gpu_name, compute_major, compute_minor, sm_count, memory_clock_mhz, mig_profile, "
    "family, static_fields, dynamic_fields, driver, nvrtc, candidate, template_hash, status, stage, "
    "provenance, "
    "winner, is_default, median_us, p10_us, p90_us, samples, registers, shared_bytes, spill_bytes, "
    "energy_mj, "
    "detail, created_at, tool_version, sm_clock_mhz, incumbent_ratio, chain";

void bind_trial(Statement& to, const Trial& trial) {
    const GpuKey& gpu = trial.key.gpu;
    to.bind(identity(trial), gpu.name, gpu.compute_major, gpu.compute_minor, gpu.sm_count,
            gpu.memory_clock_mhz, gpu.mig_profile);
    to.bind(trial.key.family, trial.key.static_fields, trial.key.dynamic_fields);
    to.bind(trial.toolchain.driver, trial.toolchain.nvrtc, trial.candidate, trial.template_hash);
    to.bind(name(trial.status), name(trial.stage), name(trial.provenance));
    to.bind(trial.winner ? 1 : 0, trial.is_default ? 1 : 0);
    to.bind(trial.timing.median_us, trial.timing.p10_us, trial.timing.p90_us, trial.timing.samples);
    to.bind(trial.resources.registers, trial.resources.shared_bytes, trial.resources.spill_bytes,
            trial.energy_mj);
    to.bind(trial.detail, trial.created_at, trial.tool_version);
    to.bind(trial.timing.sm_clock_mhz, trial.timing.incumbent_ratio, trial.chain);
}

struct Row {
    std::string identity;
    std::optional<Trial> trial;  ///< empty when damaged
    bool imported = true;
    std::int64_t sequence = 0;  ///< grows with each row that is stored
};

/// What insert_trials() takes.
bool is_finite(const Trial& trial) {
    return std::isfinite(trial.timing.median_us) && std::isfinite(trial.timing.p10_us) &&
           std::isfinite(trial.timing.p90_us) && std::isfinite(trial.timing.incumbent_ratio) &&
           std::isfinite(trial.energy_mj);
}

/// False when one of the names is unknown, which only damage can cause.
bool read_names(Statement& from, Trial& trial) {
    const auto status = trial_status_from_name(from.text());
    const auto stage = stage_from_name(from.text());
    const auto provenance = provenance_from_name(from.text());
    if (!status || !stage || !provenance) return false;
    trial.status = *status;
    trial.stage = *stage;
    trial.provenance = *provenance;
    return true;
}

Row read_trial(Statement& from) {
    Row row{.identity = from.text(), .trial = std::nullopt};
    Trial trial;
    GpuKey& gpu = trial.key.gpu;
    gpu.name = from.text();
    for (int* field : {&gpu.compute_major, &gpu.compute_minor, &gpu.sm_count, &gpu.memory_clock_mhz}) {
        *field = from.small();
    }
    gpu.mig_profile = from.text();
    for (std::string* field :
         {&trial.key.family, &trial.key.static_fields, &trial.key.dynamic_fields, &trial.toolchain.driver,
          &trial.toolchain.nvrtc, &trial.candidate, &trial.template_hash}) {
        *field = from.text();
    }
    const bool names_known = read_names(from, trial);
    trial.winner = from.integer() != 0;
    trial.is_default = from.integer() != 0;
    for (double* field : {&trial.timing.median_us, &trial.timing.p10_us, &trial.timing.p90_us})
        *field = from.real();
    trial.timing.samples = from.small();
    Resources& resources = trial.resources;
    for (int* field : {&resources.registers, &resources.shared_bytes, &resources.spill_bytes})
        *field = from.small();
    trial.energy_mj = from.real();
    trial.detail = from.text();
    trial.created_at = from.integer();
    trial.tool_version = from.text();
    trial.timing.sm_clock_mhz = from.small();
    trial.timing.incumbent_ratio = from.real();
    trial.chain = from.text();
    row.imported = from.integer() != 0;
    row.sequence = from.integer();
    const bool whole = names_known && has_bearable_size(trial) && is_finite(trial);
    if (whole && identity(trial) == row.identity) row.trial = std::move(trial);
    return row;
}

/// " WHERE ..." for the fields that a filter names; only constant text, values are bound.
std::string where(const Filter& filter) {
    std::string text = " WHERE 1";
    if (!filter.family.empty()) text += " AND family = ?";
    if (!filter.static_fields.empty()) text += " AND static_fields = ?";
    if (!filter.dynamic_fields.empty()) text += " AND dynamic_fields = ?";
    if (filter.gpu) {
        text +=
            " AND gpu_name = ? AND compute_major = ? AND compute_minor = ? AND sm_count = ?"
            " AND memory_clock_mhz = ? AND mig_profile = ?";
    }
    return text;
}

void bind_filter(Statement& to, const Filter& filter) {
    for (const std::string* field : {&filter.family, &filter.static_fields, &filter.dynamic_fields}) {
        if (!field->empty()) to.bind(*field);
    }
    if (filter.gpu) {
        const GpuKey& gpu = *filter.gpu;
        to.bind(gpu.name, gpu.compute_major, gpu.compute_minor, gpu.sm_count, gpu.memory_clock_mhz,
                gpu.mig_profile);
    }
}

struct Rows {
    std::vector<Row> intact;
    std::int64_t damaged = 0;
};

Rows select(const Connection& connection, const Filter& filter, std::string_view condition) {
    Statement statement(connection, fmt::format("SELECT {}, imported, rowid FROM trial{}{}", columns,
                                                where(filter), condition));
    bind_filter(statement, filter);
    Rows rows;
    while (statement.step()) {
        Row row = read_trial(statement);
        if (row.trial)
            rows.intact.push_back(std::move(row));
        else
            ++rows.damaged;
    }
    return rows;
}

/// How many rows there are without the help of an index, which may have lost some.
std::int64_t count_by_table(const Connection& connection, const Filter& filter, std::string_view condition) {
    Statement statement(connection,
                        fmt::format("SELECT count(*) FROM trial NOT INDEXED{}{}", where(filter), condition));
    bind_filter(statement, filter);
    return statement.step() ? statement.integer() : 0;
}

/// Sorting here is several times faster than in SQLite, whose sorter copies all columns of each row.
template <class Order>
Selected sorted(Rows read, Order order) {
    std::vector<Row>& rows = read.intact;
    std::vector<std::size_t> places(rows.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::ranges::sort(places, [&](std::size_t a, std::size_t b) { return order(rows[a]) < order(rows[b]); });
    Selected selected{.trials = {}, .damaged = read.damaged};
    selected.trials.reserve(rows.size());
    for (const std::size_t place : places) selected.trials.push_back(std::move(*rows[place].trial));
    return selected;
}

/// 0 for all imported ones, whose sequence is that of their arrival.
std::int64_t sequence_here(const Row& row) { return row.imported ? 0 : row.sequence; }

auto by_age(const Row& row) {
    return std::tuple(sequence_here(row), row.trial->created_at, std::string_view(row.identity));
}

/// The negative number, of the smallest one too.
std::int64_t newest_first(std::int64_t created_at) { return -std::max(created_at, -INT64_MAX); }

/// The order of the view `ranked_winner` in schema_3.sql.
auto by_key_and_place(const Row& row) {
    return std::tuple(std::tie(row.trial->key), distance_from_reality(row.trial->provenance),
                      row.trial->chain.empty(), row.imported, -sequence_here(row),
                      newest_first(row.trial->created_at), std::string_view(row.identity));
}

/// What a row that is there already gets: nothing where it is the same; where it is not, although its
/// identity says so, it is damaged, and what it was comes back.
std::string on_conflict() {
    std::string excluded = "excluded.";
    for (const char c : columns) excluded += c == ' ' ? " excluded." : std::string(1, c);
    return fmt::format("ON CONFLICT (identity) DO UPDATE SET ({0}) = ({1}) WHERE ({0}) IS NOT ({1})", columns,
                       excluded);
}

void require_finite(const Trial& trial) {
    if (is_finite(trial)) return;
    throw std::invalid_argument(fmt::format("trial of {} {} {}: a time or energy is not a finite number",
                                            trial.key.family, trial.key.static_fields, trial.candidate));
}

}  // namespace

std::int64_t insert_trials(const Connection& connection, std::span<const Trial> trials, Origin origin) {
    for (const Trial& trial : trials) require_finite(trial);
    std::string marks = "?, ?";
    for (const char c : columns) marks += c == ',' ? ", ?" : "";
    Transaction transaction(connection, Transaction::Kind::write);
    // Not INSERT OR IGNORE: that would also swallow a row that breaks a CHECK.
    Statement statement(
        Statement::Kept{}, connection,
        fmt::format("INSERT INTO trial ({}, imported) VALUES ({}) {}", columns, marks, on_conflict()));
    std::int64_t added = 0;
    for (const Trial& trial : trials) {
        bind_trial(statement, trial);
        statement.bind(origin == Origin::here ? 0 : 1);
        statement.run();
        added += connection.changes();
    }
    transaction.commit();
    return added;
}

Selected select_trials(const Connection& connection, const Filter& filter) {
    return sorted(select(connection, filter, ""), by_age);
}

Selected select_past_winners(const Connection& connection, const Filter& filter) {
    constexpr std::string_view that_won = " AND winner = 1 AND status = 'ok'";
    const Transaction view(connection, Transaction::Kind::read);  // others store and clear between the two
    Rows rows = select(connection, filter, that_won);
    // Through the index `trial_that_won` by now; a page of it or of the table that lost rows makes a
    // difference.
    const auto read = static_cast<std::int64_t>(rows.intact.size()) + rows.damaged;
    rows.damaged += std::abs(count_by_table(connection, filter, that_won) - read);
    return sorted(std::move(rows), by_key_and_place);
}

Selected select_raced(const Connection& connection, const Filter& filter) {
    return sorted(select(connection, filter, " AND winner = 0 AND status = 'ok' AND stage <> 'screened'"),
                  by_age);
}

std::int64_t delete_trials(const Connection& connection, const Filter& filter) {
    Statement statement(connection, "DELETE FROM trial" + where(filter));
    bind_filter(statement, filter);
    statement.run();
    return connection.changes();
}

void visit_trials(const Connection& connection,
                  const std::function<void(const std::string&, const Trial*)>& visit) {
    Statement statement(connection, fmt::format("SELECT {}, imported, rowid FROM trial", columns));
    while (statement.step()) {
        const Row row = read_trial(statement);
        visit(row.identity, row.trial ? &*row.trial : nullptr);
    }
}

}  // namespace hone::cache
