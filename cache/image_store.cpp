#include "cache/image_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cache/checksum.h"
#include "cache/compression.h"
#include "cache/process.h"
#include "kernel_templates/catalog.h"

namespace hone::cache {
namespace {

using sqlite::Connection;
using sqlite::Statement;
using sqlite::Transaction;

constexpr std::string_view row_columns =
    "template_hash, static_fields, candidate, arch, nvrtc, options, registers, shared_bytes, spill_bytes, "
    "checksum, "
    "length, cubin";

/// A row's length where it can be true. Sums of what damage has put there would overflow, and intact images
/// would make room for it.
std::string likely_length() {
    return fmt::format("iif(length BETWEEN 0 AND {}, length, 0)", most_image_bytes);
}

std::string key_of(const ImageKey& key) {
    Fingerprint print("hone.image-key/1");
    print.text(key.template_hash).text(key.static_fields).text(key.candidate);
    print.text(key.arch).text(key.nvrtc).text(key.options);
    return print.hex();
}

std::string checksum_of(const ImageKey& key, const Image& image) {
    Fingerprint print("hone.image/1");
    print.text(key_of(key)).integer(image.resources.registers).integer(image.resources.shared_bytes);
    print.integer(image.resources.spill_bytes).bytes(image.cubin);
    return print.hex();
}

/// Fewer bytes than `length` are compressed ones; what cannot be uncompressed comes back empty.
std::vector<std::byte> uncompressed(std::vector<std::byte> stored, std::int64_t length) {
    if (length > most_image_bytes) return {};
    if (length <= static_cast<std::int64_t>(stored.size())) return stored;
    return decompress(stored, static_cast<std::size_t>(length)).value_or(std::vector<std::byte>());
}

struct Row {
    ImageKey key;
    Image image;
    bool intact = false;
};

Row read_row(Statement& from) {
    Row row;
    for (std::string* field : {&row.key.template_hash, &row.key.static_fields, &row.key.candidate,
                               &row.key.arch, &row.key.nvrtc, &row.key.options}) {
        *field = from.text();
    }
    Resources& resources = row.image.resources;
    for (int* field : {&resources.registers, &resources.shared_bytes, &resources.spill_bytes})
        *field = from.small();
    const std::string checksum = from.text();
    const std::int64_t length = from.integer();
    row.image.cubin = uncompressed(from.blob(), length);
    row.intact = length == static_cast<std::int64_t>(row.image.cubin.size()) &&
                 checksum == checksum_of(row.key, row.image);
    return row;
}

bool is_stored(const Connection& connection, const std::string& key, const std::string& checksum) {
    Statement statement(Statement::Kept{}, connection, "SELECT 1 FROM image WHERE key = ? AND checksum = ?");
    statement.bind(key, checksum);
    return statement.step();
}

void insert_row(const Connection& connection, const ImageKey& key, const PackedImage& image) {
    const std::int64_t now = now_ms();
    Statement statement(Statement::Kept{}, connection,
                        "INSERT OR REPLACE INTO image (key, template_hash, static_fields, candidate, arch, "
                        "nvrtc, options, registers, shared_bytes, spill_bytes, checksum, created_at, "
                        "last_used, length, cubin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    statement.bind(key_of(key), key.template_hash, key.static_fields, key.candidate, key.arch, key.nvrtc,
                   key.options);
    statement.bind(image.resources.registers, image.resources.shared_bytes, image.resources.spill_bytes,
                   image.checksum);
    statement.bind(now, now, image.length, std::span<const std::byte>(image.stored));
    statement.run();
}

void delete_key(const Connection& connection, const std::string& key) {
    Statement statement(connection, "DELETE FROM image WHERE key = ?");
    statement.bind(key);
    statement.run();
}

std::int64_t total_length(const Connection& connection) {
    return connection.integer(fmt::format("SELECT coalesce(sum({}), 0) FROM image", likely_length()));
}

}  // namespace

PackedImage pack(const ImageKey& key, const Image& image) {
    PackedImage packed{.stored = compress(image.cubin),
                       .length = std::ssize(image.cubin),
                       .resources = image.resources,
                       .checksum = checksum_of(key, image)};
    if (packed.stored.size() >= image.cubin.size()) packed.stored = image.cubin;
    return packed;
}

FoundImage find_image(const Connection& connection, const ImageKey& key) {
    Statement statement(Statement::Kept{}, connection,
                        "SELECT last_used, " + std::string(row_columns) + " FROM image WHERE key = ?");
    statement.bind(key_of(key));
    if (!statement.step()) return {};
    FoundImage found{.last_used = statement.integer()};
    Row row = read_row(statement);
    found.damaged = !row.intact || row.key != key;
    if (!found.damaged) found.image = std::move(row.image);
    return found;
}

void insert_image(const Connection& connection, const ImageKey& key, const PackedImage& image,
                  std::int64_t limit_bytes) {
    if (image.length > std::min(limit_bytes, most_image_bytes)) return;
    if (is_stored(connection, key_of(key), image.checksum)) return;
    Transaction transaction(connection, Transaction::Kind::write);
    delete_key(connection, key_of(key));
    delete_least_used_images(connection, limit_bytes - image.length);
    insert_row(connection, key, image);
    transaction.commit();
}

void touch_image(const Connection& connection, const ImageKey& key) {
    Statement statement(connection, "UPDATE image SET last_used = ? WHERE key = ?");
    statement.bind(now_ms(), key_of(key));
    statement.run();
}

void delete_image(const Connection& connection, const ImageKey& key) { delete_key(connection, key_of(key)); }

std::int64_t delete_all_images(const Connection& connection) {
    Statement(connection, "DELETE FROM image").run();
    return connection.changes();
}

bool has_more_images_than(const Connection& connection, std::int64_t limit_bytes) {
    return total_length(connection) > limit_bytes;
}

RemovedImages delete_least_used_images(const Connection& connection, std::int64_t limit_bytes) {
    std::int64_t total = total_length(connection);
    if (total <= limit_bytes) return {};
    RemovedImages removed;
    std::vector<std::string> keys;
    Statement statement(connection,
                        fmt::format("SELECT key, {} FROM image ORDER BY last_used, key", likely_length()));
    while (total > limit_bytes && statement.step()) {
        keys.push_back(statement.text());
        const std::int64_t length = statement.integer();
        total -= length;
        removed.bytes += length;
    }
    statement.reset();
    for (const std::string& key : keys) delete_key(connection, key);
    removed.count = static_cast<std::int64_t>(keys.size());
    return removed;
}

namespace {

using Made = UselessImages::Made;

constexpr std::string_view keep_their_images =
    "status = 'ok' AND (winner = 1 OR is_default = 1 OR stage = 'final_round')";

/// Of a candidate that this build does not know: its own text.
std::string image_text(const std::string& family_name, const std::string& candidate_text, Arch arch) {
    const Family* family = find_family(family_name);
    const auto candidate = family != nullptr ? parse_candidate(*family, candidate_text) : std::nullopt;
    return candidate ? to_string(image_candidate(*candidate, arch)) : candidate_text;
}

/// Of trials that are newer than this one.
std::set<Made> tried(const Connection& connection, std::string_view condition, std::int64_t than = 0) {
    Statement statement(connection,
                        "SELECT DISTINCT static_fields, family, candidate, compute_major, compute_minor, "
                        "template_hash FROM trial WHERE rowid > ? AND " +
                            std::string(condition));
    statement.bind(than);
    std::set<Made> all;
    while (statement.step()) {
        std::string static_fields = statement.text();
        const std::string family = statement.text();
        const std::string candidate = statement.text();
        const int major = static_cast<int>(statement.integer());
        const int minor = static_cast<int>(statement.integer());
        all.emplace(std::move(static_fields), image_text(family, candidate, native_arch(major, minor)),
                    statement.text());
    }
    return all;
}

}  // namespace

UselessImages find_lost_images(const Connection& connection) {
    UselessImages found;
    found.newest_trial = connection.integer("SELECT coalesce(max(rowid), 0) FROM trial");
    const std::set<Made> known = tried(connection, "1");
    const std::set<Made> kept = tried(connection, keep_their_images);
    Statement statement(
        connection,
        fmt::format("SELECT key, {}, static_fields, candidate, template_hash FROM image", likely_length()));
    while (statement.step()) {
        std::string key = statement.text();
        const std::int64_t length = statement.integer();
        std::string static_fields = statement.text();
        std::string candidate = statement.text();
        Made made{std::move(static_fields), std::move(candidate), statement.text()};
        if (known.contains(made) && !kept.contains(made))
            found.lost.push_back({std::move(key), length, std::move(made)});
    }
    return found;
}

void find_damaged_images(const Connection& connection, UselessImages& found) {
    visit_images(connection, [&](const VisitedImage& image) {
        if (!image.intact) found.damaged.push_back(image);
    });
}

RemovedImages delete_useless_images(const Connection& connection, const UselessImages& found) {
    RemovedImages removed;
    const auto count = [&](std::int64_t length) {
        if (connection.changes() == 0) return;
        ++removed.count;
        removed.bytes += length;
    };
    const std::set<Made> kept_since = tried(connection, keep_their_images, found.newest_trial);
    for (const UselessImages::Lost& image : found.lost) {
        if (kept_since.contains(image.made)) continue;
        delete_key(connection, image.key);
        count(image.length);
    }
    // By row: what is damaged may be the key, which then finds nothing.
    for (const VisitedImage& image : found.damaged) {
        Statement statement(connection, "DELETE FROM image WHERE rowid = ? AND last_used = ?");
        statement.bind(image.row, image.last_used);
        statement.run();
        count(image.length);
    }
    return removed;
}

void visit_images(const Connection& connection, const std::function<void(const VisitedImage&)>& visit) {
    // A blob of the same bytes reads like the text, and is found by none.
    constexpr std::string_view are_texts =
        "typeof(key) = 'text' AND typeof(template_hash) = 'text' AND typeof(static_fields) = 'text' AND "
        "typeof(candidate) = 'text' AND typeof(arch) = 'text' AND typeof(nvrtc) = 'text' AND "
        "typeof(options) = 'text' AND typeof(checksum) = 'text'";
    Statement statement(connection, fmt::format("SELECT rowid, {}, last_used, {}, key, {} FROM image",
                                                likely_length(), are_texts, row_columns));
    while (statement.step()) {
        VisitedImage image{
            .row = statement.integer(), .length = statement.integer(), .last_used = statement.integer()};
        const bool has_texts = statement.integer() == 1;
        image.key = statement.text();
        const Row row = read_row(statement);
        image.intact = row.intact && has_texts && image.key == key_of(row.key);
        visit(image);
    }
}

}  // namespace hone::cache
