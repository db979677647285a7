#include "tuner/paths.h"

#include <cstdlib>
#include <system_error>

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
    const char* override_dir = std::getenv("HONE_DATA_DIR");
    return find_data_dir(override_dir == nullptr ? "" : override_dir,
                         fs::read_symlink("/proc/self/exe", unreadable));
}

}  // namespace hone::tuner
