// The one way in which files are written by name: a reader sees the old file or the new one, whole, also when
// the process is killed or the machine goes down meanwhile, and however many write the same name at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "runtime/system/file_descriptor.h"

namespace hone::runtime {

/// Throws InputError unless `file` is a regular file or not there: devices, folders and links are never
/// replaced, nor are databases, of which a cache is one, and the files that SQLite keeps beside them.
void require_replaceable(const std::filesystem::path& file);

/// A file that stands under another name (part.h) until it is whole. One thread.
class AtomicFile {
  public:
    /// Makes the part, with the rights that the umask leaves; removes abandoned ones of the same file. This
    /// and the functions below throw InputError for a name that cannot be or must not be replaced, and
    /// WriteError when the file cannot be written.
    explicit AtomicFile(std::filesystem::path file);
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;
    /// Removes the part unless it is published.
    ~AtomicFile();

    /// Anywhere, in any order.
    void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
    /// Gives it its name, in place of a file that is there, once all of it has reached the disk.
    void publish();

  private:
    void make_part();

    std::filesystem::path file_;
    std::filesystem::path part_;
    UniqueFd descriptor_;
    bool published_ = false;
};

/// Writes a whole file as AtomicFile does. A device or a pipe is written to and stays what it is, and so does
/// what stdout or stderr leads to under names such as /dev/stdout.
void write_file(const std::filesystem::path& file, std::string_view text);

/// All of `bytes` at the descriptor's position. Throws WriteError that names `file`.
void write_all(int fd, std::span<const std::byte> bytes, const std::filesystem::path& file);

}  // namespace hone::runtime
