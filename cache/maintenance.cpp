#include "cache/maintenance.h"

#include <algorithm>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "cache/image_store.h"
#include "cache/in_flight_store.h"
#include "cache/process.h"
#include "cache/schema_check.h"
#include "cache/trial_store.h"
#include "cache/validator.h"
#include "kernel_templates/text.h"

namespace hone::cache {
namespace {

using sqlite::Connection;
using sqlite::Statement;
using sqlite::Transaction;

/// What SQLite itself finds: pages, cells, indexes, constraints.
void check_structure(const Connection& connection, VerifyReport& report) {
    Statement statement(connection, "PRAGMA integrity_check(20)");
    while (statement.step()) {
        // What it finds in pages comes as one text, below a heading.
        std::istringstream lines(statement.text());
        for (std::string line; std::getline(lines, line);) {
            if (line != "ok" && !line.starts_with("***")) report.problems.push_back(line);
        }
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
                fmt::format("trial {}: its content does not match its identity", printable(identity)));
        } else if (const std::optional<Fault> fault = fault_of(*trial, now)) {
            report.problems.push_back(describe(*fault, *trial));
        }
    });
    visit_images(connection, [&](const VisitedImage& image) {
        ++report.images_checked;
        if (!image.intact)
            report.problems.push_back(
                fmt::format("image {}: its content does not match its checksum", printable(image.key)));
    });
}

/// What can go, by one view of the cache.
struct Garbage {
    UselessImages images;
    bool has_too_many_images = false;
    bool has_abandoned_rows = false;

    [[nodiscard]] bool empty() const { return images.empty() && !has_too_many_images && !has_abandoned_rows; }
};

/// The long part of the work, without the writers' lock.
Garbage find_garbage(const Connection& connection, std::int64_t image_limit_bytes) {
    const Transaction view(connection, Transaction::Kind::read);
    Garbage garbage{.images = find_lost_images(connection),
                    .has_too_many_images = has_more_images_than(connection, image_limit_bytes),
                    .has_abandoned_rows = !select_in_flight(connection, Whose::nobody).empty()};
    find_damaged_images(connection, garbage.images);
    return garbage;
}

void give_back_pages(const Connection& connection) {
    if (connection.integer("PRAGMA freelist_count") > 0) connection.execute("PRAGMA incremental_vacuum");
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)");
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
    const Garbage garbage = find_garbage(connection, image_limit_bytes);
    GcReport report;
    if (!garbage.empty()) {
        Transaction transaction(connection, Transaction::Kind::write);
        const RemovedImages useless = delete_useless_images(connection, garbage.images);
        const RemovedImages unused = delete_least_used_images(connection, image_limit_bytes);
        report.images_removed = useless.count + unused.count;
        report.bytes_freed = useless.bytes + unused.bytes;
        report.in_flight_removed = delete_abandoned(connection);
        transaction.commit();
    }
    give_back_pages(connection);
    return report;
}

void drop_lost_images(const Connection& connection) {
    const UselessImages lost = [&] {
        const Transaction view(connection, Transaction::Kind::read);
        return find_lost_images(connection);
    }();
    if (lost.empty()) return;
    Transaction transaction(connection, Transaction::Kind::write);
    (void)delete_useless_images(connection, lost);
    transaction.commit();
    give_back_pages(connection);
}

std::int64_t clear_database(const Connection& connection, const Filter& filter, bool images) {
    Transaction transaction(connection, Transaction::Kind::write);
    const std::int64_t removed = delete_trials(connection, filter);
    if (images) (void)delete_all_images(connection);
    transaction.commit();
    give_back_pages(connection);
    return removed;
}

}  // namespace hone::cache
