#include "runtime/system/shared_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/system/file_descriptor.h"

namespace hone::runtime {
namespace {

// A name with a slash that is not absolute would be looked up in the working directory: anyone's code.
bool is_relative_path(const std::string& candidate) {
    return candidate.empty() || (candidate.front() != '/' && candidate.find('/') != std::string::npos);
}

/// Where the file would have to end for all that the loader maps of it; 0 for what is no library of this
/// machine, of which the loader says so itself.
std::uint64_t end_of_segments(int fd) {
    ElfW(Ehdr) header{};
    if (::pread(fd, &header, sizeof header, 0) != sizeof header) return 0;
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(ElfW(Phdr)))
        return 0;
    std::uint64_t end = 0;
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        ElfW(Phdr) segment{};
        const auto at = static_cast<off_t>(header.e_phoff + i * sizeof segment);
        if (::pread(fd, &segment, sizeof segment, at) != sizeof segment) return end;
        if (segment.p_type == PT_LOAD)
            end = std::max<std::uint64_t>(end, segment.p_offset + segment.p_filesz);
    }
    return end;
}

/// Why a file is not given to the loader, which would wait for a pipe's writer without end, and end the
/// process by SIGBUS where a file was cut off; "" for what is not there, and for a name that the loader looks
/// for.
std::string refusal_of_file(const std::string& path) {
    struct stat status {};
    if (path.front() != '/' || ::stat(path.c_str(), &status) != 0) return {};
    if (!S_ISREG(status.st_mode)) return "is no regular file";
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const std::uint64_t end = fd ? end_of_segments(fd.get()) : 0;
    const auto bytes = static_cast<std::uint64_t>(status.st_size);
    if (end <= bytes) return {};
    return fmt::format("is cut off: it has {} of at least {} bytes", bytes, end);
}

// dlerror() repeats the file's name, which stands before it already.
std::string loader_reason(const std::string& candidate) {
    const char* error = dlerror();
    std::string reason = error == nullptr ? "unknown reason" : error;
    if (const std::string prefix = candidate + ": "; reason.starts_with(prefix))
        reason.erase(0, prefix.size());
    return reason;
}

std::string file_of(void* handle, const std::string& candidate) {
    link_map* map = nullptr;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr)
        return candidate;
    return map->l_name;
}

}  // namespace

void SharedLibrary::Traits::destroy(Handle handle) const noexcept { dlclose(handle); }

SharedLibrary SharedLibrary::open_first(const std::string& what, std::span<const std::string> candidates,
                                        const std::string& hint) {
    std::string tried;
    for (const std::string& candidate : candidates) {
        if (is_relative_path(candidate)) {
            tried += fmt::format("\n  {}: refused, only an absolute path or a library name may be given",
                                 candidate);
            continue;
        }
        if (const std::string refusal = refusal_of_file(candidate); !refusal.empty()) {
            tried += fmt::format("\n  {}: {}", candidate, refusal);
            continue;
        }
        // NODELETE: drivers and compilers keep threads and exit handlers, unmapping their code crashes the
        // exit.
        if (void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
            SharedLibrary library;
            library.handle_ = UniqueHandle<Traits>(handle);
            library.path_ = file_of(handle, candidate);
            return library;
        }
        tried += fmt::format("\n  {}: {}", candidate, loader_reason(candidate));
    }
    throw LibraryError(fmt::format("{} was not found. Tried:{}", what, tried.empty() ? " nothing" : tried),
                       hint);
}

void* SharedLibrary::symbol(const char* name) const { return handle_ ? dlsym(handle_.get(), name) : nullptr; }

std::string own_library_path() {
    Dl_info info{};
    void* map = nullptr;
    const auto* here = reinterpret_cast<const void*>(&own_library_path);
    if (dladdr1(here, &info, &map, RTLD_DL_LINKMAP) == 0 || map == nullptr) return "";
    const char* name = static_cast<const link_map*>(map)->l_name;  // of a program it is empty
    return name == nullptr ? "" : name;
}

}  // namespace hone::runtime
