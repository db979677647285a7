#include "runtime/workers/program.h"

#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <system_error>

#include "runtime/system/environment.h"
#include "runtime/system/shared_library.h"
#include "runtime/workers/entry.h"

namespace hone::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* this_program = "/proc/self/exe";

/// Nobody can have put it there who could not have replaced the library.
bool belongs_to(uid_t owner, const fs::path& path, mode_t kind) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && (status.st_mode & S_IFMT) == kind &&
           (status.st_uid == owner || status.st_uid == 0) && (status.st_mode & S_IWOTH) == 0;
}

}  // namespace

fs::path own_worker_program() {
    const std::string named = read_environment().worker;
    return named.empty() || named == "off" ? this_program : named;
}

fs::path dispatch_worker_program() {
    const std::string named = read_environment().worker;
    if (named == "off" || getauxval(AT_SECURE) != 0) return {};
    if (!named.empty()) return named;
    if (fs::path beside = program_beside(own_library_path()); !beside.empty()) return beside;
    return can_be_worker() ? this_program : fs::path();
}

fs::path program_beside(const fs::path& library) {
    std::error_code error;
    struct stat status {};
    const fs::path file = library.is_absolute() ? fs::canonical(library, error) : fs::path();
    if (file.empty() || ::stat(file.c_str(), &status) != 0) return {};
    // A build folder; a wheel, or an installed prefix; one with a folder for each architecture.
    for (const char* place : {"hone", "../bin/hone", "../../bin/hone"}) {
        const fs::path program = (file.parent_path() / place).lexically_normal();
        if (belongs_to(status.st_uid, program, S_IFREG) &&
            belongs_to(status.st_uid, program.parent_path(), S_IFDIR) && ::access(program.c_str(), X_OK) == 0)
            return program;
    }
    return {};
}

}  // namespace hone::runtime
