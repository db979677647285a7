#include "runtime/system/environment.h"

#include <cstdlib>

namespace hone::runtime {

std::string environment_variable(const char* name) {
    const char* value = ::secure_getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

bool is_set(const char* name) { return ::secure_getenv(name) != nullptr; }

Environment read_environment() {
    return {
        .cuda_library = environment_variable("HONE_CUDA_LIBRARY"),
        .nvrtc_library = environment_variable("HONE_NVRTC_LIBRARY"),
        .nvml_library = environment_variable("HONE_NVML_LIBRARY"),
        .cuda_home = environment_variable("CUDA_HOME"),
        .cuda_path = environment_variable("CUDA_PATH"),
        .virtual_env = environment_variable("VIRTUAL_ENV"),
        .conda_prefix = environment_variable("CONDA_PREFIX"),
        .home = environment_variable("HOME"),
        .capture = environment_variable("HONE_CAPTURE"),
        .worker = environment_variable("HONE_WORKER_EXECUTABLE"),
        .check_indices = environment_variable("HONE_CHECK_INDICES"),
    };
}

}  // namespace hone::runtime
