// Compiled images as rows: looked up by what they were made from, checked on read, limited in size. Internal
// to the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cache/cache.h"
#include "cache/sqlite/connection.h"

namespace hone::cache {

inline constexpr std::int64_t default_image_limit_bytes = std::int64_t{2} << 30;
/// Bytes of the largest image that is kept: what a row says beyond is damage.
inline constexpr std::int64_t most_image_bytes = std::int64_t{512} << 20;

struct FoundImage {
    std::optional<Image> image{};
    bool damaged = false;  ///< there is a row, but its content does not match its checksum
    std::int64_t last_used = 0;
};
[[nodiscard]] FoundImage find_image(const sqlite::Connection& connection, const ImageKey& key);

/// Stores it and makes room; an image that is larger than the limit by itself is not stored.
void insert_image(const sqlite::Connection& connection, const ImageKey& key, const PackedImage& image,
                  std::int64_t limit_bytes);
void touch_image(const sqlite::Connection& connection, const ImageKey& key);
void delete_image(const sqlite::Connection& connection, const ImageKey& key);
std::int64_t delete_all_images(const sqlite::Connection& connection);

struct RemovedImages {
    std::int64_t count = 0;
    std::int64_t bytes = 0;
};
/// The least recently used go until the rest fits.
RemovedImages delete_least_used_images(const sqlite::Connection& connection, std::int64_t limit_bytes);
[[nodiscard]] bool has_more_images_than(const sqlite::Connection& connection, std::int64_t limit_bytes);

struct VisitedImage {
    std::int64_t row = 0;
    std::int64_t length = 0;     ///< bytes; 0 where what stands there cannot be true
    std::int64_t last_used = 0;  ///< ms since 1970
    std::string key{};           ///< as it stands there
    bool intact = false;         ///< content and key match
};
void visit_images(const sqlite::Connection& connection,
                  const std::function<void(const VisitedImage&)>& visit);

/// Images that may go, found in one view of the cache. Searching takes long in a large one, and needs no lock
/// that keeps others from writing.
struct UselessImages {
    /// What an image and the trials of its candidate have in common: static fields, the image's candidate,
    /// template hash.
    using Made = std::tuple<std::string, std::string, std::string>;
    struct Lost {
        std::string key;
        std::int64_t length = 0;
        Made made;
    };
    /// Of candidates that were tried and are nobody's winner, finalist or default. Those without a trial
    /// stay: reference kernels, and what dispatch compiled.
    std::vector<Lost> lost;
    std::vector<VisitedImage> damaged;
    std::int64_t newest_trial = 0;  ///< of the view

    [[nodiscard]] bool empty() const { return lost.empty() && damaged.empty(); }
};
[[nodiscard]] UselessImages find_lost_images(const sqlite::Connection& connection);
void find_damaged_images(const sqlite::Connection& connection, UselessImages& found);
/// Those that are still useless: of a candidate that has won since, the image stays, and what has taken the
/// place of a damaged one.
RemovedImages delete_useless_images(const sqlite::Connection& connection, const UselessImages& found);

}  // namespace hone::cache
