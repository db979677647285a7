#include "cache/in_flight_store.h"

#include <string>
#include <string_view>

#include "cache/process.h"

namespace hone::cache {
namespace {

using sqlite::Connection;
using sqlite::Statement;
using sqlite::Transaction;

constexpr std::int64_t week_ms = std::int64_t{7} * 24 * 3600 * 1000;

// The order in which `bind_identity` binds what makes a row.
constexpr std::string_view identity_condition =
    " WHERE family = ? AND static_fields = ? AND dynamic_fields = ? AND candidate = ? AND gpu_name = ? AND"
    " compute_major = ? AND compute_minor = ? AND sm_count = ? AND memory_clock_mhz = ? AND mig_profile = ? "
    "AND"
    " host = ? AND pid = ?";

void bind_identity(Statement& to, const InFlight& row, const std::string& host) {
    const GpuKey& gpu = row.key.gpu;
    to.bind(row.key.family, row.key.static_fields, row.key.dynamic_fields, row.candidate);
    to.bind(gpu.name, gpu.compute_major, gpu.compute_minor, gpu.sm_count, gpu.memory_clock_mhz,
            gpu.mig_profile);
    to.bind(host, row.pid);
}

struct OwnedRow {
    InFlight row;
    ProcessIdentity owner;
};

std::vector<OwnedRow> select_all(const Connection& connection) {
    Statement statement(
        connection,
        "SELECT family, static_fields, dynamic_fields, candidate, gpu_name, mig_profile, host, boot, "
        "compute_major, compute_minor, sm_count, memory_clock_mhz, attempt, pid, started_at, "
        "process_start FROM in_flight ORDER BY started_at, candidate, pid");
    std::vector<OwnedRow> rows;
    while (statement.step()) {
        OwnedRow owned;
        InFlight& row = owned.row;
        GpuKey& gpu = row.key.gpu;
        for (std::string* field :
             {&row.key.family, &row.key.static_fields, &row.key.dynamic_fields, &row.candidate, &gpu.name,
              &gpu.mig_profile, &owned.owner.host, &owned.owner.boot}) {
            *field = statement.text();
        }
        for (int* field :
             {&gpu.compute_major, &gpu.compute_minor, &gpu.sm_count, &gpu.memory_clock_mhz, &row.attempt}) {
            *field = statement.small();
        }
        row.pid = statement.integer();
        row.started_at = statement.integer();
        owned.owner.start = statement.integer();
        rows.push_back(std::move(owned));
    }
    return rows;
}

bool is_abandoned(const OwnedRow& owned) {
    const ProcessIdentity now = identity_of_process(owned.row.pid);
    if (owned.owner.host != now.host) return now_ms() - owned.row.started_at > week_ms;
    return owned.owner.boot != now.boot || now.start == 0 || owned.owner.start != now.start;
}

void delete_row(const Connection& connection, const InFlight& row, const std::string& host) {
    Statement statement(Statement::Kept{}, connection,
                        "DELETE FROM in_flight" + std::string(identity_condition));
    bind_identity(statement, row, host);
    statement.run();
}

}  // namespace

void insert_in_flight(const Connection& connection, const InFlight& row) {
    const ProcessIdentity owner = identity_of_process(row.pid);
    Transaction transaction(connection, Transaction::Kind::write);
    delete_row(connection, row, owner.host);
    Statement statement(Statement::Kept{}, connection,
                        "INSERT INTO in_flight (family, static_fields, dynamic_fields, candidate, gpu_name, "
                        "compute_major, compute_minor, sm_count, memory_clock_mhz, mig_profile, host, pid, "
                        "started_at, attempt, boot, process_start) "
                        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    bind_identity(statement, row, owner.host);
    statement.bind(row.started_at, row.attempt, owner.boot, owner.start);
    statement.run();
    transaction.commit();
}

void delete_in_flight(const Connection& connection, const InFlight& row) {
    delete_row(connection, row, host_name());
}

std::vector<InFlight> select_in_flight(const Connection& connection, Whose whose) {
    std::vector<InFlight> rows;
    for (OwnedRow& owned : select_all(connection)) {
        if (whose == Whose::anyone || is_abandoned(owned)) rows.push_back(std::move(owned.row));
    }
    return rows;
}

std::int64_t delete_abandoned(const Connection& connection) {
    std::int64_t removed = 0;
    for (const OwnedRow& owned : select_all(connection)) {
        if (!is_abandoned(owned)) continue;
        delete_row(connection, owned.row, owned.owner.host);
        ++removed;
    }
    return removed;
}

}  // namespace hone::cache
