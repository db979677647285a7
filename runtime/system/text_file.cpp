#include "runtime/system/text_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <system_error>

#include "runtime/system/input_error.h"

namespace hone::runtime {
namespace fs = std::filesystem;
namespace {

/// Most files are smaller: their reader does not clear room for the largest that may be.
constexpr std::size_t piece_bytes = std::size_t{64} << 10;

void append_piece(std::ifstream& stream, std::size_t bytes, std::string& text) {
    const std::size_t before = text.size();
    text.resize(before + bytes);
    stream.read(text.data() + before, static_cast<std::streamsize>(bytes));
    text.resize(before + static_cast<std::size_t>(stream.gcount()));
}

[[noreturn]] void refuse_length(const fs::path& file, std::size_t max_bytes) {
    throw InputError(
        fmt::format("{}: longer than {} bytes, the most that is read", file.string(), max_bytes));
}

}  // namespace

void require_regular_file(const fs::path& file) {
    std::error_code error;
    const fs::file_status status = fs::status(file, error);
    if (status.type() == fs::file_type::not_found)
        throw InputError(
            fmt::format("{}: {}", file.string(),
                        has_entry(file) ? "a link to a file that is not there" : "no such file"));
    if (!fs::status_known(status))
        throw InputError(fmt::format("{}: cannot be read: {}", file.string(), error.message()));
    if (!fs::is_regular_file(status)) throw InputError(fmt::format("{}: not a regular file", file.string()));
}

bool has_entry(const fs::path& file) {
    std::error_code error;
    return fs::symlink_status(file, error).type() != fs::file_type::not_found;
}

std::string read_text_file(const fs::path& file, std::size_t max_bytes) {
    require_regular_file(file);
    std::error_code unknown;
    const std::uintmax_t bytes = fs::file_size(file, unknown);  // 0 in /proc, whatever there is to read
    if (!unknown && bytes > max_bytes) refuse_length(file, max_bytes);
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw InputError(fmt::format("{}: cannot be read", file.string()));
    std::string text;
    if (!unknown) text.reserve(bytes + piece_bytes);
    while (stream && text.size() <= max_bytes)
        append_piece(stream, std::min(piece_bytes, max_bytes + 1 - text.size()), text);
    if (stream.bad()) throw InputError(fmt::format("{}: cannot be read to its end", file.string()));
    if (text.size() > max_bytes) refuse_length(file, max_bytes);  // it has grown meanwhile
    return text;
}

}  // namespace hone::runtime
