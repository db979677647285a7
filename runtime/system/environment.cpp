#include "runtime/system/environment.h"

#include <cstdlib>

namespace hone::runtime {
namespace {

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

Environment read_environment() {
    return {
        .cuda_library = variable("HONE_CUDA_LIBRARY"),
        .nvrtc_library = variable("HONE_NVRTC_LIBRARY"),
        .nvml_library = variable("HONE_NVML_LIBRARY"),
        .cuda_home = variable("CUDA_HOME"),
        .cuda_path = variable("CUDA_PATH"),
        .virtual_env = variable("VIRTUAL_ENV"),
        .conda_prefix = variable("CONDA_PREFIX"),
        .home = variable("HOME"),
        .check_indices = variable("HONE_CHECK_INDICES"),
    };
}

}  // namespace hone::runtime
