#include "checkpoints/files/output_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <span>

#include "checkpoints/error.h"
#include "checkpoints/files/unfinished_file.h"

namespace hone::checkpoints {
namespace {

namespace fs = std::filesystem;

/// "out/" and "out" are the same folder, and the first has no name to stand beside.
fs::path without_slash(const fs::path& folder) {
    return folder.has_filename() ? folder : folder.parent_path();
}

[[noreturn]] void fail(const fs::path& folder, const std::error_code& error) {
    throw CheckpointError(fmt::format("{}: cannot be made: {}", folder.string(), error.message()));
}

}  // namespace

OutputFolder::OutputFolder(const fs::path& folder)
    : folder_(without_slash(folder)), temporary_(fmt::format("{}.part-{}", folder_.string(), ::getpid())) {
    std::error_code error;
    if (fs::exists(fs::symlink_status(folder_, error)))
        throw CheckpointError(
            fmt::format("{}: is there already; allowed: a name that is free", folder_.string()));
    error.clear();
    if (!fs::create_directory(temporary_, error)) {
        fail(folder_, error ? error : std::make_error_code(std::errc::file_exists));
    }
}

OutputFolder::~OutputFolder() {
    if (published_) return;
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
}

void OutputFolder::write_text(std::string_view name, std::string_view text) const {
    UnfinishedFile file(temporary_ / name);
    file.write_at(0, std::as_bytes(std::span(text)));
    file.publish();
}

void OutputFolder::publish() {
    std::error_code error;
    fs::rename(temporary_, folder_, error);
    if (error) fail(folder_, error);
    published_ = true;
    sync_folder(folder_.has_parent_path() ? folder_.parent_path() : fs::path("."));
}

}  // namespace hone::checkpoints
