// A disk that forgets: an SQLite VFS over the system's own that keeps what was written and not synced apart,
// stops at a chosen operation as a power cut would, and then puts back files in which a random part of that
// is missing. Tests use one at a time, in one thread; while it lives, every database that SQLite opens in
// this process is on it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <sqlite3.h>

namespace hone::campaign {

class LossyDisk {
  public:
    LossyDisk();
    LossyDisk(const LossyDisk&) = delete;
    LossyDisk& operator=(const LossyDisk&) = delete;
    ~LossyDisk();

    /// The power goes at the n-th operation from now that changes a file (1 is the first): it and all later
    /// ones are refused and change nothing.
    void cut_power_at(std::int64_t operation) { left_ = operation; }
    [[nodiscard]] bool power_is_cut() const { return left_ == 0; }
    /// Called after every sync that succeeded, with the file's name.
    void on_sync(std::function<void(const std::string& file)> call) { on_sync_ = std::move(call); }

    /// After the databases are closed: leaves of every file what a disk may leave. Each piece of at most 512
    /// bytes that was not synced is there or not, by itself; that an older piece replaces a newer one is the
    /// case in which the newer one is missing. Memory that processes shared (-shm) is gone. Power is back.
    void leave_remains(std::mt19937& random);

    /// Counts over the disk's life.
    [[nodiscard]] std::int64_t pieces_dropped() const { return pieces_dropped_; }

    // What follows is called by the VFS's functions alone.
    void opened(const std::string& file);
    [[nodiscard]] bool may_write();
    void written(const std::string& file, const void* bytes, int count, std::int64_t offset);
    void truncated(const std::string& file, std::int64_t bytes);
    void synced(const std::string& file);
    void removed(const std::string& file, bool folder_synced);
    [[nodiscard]] sqlite3_vfs* below() const { return below_; }

  private:
    struct Change {
        std::int64_t offset = 0;  ///< of a cut: the new size
        bool is_cut = false;
        std::string bytes;
    };
    struct File {
        std::string durable;
        bool exists_durably = false;
        std::vector<Change> changes;
        bool removed = false;  ///< and may be back, because its folder was not synced
    };

    [[nodiscard]] std::string remains_of(const File& file, std::mt19937& random, double kept);

    sqlite3_vfs* below_;
    sqlite3_vfs vfs_;
    std::map<std::string, File> files_;
    std::function<void(const std::string&)> on_sync_;
    std::int64_t left_ = -1;  ///< operations until the power goes; -1: it does not
    std::int64_t pieces_dropped_ = 0;
};

}  // namespace hone::campaign
