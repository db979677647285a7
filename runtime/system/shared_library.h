// A library opened with dlopen. Used for libcuda, NVRTC and NVML.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/system/unique_handle.h"

namespace hone::runtime {

/// A library is missing or lacks a function. `what()` says which, and where it was looked for; `hint` what to
/// do.
class LibraryError : public std::runtime_error {
  public:
    LibraryError(const std::string& what, std::string hint)
        : std::runtime_error(what), hint_(std::move(hint)) {}
    [[nodiscard]] const std::string& hint() const { return hint_; }

  private:
    std::string hint_;
};

class SharedLibrary {
  public:
    SharedLibrary() = default;
    /// The first of `candidates` (absolute paths or sonames, never relative paths) that opens. Throws
    /// LibraryError listing every place tried and the loader's reason.
    [[nodiscard]] static SharedLibrary open_first(const std::string& what,
                                                  std::span<const std::string> candidates,
                                                  const std::string& hint);
    /// nullptr when the library has no such symbol.
    [[nodiscard]] void* symbol(const char* name) const;
    /// Where the opened file is.
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] explicit operator bool() const { return static_cast<bool>(handle_); }

  private:
    struct Traits {
        using Handle = void*;
        static constexpr Handle none = nullptr;
        void destroy(Handle handle) const noexcept;
    };
    UniqueHandle<Traits> handle_;
    std::string path_;
};

/// The file of the shared library that this code is in; "" in a program.
[[nodiscard]] std::string own_library_path();

}  // namespace hone::runtime
