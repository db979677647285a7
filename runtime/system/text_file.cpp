#include "runtime/system/text_file.h"

#include <fmt/format.h>

#include <fstream>
#include <system_error>

#include "runtime/system/input_error.h"

namespace hone::runtime {
namespace fs = std::filesystem;

std::string read_text_file(const fs::path& file, std::size_t max_bytes) {
    std::error_code error;
    const fs::file_status status = fs::status(file, error);
    if (!fs::exists(status)) throw InputError(fmt::format("{}: no such file", file.string()));
    if (!fs::is_regular_file(status)) throw InputError(fmt::format("{}: not a regular file", file.string()));
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw InputError(fmt::format("{}: cannot be read", file.string()));
    std::string text(max_bytes + 1, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (stream.bad()) throw InputError(fmt::format("{}: cannot be read to its end", file.string()));
    text.resize(static_cast<std::size_t>(stream.gcount()));
    if (text.size() > max_bytes) {
        throw InputError(
            fmt::format("{}: longer than {} bytes, the most that is read", file.string(), max_bytes));
    }
    return text;
}

}  // namespace hone::runtime
