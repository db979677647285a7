// Parts: what is to become a file or a folder stands beside it as "NAME.part-<16 random hex digits>" until it
// is whole. Who writes a part holds a lock (flock) on it, so that the next writer of the same name knows
// parts whose writer was killed, and removes them. Used by AtomicFile and checkpoints::OutputFolder.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace hone::runtime {

/// A new name for a part of `target`. Names that would be too long for a file system are cut.
[[nodiscard]] std::filesystem::path part_name(const std::filesystem::path& target);

/// Locks a part that this process has just made, for as long as `fd` is open. False when another process took
/// it for one whose writer is gone: make another one. True also where a file system has no such locks; parts
/// that are left there stay.
[[nodiscard]] bool lock_part(int fd, const std::filesystem::path& part) noexcept;

/// Removes parts of `target` whose writer is gone, as far as they belong to this user and are what a writer
/// makes: a file, or a folder with nothing but files in it. Whatever fails is left as it is.
void remove_abandoned_parts(const std::filesystem::path& target);

/// The folder that a name is in: "." for a name without one.
[[nodiscard]] std::filesystem::path folder_of(const std::filesystem::path& file);

/// The names in a folder reach the disk, where its file system can do that. Throws WriteError.
void sync_folder(const std::filesystem::path& folder);

/// Lets its owner into what was made here, whatever the umask: a file that the owner may not open again is of
/// no use to anybody.
void open_to_owner(int fd, mode_t rights) noexcept;
/// The same by its name, for a folder that nobody can open before.
void open_to_owner(const std::filesystem::path& made, mode_t rights) noexcept;

}  // namespace hone::runtime
