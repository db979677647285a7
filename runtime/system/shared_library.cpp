#include "runtime/system/shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include <fmt/format.h>

namespace hone::runtime {
namespace {

// A name with a slash that is not absolute would be looked up in the working directory: anyone's code.
bool is_relative_path(const std::string& candidate) {
    return candidate.empty() || (candidate.front() != '/' && candidate.find('/') != std::string::npos);
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
