// NVRTC as a table of functions, loaded with dlopen. HONE_NVRTC_LIBRARY names it; else it is looked for in
// the loader's path (libnvrtc.so.13, .12), CUDA_HOME and CUDA_PATH, /usr/local/cuda and the usual toolkit
// folders, and the Python wheels' folders (nvidia/cu13/lib, nvidia/cuda_nvrtc/lib of VIRTUAL_ENV,
// CONDA_PREFIX and the user and system site-packages). Needs version 12.0. Immutable after loading;
// thread-safe, though compiles do not scale over threads.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernel_templates/device_traits.h"
#include "runtime/system/shared_library.h"

namespace hone::runtime {

/// A compile failed; `what()` has the first error line, `log()` the compiler's whole output.
class NvrtcError : public std::runtime_error {
  public:
    NvrtcError(const std::string& what, std::string log) : std::runtime_error(what), log_(std::move(log)) {}
    [[nodiscard]] const std::string& log() const { return log_; }

  private:
    std::string log_;
};

class Nvrtc {
  public:
    /// Throws LibraryError, with every place tried.
    [[nodiscard]] static std::shared_ptr<const Nvrtc> load();

    /// "13.0"
    [[nodiscard]] std::string version() const;
    [[nodiscard]] bool supports(Arch arch) const;
    /// "sm_75 sm_80 ... sm_120"
    [[nodiscard]] std::string supported_archs() const;
    [[nodiscard]] const std::string& library_path() const;

    struct Header {
        std::string name;
        const char* text = nullptr;  ///< NUL-terminated
    };
    struct Output {
        std::vector<std::byte> cubin;
        std::string log;
    };
    /// Compiles for `--gpu-architecture` of `options`. No file is read: includes are found in `headers` or
    /// not at all. Throws NvrtcError.
    [[nodiscard]] Output compile(const std::string& source, const std::string& source_name,
                                 const std::vector<Header>& headers,
                                 const std::vector<std::string>& options) const;

    struct Functions;

  private:
    Nvrtc() = default;
    SharedLibrary library_;
    SharedLibrary builtins_;  // NVRTC opens it by name at each compile; held open so that it is found
    std::shared_ptr<const Functions> functions_;
    int major_ = 0;
    int minor_ = 0;
    std::vector<int> archs_;  // 75, 80, ...
};

}  // namespace hone::runtime
