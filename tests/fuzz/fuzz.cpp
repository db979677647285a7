#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace hone::fuzz {
namespace {

std::size_t read = 0;

struct Scratch {
    std::filesystem::path path;

    Scratch() {
        const bool memory = ::access("/dev/shm", W_OK) == 0;
        std::string name =
            ((memory ? "/dev/shm" : std::filesystem::temp_directory_path()) / "hone-fuzz-XXXXXX").string();
        require(::mkdtemp(name.data()) != nullptr, "no folder for scratch files");
        path = std::filesystem::canonical(name);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
};

}  // namespace

void require(bool holds, std::string_view sentence) {
    if (holds) return;
    std::fprintf(stderr, "\nproperty broken: %.*s\n", static_cast<int>(sentence.size()), sentence.data());
    std::abort();
}

void count_read() { ++read; }
std::size_t inputs_read() { return read; }

FirstLine first_line(std::string_view text) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {text, {}};
    return {text.substr(0, end), text.substr(end + 1)};
}

const std::filesystem::path& scratch_folder() {
    static const Scratch scratch;
    return scratch.path;
}

void write_file(const std::filesystem::path& file, std::string_view bytes) {
    std::ofstream stream(file, std::ios::binary | std::ios::trunc);
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    stream.close();
    require(static_cast<bool>(stream), "a scratch file cannot be written");
}

}  // namespace hone::fuzz
