#include "runtime/system/write_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "runtime/system/input_error.h"

namespace hone::runtime {
namespace {

std::string text_of(const std::filesystem::path& file, std::string_view doing, int error_number) {
    return fmt::format("{}: {}: {}", file.string(), doing, std::generic_category().message(error_number));
}

}  // namespace

WriteError::WriteError(const std::filesystem::path& file, std::string_view doing, int error_number)
    : std::runtime_error(text_of(file, doing, error_number)),
      disk_full_(error_number == ENOSPC || error_number == EDQUOT),
      too_large_(error_number == EFBIG) {}

std::string WriteError::hint() const {
    if (too_large_)
        return "allow larger files (ulimit -f), or write to another file system; nothing was left behind";
    return disk_full_ ? "free space, or write to another file system; nothing was left behind"
                      : "write to a folder where this user may make files; nothing was left behind";
}

void throw_write_error(const std::filesystem::path& file, std::string_view doing, int error_number) {
    switch (error_number) {
        case ENOENT:
        case ENOTDIR:
            throw InputError(text_of(file, doing, error_number) +
                             "; allowed: a name in a folder that exists");
        case ENAMETOOLONG:
        case EISDIR: throw InputError(text_of(file, doing, error_number));
        default: throw WriteError(file, doing, error_number);
    }
}

}  // namespace hone::runtime
