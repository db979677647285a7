#include "runtime/system/atomic_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "runtime/system/appended_file.h"
#include "runtime/system/input_error.h"
#include "runtime/system/part.h"
#include "runtime/system/write_error.h"
#include "tests/support/scratch.h"

using namespace hone::runtime;
using hone::test::Scratch;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

auto files_in(const fs::path& folder) { return std::distance(fs::directory_iterator(folder), {}); }

}  // namespace

TEST_CASE("a file has the rights that the umask leaves, and its new text whole") {
    const Scratch scratch;
    const mode_t before = ::umask(0027);
    write_file(scratch.path("a"), "one");
    write_file(scratch.path("a"), "two");
    ::umask(before);
    CHECK(text_of(scratch.path("a")) == "two");
    CHECK(fs::status(scratch.path("a")).permissions() == static_cast<fs::perms>(0640));
    CHECK(files_in(scratch.path("")) == 1);
}

TEST_CASE("what is not published leaves nothing, and the old file as it was") {
    const Scratch scratch;
    write_file(scratch.path("a"), "old");
    {
        AtomicFile file(scratch.path("a"));
        file.write_at(0, std::as_bytes(std::span("new")));
        CHECK(files_in(scratch.path("")) == 2);
    }
    CHECK(text_of(scratch.path("a")) == "old");
    CHECK(files_in(scratch.path("")) == 1);
}

TEST_CASE("parts of a writer that was killed are removed by the next, those of one that lives are not") {
    const Scratch scratch;
    const fs::path target = scratch.path("a");
    const fs::path dead = part_name(target);
    const fs::path dead_folder = part_name(target);
    std::ofstream(dead) << "half";
    fs::create_directory(dead_folder);
    std::ofstream(dead_folder / "file") << "half";
    AtomicFile living(target);
    write_file(target, "other");
    CHECK_FALSE(fs::exists(dead));
    CHECK_FALSE(fs::exists(dead_folder));
    CHECK(files_in(scratch.path("")) == 2);  // the target and the part of the one that lives
    living.write_at(0, std::as_bytes(std::span("x", 1)));
    living.publish();
    CHECK(text_of(target) == "x");
}

TEST_CASE("what is no part of this target, or is more than a writer makes, is left alone") {
    const Scratch scratch;
    const fs::path target = scratch.path("a");
    const fs::path others = part_name(scratch.path("b"));
    const fs::path deep = part_name(target);
    std::ofstream(others) << "of b";
    std::ofstream(target.string() + ".part") << "by hand";
    std::ofstream(target.string() + ".part-0123456789abcdeg") << "no hex digit";
    fs::create_directories(deep / "folder");
    std::ofstream(deep / "file") << "mine";
    fs::create_symlink(target, part_name(target));
    write_file(target, "text");
    CHECK(files_in(scratch.path("")) == 6);
    CHECK(text_of(deep / "file") == "mine");
}

TEST_CASE("a name of 255 bytes can be written, and one more is refused") {
    const Scratch scratch;
    const std::string longest(255, 'n');
    write_file(scratch.path(longest), "text");
    CHECK(text_of(scratch.path(longest)) == "text");
    CHECK_THROWS_AS(write_file(scratch.path(longest + "n"), "text"), InputError);
}

TEST_CASE("a pipe or folder that takes the name meanwhile is not replaced") {
    const Scratch scratch;
    AtomicFile file(scratch.path("a"));
    REQUIRE(::mkfifo(scratch.path("a").c_str(), 0600) == 0);
    CHECK_THROWS_WITH_AS(file.publish(), doctest::Contains("is a pipe, which is never replaced"), InputError);
    CHECK(fs::is_fifo(scratch.path("a")));
}

TEST_CASE("an error says whether the disk is full") {
    const Scratch scratch;
    CHECK(WriteError("f", "cannot be written", ENOSPC).disk_full());
    CHECK(WriteError("f", "cannot be written", EDQUOT).disk_full());
    CHECK_FALSE(WriteError("f", "cannot be written", EACCES).disk_full());
    CHECK_THROWS_WITH_AS(write_file("/dev/full", "text"),
                         "/dev/full: cannot be written: No space left on device", WriteError);
}

TEST_CASE("a file of lines gets its first line once, and loses a line that was cut off") {
    const Scratch scratch;
    const fs::path file = scratch.path("lines");
    AppendedFile(file, "first").append_line("a");
    std::ofstream(file, std::ios::app) << std::string(10'000, 'x');
    AppendedFile again(file, "first");
    again.append_line("b");
    AppendedFile(file, "first").append_line("c");
    again.append_line("d");
    CHECK(text_of(file) == "first\na\nb\nc\nd\n");
    std::ofstream(file) << "no line";
    AppendedFile(file, "first").append_line("a");
    CHECK(text_of(file) == "first\na\n");
}

TEST_CASE("lines are added to no link and no device") {
    const Scratch scratch;
    std::ofstream(scratch.path("mine")) << "text";
    fs::create_symlink("mine", scratch.path("link"));
    CHECK_THROWS_AS(AppendedFile(scratch.path("link"), "first"), InputError);
    CHECK_THROWS_AS(AppendedFile("/dev/null", "first"), InputError);
    CHECK(text_of(scratch.path("mine")) == "text");
}
