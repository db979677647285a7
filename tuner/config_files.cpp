#include "tuner/config_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <system_error>

#include "tuner/errors.h"
#include "tuner/paths.h"

namespace hone::tuner {
namespace fs = std::filesystem;

std::vector<fs::path> config_files(std::string_view folder, std::string_view extension) {
    std::vector<fs::path> files;
    const fs::path root = data_dir();
    if (root.empty()) return files;
    std::error_code error;
    for (fs::directory_iterator entry(root / folder, error), end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().extension() == extension) files.push_back(entry->path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

std::string read_text_file(const fs::path& file, std::size_t max_bytes) {
    std::error_code error;
    const fs::file_status status = fs::status(file, error);
    if (!fs::exists(status)) throw ConfigError(fmt::format("{}: no such file", file.string()));
    if (!fs::is_regular_file(status)) throw ConfigError(fmt::format("{}: not a regular file", file.string()));
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw ConfigError(fmt::format("{}: cannot be read", file.string()));
    std::string text(max_bytes + 1, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (stream.bad()) throw ConfigError(fmt::format("{}: cannot be read to its end", file.string()));
    text.resize(static_cast<std::size_t>(stream.gcount()));
    if (text.size() > max_bytes) {
        throw ConfigError(
            fmt::format("{}: longer than {} bytes, the most that is read", file.string(), max_bytes));
    }
    return text;
}

}  // namespace hone::tuner
