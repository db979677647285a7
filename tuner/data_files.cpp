#include "tuner/data_files.h"

#include <algorithm>
#include <system_error>

#include "runtime/system/environment.h"
#include "runtime/system/folder.h"

namespace hone::tuner {

namespace fs = std::filesystem;

fs::path find_data_dir(const fs::path& override_dir, const fs::path& program) {
    if (!override_dir.empty()) return override_dir;
    std::error_code unreadable;  // counts as missing
    fs::path installed = program.parent_path().parent_path() / HONE_INSTALL_DATADIR / "hone";
    if (fs::is_directory(installed / "models", unreadable)) return installed;
    fs::path source = fs::path(HONE_SOURCE_DIR) / "configs";
    return fs::is_directory(source, unreadable) ? source : fs::path();
}

fs::path data_dir() {
    std::error_code unreadable;
    return find_data_dir(runtime::environment_variable("HONE_DATA_DIR"),
                         fs::read_symlink("/proc/self/exe", unreadable));
}

std::vector<fs::path> config_files(std::string_view folder, std::string_view extension) {
    std::vector<fs::path> files;
    const fs::path root = data_dir();
    if (root.empty()) return files;
    for (const fs::path& entry : runtime::entries_of(root / folder)) {
        if (entry.extension() == extension) files.push_back(entry);
    }
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace hone::tuner
