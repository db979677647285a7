// The environment variables that the runtime layer reads: all of them, in this one place. Read anew at each
// call, so that a process may set them before it opens a library.
#pragma once

#include <string>

namespace hone::runtime {

/// Empty: not set.
struct Environment {
    std::string cuda_library{};   ///< HONE_CUDA_LIBRARY: this libcuda and no other
    std::string nvrtc_library{};  ///< HONE_NVRTC_LIBRARY: this libnvrtc and no other
    std::string nvml_library{};   ///< HONE_NVML_LIBRARY: this libnvidia-ml and no other
    std::string cuda_home{};      ///< CUDA_HOME: a toolkit
    std::string cuda_path{};      ///< CUDA_PATH: a toolkit
    std::string virtual_env{};    ///< VIRTUAL_ENV: a Python environment that may hold NVRTC as a wheel
    std::string conda_prefix{};   ///< CONDA_PREFIX: the same for conda
    std::string home{};           ///< HOME: for the user's Python packages
    std::string capture{};        ///< HONE_CAPTURE: a file, as RuntimeOptions::capture_file
    std::string worker{};         ///< HONE_WORKER_EXECUTABLE: the program that worker processes run
    std::string check_indices{};  ///< HONE_CHECK_INDICES: "1" as RuntimeOptions::check_indices
};

[[nodiscard]] Environment read_environment();

/// What every variable of ours is read with, also by the tuner: "" when it is not set, and in a program that
/// runs with more rights than its caller, who could name libraries and programs otherwise.
[[nodiscard]] std::string environment_variable(const char* name);
/// Whether it is set, empty or not.
[[nodiscard]] bool is_set(const char* name);

}  // namespace hone::runtime
