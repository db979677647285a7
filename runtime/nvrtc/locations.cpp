#include "runtime/nvrtc/locations.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "runtime/system/folder.h"

namespace hone::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 2> sonames = {"libnvrtc.so.13", "libnvrtc.so.12"};

// Folders in `parent` whose names begin with `prefix`, newest version (longest, then greatest name) first.
std::vector<fs::path> folders_with_prefix(const fs::path& parent, const std::string& prefix) {
    std::vector<fs::path> found;
    for (const fs::path& entry : entries_of(parent)) {
        if (entry.filename().string().starts_with(prefix)) found.push_back(entry);
    }
    std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
        const std::string x = a.string();
        const std::string y = b.string();
        return x.size() != y.size() ? x.size() > y.size() : x > y;
    });
    return found;
}

void add_existing(std::vector<std::string>& locations, const fs::path& folder) {
    std::error_code error;
    for (const char* soname : sonames) {
        if (const fs::path file = folder / soname; fs::exists(file, error))
            locations.push_back(file.string());
    }
}

// `wanted`: someone says that a toolkit is here, so name the place even when there is nothing.
void add_toolkit(std::vector<std::string>& locations, const fs::path& root, bool wanted) {
    if (!root.is_absolute()) return;
    const std::size_t before = locations.size();
    for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"}) {
        add_existing(locations, root / folder);
        if (locations.size() != before) return;
    }
    if (wanted) locations.push_back((root / "lib64" / sonames.front()).string());
}

// `library` holds python3.x folders: /usr/lib, $VIRTUAL_ENV/lib, ...
void add_wheels(std::vector<std::string>& locations, const fs::path& library) {
    if (!library.is_absolute()) return;
    for (const fs::path& python : folders_with_prefix(library, "python3")) {
        for (const char* packages : {"site-packages", "dist-packages"}) {
            add_existing(locations, python / packages / "nvidia/cu13/lib");
            add_existing(locations, python / packages / "nvidia/cuda_nvrtc/lib");
        }
    }
}

}  // namespace

std::vector<std::string> nvrtc_locations(const Environment& environment) {
    if (!environment.nvrtc_library.empty()) return {environment.nvrtc_library};
    std::vector<std::string> locations(sonames.begin(), sonames.end());
    if (!environment.cuda_home.empty()) add_toolkit(locations, environment.cuda_home, true);
    if (!environment.cuda_path.empty()) add_toolkit(locations, environment.cuda_path, true);
    add_toolkit(locations, "/usr/local/cuda", true);
    for (const fs::path& root : folders_with_prefix("/usr/local", "cuda-"))
        add_toolkit(locations, root, false);
    add_toolkit(locations, "/opt/cuda", false);

    if (!environment.virtual_env.empty()) add_wheels(locations, fs::path(environment.virtual_env) / "lib");
    if (!environment.conda_prefix.empty()) {
        add_toolkit(locations, environment.conda_prefix, false);
        add_wheels(locations, fs::path(environment.conda_prefix) / "lib");
    }
    if (!environment.home.empty()) add_wheels(locations, fs::path(environment.home) / ".local/lib");
    for (const char* library : {"/usr/local/lib", "/usr/lib"}) add_wheels(locations, library);
    return locations;
}

}  // namespace hone::runtime
