#include "runtime/system/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string_view>

namespace hone::runtime {
namespace {

struct CloseFolder {
    void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

/// The next name, without those of the folder itself and the one above it; nullptr at the end.
const char* next_name(DIR* folder) noexcept {
    while (const dirent* entry = ::readdir(folder)) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") return entry->d_name;
    }
    return nullptr;
}

bool has_files_alone(DIR* folder) noexcept {
    ::rewinddir(folder);
    while (const char* name = next_name(folder)) {
        struct stat status {};
        if (::fstatat(::dirfd(folder), name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
            return false;
    }
    return true;
}

}  // namespace

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> entries;
    const Folder open(::opendir(folder.c_str()));
    if (!open) return entries;
    while (const char* name = next_name(open.get())) entries.push_back(folder / name);
    return entries;
}

void remove_folder_of_files(const std::filesystem::path& folder) noexcept {
    const Folder open(::opendir(folder.c_str()));
    if (!open || !has_files_alone(open.get())) return;
    ::rewinddir(open.get());
    while (const char* name = next_name(open.get())) ::unlinkat(::dirfd(open.get()), name, 0);
    ::rmdir(folder.c_str());
}

}  // namespace hone::runtime
