#include "cache/maintenance.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "cache/image_store.h"
#include "cache/in_flight_store.h"
#include "cache/process.h"
#include "cache/schema_check.h"
#include "cache/trial_store.h"
#include "cache/validator.h"

namespace hone::cache {
namespace {

using sqlite::Connection;
using sqlite::Statement;
using sqlite::Transaction;

/// What SQLite itself finds: pages, cells, indexes, constraints.
void check_structure(const Connection& connection, VerifyReport& report) {
    Statement statement(connection, "PRAGMA integrity_check(20)");
    while (statement.step()) {
        const std::string line = statement.text();
        if (line != "ok") report.problems.push_back(line);
    }
    try {
        require_schema(connection, migrations(), migrations().back().to);
    } catch (const CacheError& error) {
        report.problems.emplace_back(error.what());
    }
}

void check_content(const Connection& connection, VerifyReport& report) {
    const std::int64_t now = now_ms();
    visit_trials(connection, [&](const std::string& identity, const Trial* trial) {
        ++report.trials_checked;
        if (trial == nullptr) {
            report.problems.push_back(
                fmt::format("trial {}: its content does not match its identity", identity));
        } else if (const std::optional<Fault> fault = fault_of(*trial, now)) {
            report.problems.push_back(describe(*fault, *trial));
        }
    });
    visit_images(connection, [&](const VisitedImage& image) {
        ++report.images_checked;
        if (!image.intact)
            report.problems.push_back(
                fmt::format("image {}: its content does not match its checksum", image.key));
    });
}

}  // namespace

Stats stats_of(const Database& database) {
    const Connection& connection = database.connection;
    Stats stats;
    stats.path = connection.file();
    stats.network_file_system = database.network_file_system;
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
        stats.file_bytes +=
            std::max<std::int64_t>(0, version_of(with_suffix(connection.file(), suffix)).size);
    }
    const Transaction view(connection, Transaction::Kind::read);
    stats.trials = connection.integer("SELECT count(*) FROM trial");
    stats.winners = connection.integer("SELECT count(*) FROM winner");
    stats.images = connection.integer("SELECT count(*) FROM image");
    stats.image_bytes = connection.integer("SELECT coalesce(sum(length(cubin)), 0) FROM image");
    stats.schema_version = static_cast<int>(connection.integer("PRAGMA user_version"));
    stats.journal_mode = connection.text("PRAGMA journal_mode");
    return stats;
}

VerifyReport verify_database(const Connection& connection) {
    VerifyReport report;
    try {
        const Transaction view(connection, Transaction::Kind::read);
        check_structure(connection, report);
        check_content(connection, report);
    } catch (const CacheError& error) {
        if (error.kind() != CacheError::Kind::damaged && error.kind() != CacheError::Kind::not_a_cache) throw;
        report.problems.emplace_back(error.what());
    }
    report.ok = report.problems.empty();
    return report;
}

GcReport collect_garbage(const Connection& connection, std::int64_t image_limit_bytes) {
    GcReport report;
    Transaction transaction(connection, Transaction::Kind::write);
    const RemovedImages damaged = delete_damaged_images(connection);
    const RemovedImages lost = delete_lost_images(connection);
    const RemovedImages unused = delete_least_used_images(connection, image_limit_bytes);
    report.images_removed = damaged.count + lost.count + unused.count;
    report.bytes_freed = damaged.bytes + lost.bytes + unused.bytes;
    report.in_flight_removed = delete_abandoned(connection);
    transaction.commit();
    connection.execute("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(PASSIVE)");
    return report;
}

void drop_lost_images(const Connection& connection) {
    Transaction transaction(connection, Transaction::Kind::write);
    const RemovedImages lost = delete_lost_images(connection);
    transaction.commit();
    if (lost.count > 0) connection.execute("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(PASSIVE)");
}

std::int64_t clear_database(const Connection& connection, const Filter& filter, bool images) {
    Transaction transaction(connection, Transaction::Kind::write);
    const std::int64_t removed = delete_trials(connection, filter);
    if (images) (void)delete_all_images(connection);
    transaction.commit();
    connection.execute("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(PASSIVE)");
    return removed;
}

}  // namespace hone::cache
