#include "cache/cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include <fmt/format.h>

#include "cache/database.h"
#include "cache/file_size_signal.h"
#include "cache/image_store.h"
#include "cache/in_flight_store.h"
#include "cache/maintenance.h"
#include "cache/process.h"
#include "cache/trial_store.h"
#include "cache/validator.h"

namespace hone::cache {
namespace {

constexpr std::int64_t day_ms = std::int64_t{24} * 3600 * 1000;
constexpr std::int64_t held_ms = 60'000;
constexpr int read_attempts = 3;

/// The connection for one expression that writes.
class Writer {
  public:
    explicit Writer(const sqlite::Connection& connection) : connection_(connection) {}
    operator const sqlite::Connection&() const { return connection_; }

  private:
    FileSizeSignal quiet_;
    const sqlite::Connection& connection_;
};

}  // namespace

struct Cache::State {
    Database database;
    OpenMode mode = OpenMode::read_write;
    pid_t owner = ::getpid();
    std::int64_t image_limit_bytes = default_image_limit_bytes;
    std::atomic<std::int64_t> held_until_ms = 0;  ///< as write_image() says

    State(Database opened, OpenMode how) : database(std::move(opened)), mode(how) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
        // Closing in a child would drop the parent's locks and could remove its log: leaking is right.
        if (owner != ::getpid()) database.connection.leak();
    }

    void require_own_process() const {
        if (owner == ::getpid()) return;
        throw CacheError(CacheError::Kind::unusable,
                         fmt::format("{}: was opened before fork() by process {}",
                                     database.connection.file().string(), owner),
                         "open the cache again in the child process");
    }

    /// Somebody who holds the cache and does not get on is waited for once a minute, not with each image:
    /// in between this throws at once.
    template <class Write>
    void write_image(const Write& write) {
        if (now_ms() < held_until_ms)
            throw CacheError(
                CacheError::Kind::busy,
                fmt::format("{}: another process held it a moment ago", database.connection.file().string()),
                "try again in a minute");
        try {
            write(writer());
        } catch (const CacheError& error) {
            if (error.kind() == CacheError::Kind::busy) held_until_ms = now_ms() + held_ms;
            throw;
        }
    }

    [[nodiscard]] bool may_need_recovery(const CacheError& error) const {
        return mode == OpenMode::read_only && !database.unlocked && is_cured_by_recovery(error);
    }

    /// What is written to a file that has lost its name is gone with it, and SQLite would not say so.
    void require_in_place() const {
        if (!database.connection.has_moved()) return;
        throw CacheError(
            CacheError::Kind::unusable,
            fmt::format("{}: was removed, moved or replaced while it was open, and what is in it "
                        "with it",
                        database.connection.file().string()),
            "run the command again, and leave the file where it is meanwhile");
    }

    Writer writer() const {
        require_own_process();
        if (mode == OpenMode::read_write) {
            require_in_place();
            return Writer(database.connection);
        }
        throw CacheError(CacheError::Kind::read_only,
                         fmt::format("{}: was opened for reading only", database.connection.file().string()),
                         "open it for writing");
    }

    /// Runs a query; when the file is read without locks and somebody wrote it meanwhile, opens it anew and
    /// repeats. The same when a reader's file has become one that must be recovered: its writer was killed.
    template <class Query>
    auto read(const Query& query) {
        require_own_process();
        const FileSizeSignal quiet;  // readers make the log's index where there is none
        for (int attempt = 1;; ++attempt) {
            if (!database.unchanged()) database = open_database(database.connection.file(), mode);
            try {
                auto result = query(database.connection);
                if (database.unchanged() || attempt == read_attempts) return result;
            } catch (const CacheError& error) {
                if (attempt == read_attempts || (database.unchanged() && !may_need_recovery(error))) throw;
                if (mode == OpenMode::read_only) database = open_database(database.connection.file(), mode);
            }
        }
    }
};

Cache::Cache(std::unique_ptr<State> state) : state_(std::move(state)) {}
Cache::Cache(Cache&&) noexcept = default;
Cache& Cache::operator=(Cache&& other) noexcept {
    const FileSizeSignal quiet;
    state_ = std::move(other.state_);
    return *this;
}
Cache::~Cache() {
    const FileSizeSignal quiet;  // the last one to close writes the log into the file
    state_.reset();
}

Cache Cache::open(const std::filesystem::path& file, OpenMode mode) {
    const FileSizeSignal quiet;
    return Cache(std::make_unique<State>(open_database(file, mode), mode));
}

void Cache::store(const Trial& trial) { store(std::span(&trial, 1)); }

std::int64_t Cache::store(std::span<const Trial> trials) { return insert_trials(state_->writer(), trials); }

std::int64_t Cache::store_imported(std::span<const Trial> trials) {
    return insert_trials(state_->writer(), trials, Origin::elsewhere);
}

std::vector<Trial> Cache::trials(const Filter& filter, std::int64_t* damaged) const {
    Selected selected =
        state_->read([&](const auto& connection) { return select_trials(connection, filter); });
    if (damaged != nullptr) *damaged = selected.damaged;
    return std::move(selected.trials);
}

std::vector<Trial> Cache::past_winners(const Filter& filter, std::int64_t* damaged) const {
    Selected selected =
        state_->read([&](const auto& connection) { return select_past_winners(connection, filter); });
    if (damaged != nullptr) *damaged = selected.damaged;
    return std::move(selected.trials);
}

std::vector<Trial> Cache::raced_trials(const Filter& filter) const {
    return state_->read([&](const auto& connection) { return select_raced(connection, filter); }).trials;
}

std::vector<Trial> Cache::winners(const Filter& filter, std::int64_t* damaged) const {
    // Not from the view `winner`: when the row in first place is damaged, the next intact one takes its
    // place.
    std::vector<Trial> ranked = past_winners(filter, damaged);
    const auto same_key = [](const Trial& a, const Trial& b) { return a.key == b.key; };
    ranked.erase(std::unique(ranked.begin(), ranked.end(), same_key), ranked.end());
    return ranked;
}

void Cache::begin(const InFlight& row) { insert_in_flight(state_->writer(), row); }

void Cache::end(const InFlight& row) { delete_in_flight(state_->writer(), row); }

std::vector<InFlight> Cache::in_flight() const {
    return state_->read([](const auto& connection) { return select_in_flight(connection, Whose::anyone); });
}

std::vector<InFlight> Cache::abandoned() const {
    return state_->read([](const auto& connection) { return select_in_flight(connection, Whose::nobody); });
}

std::optional<Image> Cache::image(const ImageKey& key) {
    FoundImage found = state_->read([&](const auto& connection) { return find_image(connection, key); });
    if (state_->mode != OpenMode::read_write) return std::move(found.image);
    using sqlite::Connection;
    try {
        if (found.damaged) state_->write_image([&](const Connection& writer) { delete_image(writer, key); });
        if (found.image && now_ms() - found.last_used > day_ms)
            state_->write_image([&](const Connection& writer) { touch_image(writer, key); });
    } catch (const CacheError&) {
        // Housekeeping must not fail a look-up that has its answer: a busy or full cache does it another
        // time.
    }
    return std::move(found.image);
}

void Cache::store_image(const ImageKey& key, const Image& image) { store_image(key, pack(key, image)); }

void Cache::store_image(const ImageKey& key, const PackedImage& image) {
    state_->write_image([&](const sqlite::Connection& writer) {
        insert_image(writer, key, image, state_->image_limit_bytes);
    });
}

void Cache::set_image_limit(std::int64_t bytes) { state_->image_limit_bytes = bytes; }

void Cache::drop_lost_images() { cache::drop_lost_images(state_->writer()); }

Stats Cache::stats() const {
    return state_->read([&](const auto&) { return stats_of(state_->database); });
}

VerifyReport Cache::verify() const {
    return state_->read([](const auto& connection) { return verify_database(connection); });
}

GcReport Cache::gc() { return collect_garbage(state_->writer(), state_->image_limit_bytes); }

std::int64_t Cache::clear(const Filter& filter, bool images) {
    return clear_database(state_->writer(), filter, images);
}

const std::filesystem::path& Cache::path() const { return state_->database.connection.file(); }

bool Cache::writable() const { return state_->mode == OpenMode::read_write; }

MergeReport merge(Cache& into, const Cache& from) {
    MergeReport report;
    const std::int64_t now = now_ms();
    std::vector<Trial> trials = from.trials({}, &report.damaged);
    std::erase_if(trials, [&](const Trial& trial) {
        const std::optional<Fault> fault = fault_of(trial, now);
        if (fault) report.refused.push_back(describe(*fault, trial));
        return fault.has_value();
    });
    report.added = into.store_imported(trials);
    return report;
}

}  // namespace hone::cache
