#include "runtime/system/text_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "runtime/system/input_error.h"
#include "tests/support/allocation_count.h"
#include "tests/support/scratch.h"

using namespace hone::runtime;

namespace {

std::string refusal_of(const std::filesystem::path& file, std::size_t max_bytes = 10) {
    try {
        return "read " + std::to_string(read_text_file(file, max_bytes).size());
    } catch (const InputError& error) {
        return error.what();
    }
}

}  // namespace

TEST_CASE("a file is read whole up to its limit, and not a byte beyond") {
    const hone::test::Scratch folder;
    const auto file = folder.path("text");
    std::ofstream(file, std::ios::binary) << std::string("a\0\n\xFF", 4);
    CHECK(read_text_file(file, 4) == std::string("a\0\n\xFF", 4));
    CHECK(refusal_of(file, 3) == file.string() + ": longer than 3 bytes, the most that is read");
    const std::string pieces(3'000'000, 'x');
    std::ofstream(file, std::ios::binary) << pieces;
    CHECK(read_text_file(file, pieces.size()) == pieces);
    CHECK(refusal_of(file, pieces.size() - 1).find("longer than 2999999 bytes") != std::string::npos);
    std::ofstream(file, std::ios::trunc).close();
    CHECK(read_text_file(file, 0).empty());
}

TEST_CASE("a file that is too long is refused by its size, before it is read") {
    const hone::test::Scratch folder;
    const auto allocations = [&](std::size_t bytes) {
        const auto file = folder.path("text");
        std::ofstream(file, std::ios::binary) << std::string(bytes, 'x');
        const std::uint64_t before = hone::test::allocation_count();
        CHECK_THROWS_AS((void)read_text_file(file, bytes - 1), InputError);
        return hone::test::allocation_count() - before;
    };
    CHECK(allocations(3'000'000) == allocations(1'000'000));
}

TEST_CASE("only regular files are read: nothing that never ends or never answers") {
    const hone::test::Scratch folder;
    CHECK(refusal_of(folder.path("none")) == folder.path("none: no such file").string());
    CHECK_FALSE(has_entry(folder.path("none")));
    std::filesystem::create_symlink("nowhere", folder.path("link"));
    CHECK(refusal_of(folder.path("link")) ==
          folder.path("link: a link to a file that is not there").string());
    CHECK(has_entry(folder.path("link")));
    CHECK(refusal_of(folder.path("")) == folder.path("").string() + ": not a regular file");
    std::filesystem::create_symlink("loop", folder.path("loop"));
    const std::string loop = folder.path("loop").string();
    CHECK(refusal_of(loop) == loop + ": cannot be read: Too many levels of symbolic links");
    CHECK(refusal_of("/dev/zero") == "/dev/zero: not a regular file");
    const auto pipe = folder.path("pipe");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK(refusal_of(pipe) == pipe.string() + ": not a regular file");
}
