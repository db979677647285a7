// One cache database: trials, winners as a view over them, trials in flight, and compiled images.
// A Cache is used by one thread at a time; any number of processes may have the same file open.
// Survives being killed at any moment; refuses what it does not understand without touching it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/error.h"
#include "cache/records.h"

namespace hone::cache {

enum class OpenMode : std::uint8_t {
    read_write,  ///< creates file and directory (0600, 0700); refuses files or directories that others may
                 ///< write
    read_only,   ///< never writes, not even a journal; works on read-only media
};

/// Which trials or winners; empty fields match all.
struct Filter {
    std::optional<GpuKey> gpu;
    std::string family;
    std::string static_fields;
    std::string dynamic_fields;
};

/// What an image was made from. Any difference is another image.
struct ImageKey {
    std::string template_hash;
    std::string static_fields;
    std::string candidate;  ///< empty text for a reference kernel or the measuring harness
    std::string arch;       ///< "sm_90a"
    std::string nvrtc;      ///< "13.0"
    std::string options;    ///< compiler options, joined by blanks

    friend bool operator==(const ImageKey&, const ImageKey&) = default;
};

struct Image {
    std::vector<std::byte> cubin;
    Resources resources;
};

/// An image as the cache keeps it.
struct PackedImage {
    std::vector<std::byte> stored;  ///< compressed, where that makes it smaller
    std::int64_t length = 0;        ///< bytes of the image itself
    Resources resources;
    std::string checksum;  ///< over key, resources and image
};
/// Asks no cache and may run on any thread; compressing takes about a millisecond for 30 KB.
[[nodiscard]] PackedImage pack(const ImageKey& key, const Image& image);

/// A candidate that is being measured right now; written before its first launch, so that a dead worker or a
/// dead run leaves the culprit's name.
struct InFlight {
    TuningKey key;
    std::string candidate;
    std::int64_t pid = 0;
    std::int64_t started_at = 0;  ///< Unix time, milliseconds
    int attempt = 1;
};

struct Stats {
    std::filesystem::path path;
    std::int64_t file_bytes = 0;
    std::int64_t trials = 0;
    std::int64_t winners = 0;
    std::int64_t images = 0;
    std::int64_t image_bytes = 0;  ///< as they are stored, compressed
    int schema_version = 0;
    std::string journal_mode;  ///< "wal" on local disks, "truncate" on network file systems
    bool network_file_system = false;
};

struct VerifyReport {
    bool ok = true;
    std::vector<std::string> problems;  ///< one sentence each
    std::int64_t trials_checked = 0;
    std::int64_t images_checked = 0;
};

struct GcReport {
    std::int64_t images_removed = 0;
    std::int64_t bytes_freed = 0;
    std::int64_t in_flight_removed = 0;  ///< rows of processes that no longer exist
};

class Cache {
  public:
    /// Throws CacheError. An older schema is migrated in one transaction after a backup copy beside the file.
    [[nodiscard]] static Cache open(const std::filesystem::path& file, OpenMode mode = OpenMode::read_write);
    Cache(Cache&&) noexcept;
    Cache& operator=(Cache&&) noexcept;
    ~Cache();

    /// Committed when it returns. Storing an equal trial again changes nothing. For what was measured here.
    void store(const Trial& trial);
    std::int64_t store(std::span<const Trial> trials);  ///< all or nothing; returns how many were new
    /// The same for trials from elsewhere, which rank behind those from here. Nothing is checked: see
    /// cache/validator.h.
    std::int64_t store_imported(std::span<const Trial> trials);
    /// Those from elsewhere by time, then those from here in the order in which they were stored. `damaged`
    /// is set to the number of rows that could not be read.
    [[nodiscard]] std::vector<Trial> trials(const Filter& filter = {}, std::int64_t* damaged = nullptr) const;
    /// The winner of each key: among rows with `winner` set and status ok, measured before replayed before
    /// predicted, then what was measured here before what came from elsewhere, then the last one stored here
    /// or the newest from elsewhere, then the smallest identity. Sorted by key. `damaged` is set to the
    /// number of winners that could not be read.
    [[nodiscard]] std::vector<Trial> winners(const Filter& filter = {},
                                             std::int64_t* damaged = nullptr) const;
    /// Every trial that won a race, the best of each key first: another build or driver may prefer an older
    /// one.
    [[nodiscard]] std::vector<Trial> past_winners(const Filter& filter = {},
                                                  std::int64_t* damaged = nullptr) const;

    /// Trials that came past a race's screening without winning it; sorted as trials() are.
    [[nodiscard]] std::vector<Trial> raced_trials(const Filter& filter = {}) const;

    void begin(const InFlight& row);
    void end(const InFlight& row);
    [[nodiscard]] std::vector<InFlight> in_flight() const;
    /// Rows in flight whose process has ended: what they name killed it, or was being measured when it was
    /// killed.
    [[nodiscard]] std::vector<InFlight> abandoned() const;

    /// The image made from `key`. A missing or damaged blob (checksum, length) is a miss; the damaged row
    /// is removed when the cache is writable.
    [[nodiscard]] std::optional<Image> image(const ImageKey& key);
    /// Stores it and, when the size limit is passed, removes the images that were used least recently.
    void store_image(const ImageKey& key, const Image& image);
    /// The same, of an image that some other thread has packed.
    void store_image(const ImageKey& key, const PackedImage& image);
    void set_image_limit(std::int64_t bytes);

    /// Removes images of candidates that were tried and are nobody's winner, finalist or default, as `gc`
    /// does: what a tuner calls when a race is over. Their trials stay.
    void drop_lost_images();

    [[nodiscard]] Stats stats() const;
    [[nodiscard]] VerifyReport verify() const;
    GcReport gc();
    /// Removes trials and winners (or only those that match), and images if asked to.
    std::int64_t clear(const Filter& filter, bool images);

    [[nodiscard]] const std::filesystem::path& path() const;
    [[nodiscard]] bool writable() const;

  private:
    struct State;
    explicit Cache(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

struct MergeReport {
    std::int64_t added = 0;            ///< rows that were not there yet
    std::vector<std::string> refused;  ///< what is wrong with each row that was left out, one sentence each
    std::int64_t damaged = 0;          ///< rows that could not be read, and were left out, too
};

/// Union of `from` into `into`, without the rows that the validator refuses: commutative, associative,
/// idempotent over the trials of both.
MergeReport merge(Cache& into, const Cache& from);

}  // namespace hone::cache
