// Modules of the decoder: parts of it that need a library which the program is to start without.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "decoder/error.h"
#include "runtime/system/environment.h"
#include "runtime/system/shared_library.h"

namespace hone::decoder {

/// Where a module's file may be: what the environment variable names or, where it names nothing, beside the
/// program or the library that this code is in, in the folder above it, or in lib/hone of where they are
/// installed.
[[nodiscard]] inline std::vector<std::string> module_places(const char* file, const char* variable) {
    namespace fs = std::filesystem;
    if (std::string named = runtime::environment_variable(variable); !named.empty()) return {named};
    const std::string library = runtime::own_library_path();
    std::error_code unreadable;
    const fs::path own =
        library.empty() ? fs::read_symlink("/proc/self/exe", unreadable) : fs::absolute(library, unreadable);
    if (unreadable) return {};
    const fs::path folder = own.parent_path();
    const fs::path above = folder.parent_path();
    if (!library.empty()) return {folder / file, folder / "hone" / file, above / "hone" / file};
    return {folder / file, above / file, above / "lib" / "hone" / file};
}

/// A module's file, opened. Throws DecoderError where it or what it needs is missing: `needs`, the loader's
/// words, and `remedy`.
[[nodiscard]] inline runtime::SharedLibrary opened_module(const char* what, const char* file,
                                                          const char* variable, const char* needs,
                                                          const char* remedy) {
    try {
        return runtime::SharedLibrary::open_first(what, module_places(file, variable), "");
    } catch (const runtime::LibraryError& error) {
        const bool is_named = !runtime::environment_variable(variable).empty();
        throw DecoderError(fmt::format(
            "{}: {}; {}", needs, error.what(),
            is_named ? fmt::format("{} names it, and no other is tried", variable) : std::string(remedy)));
    }
}

/// Throws DecoderError when the module has no such function.
template <class Function>
void resolve(const runtime::SharedLibrary& library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(library.symbol(name));
    if (function == nullptr) throw DecoderError(fmt::format("{} has no {}", library.path(), name));
}

}  // namespace hone::decoder
