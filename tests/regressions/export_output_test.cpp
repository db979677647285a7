// hone export -o: the output is written whole or not at all, and nothing but a regular file is ever replaced.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <map>
#include <thread>

#include "tests/cli/program.h"

using namespace hone::test;
namespace fs = std::filesystem;

namespace {

/// A sandbox whose cache has all winners that were recorded on an H100.
void fill(const Sandbox& sandbox) {
    const Ended ended = sandbox.run({"import", HONE_SOURCE_DIR "/configs/tuned/h100-sxm.json"});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
}

Ended export_to(const Sandbox& sandbox, const std::string& file) {
    return sandbox.run({"export", "--json", "-o", file});
}

fs::file_type type_of(const fs::path& file) { return fs::symlink_status(file).type(); }

bool has_parts(const Sandbox& sandbox) {
    return std::ranges::any_of(fs::directory_iterator(sandbox.path("")), [](const auto& entry) {
        return entry.path().filename().string().find(".part") != std::string::npos;
    });
}

}  // namespace

TEST_CASE("many exporters of one file all succeed, and a reader never sees a torn one") {
    const Sandbox sandbox;
    fill(sandbox);
    REQUIRE(export_to(sandbox, "w.json").code == 0);
    const std::string whole = sandbox.read("w.json");
    REQUIRE(whole.size() > 100'000);
    std::atomic<bool> done{false};
    int torn = 0;
    int reads = 0;
    std::thread reader([&] {
        for (; !done; ++reads) torn += sandbox.read("w.json") == whole ? 0 : 1;
    });
    std::atomic<int> failed{0};
    std::vector<std::thread> exporters;
    for (int i = 0; i < 12; ++i) {
        exporters.emplace_back([&] {
            for (int round = 0; round < 8; ++round) failed += export_to(sandbox, "w.json").code == 0 ? 0 : 1;
        });
    }
    for (std::thread& exporter : exporters) exporter.join();
    done = true;
    reader.join();
    CHECK(failed == 0);
    CHECK(reads > 0);
    CHECK(torn == 0);
    CHECK(sandbox.read("w.json") == whole);
    CHECK_FALSE(has_parts(sandbox));
}

TEST_CASE("a link that was planted beside the output is not followed") {
    const Sandbox sandbox;
    fill(sandbox);
    sandbox.write("victim", "mine");
    fs::create_symlink(sandbox.path("victim"), sandbox.path("w.json.part"));
    CHECK(export_to(sandbox, "w.json").code == 0);
    CHECK(sandbox.read("victim") == "mine");
    CHECK(type_of(sandbox.path("w.json")) == fs::file_type::regular);
}

TEST_CASE("a pipe is written to and stays a pipe") {
    const Sandbox sandbox;
    fill(sandbox);
    REQUIRE(export_to(sandbox, "w.json").code == 0);
    REQUIRE(::mkfifo(sandbox.path("pipe").c_str(), 0600) == 0);
    // Until this is closed, the reader has a writer to wait for, whatever becomes of the name.
    const int held = ::open(sandbox.path("pipe").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    const int read_end = ::open(sandbox.path("pipe").c_str(), O_RDONLY | O_CLOEXEC);
    std::string read;
    std::thread reader([&] {
        std::array<char, 4096> block{};
        for (ssize_t got = 1; got > 0;) {
            got = ::read(read_end, block.data(), block.size());
            if (got > 0) read.append(block.data(), static_cast<std::size_t>(got));
        }
    });
    const Ended ended = export_to(sandbox, "pipe");
    ::close(held);
    reader.join();
    ::close(read_end);
    CHECK(ended.code == 0);
    CHECK(type_of(sandbox.path("pipe")) == fs::file_type::fifo);
    CHECK(read == sandbox.read("w.json"));
}

TEST_CASE("a name of standard output prints, and stays what it is") {
    const Sandbox sandbox;
    fill(sandbox);
    REQUIRE(export_to(sandbox, "w.json").code == 0);
    fs::create_symlink("/proc/self/fd/1", sandbox.path("out"));
    const Ended ended = sandbox.run({"export", "-o", "out"});
    CHECK(ended.code == 0);
    CHECK(ended.out == sandbox.read("w.json"));
    CHECK(type_of(sandbox.path("out")) == fs::file_type::symlink);
}

TEST_CASE("a full device is an error of its own, and stays") {
    const Sandbox sandbox;
    fill(sandbox);
    fs::create_symlink("/dev/full", sandbox.path("full"));
    const Ended ended = export_to(sandbox, "full");
    CHECK(ended.code == 1);
    CHECK(ended.json()["error"]["code"] == "disk_full");
    CHECK(ended.json()["error"]["message"] == "full: cannot be written: No space left on device");
    CHECK(type_of(sandbox.path("full")) == fs::file_type::symlink);
    CHECK(fs::is_character_file("/dev/full"));
}

TEST_CASE("a link to a file, a folder and a name in no folder are refused with what is allowed") {
    const Sandbox sandbox;
    fill(sandbox);
    sandbox.write("mine", "text");
    fs::create_symlink("mine", sandbox.path("link"));
    fs::create_directory(sandbox.path("folder"));
    const std::map<std::string, std::string> refused{
        {"link",
         "link: cannot be written: is a symbolic link, which is never replaced; allowed: a regular "
         "file or a free name"},
        {"folder",
         "folder: cannot be written: is a folder, which is never replaced; allowed: a regular file "
         "or a free name"},
        {"folder/", "'folder/' is not the name of a file; allowed: a name in a folder that exists"},
        {"no/file",
         "no/file: cannot be written: No such file or directory; allowed: a name in a folder that exists"}};
    for (const auto& [name, message] : refused) {
        CAPTURE(name);
        const Ended ended = export_to(sandbox, name);
        CHECK(ended.code == 2);
        CHECK(ended.json()["error"]["message"] == message);
    }
    CHECK(sandbox.read("mine") == "text");
    CHECK(type_of(sandbox.path("link")) == fs::file_type::symlink);
    CHECK_FALSE(has_parts(sandbox));
}

TEST_CASE("no output takes the place of a cache, or of what SQLite keeps beside it") {
    const Sandbox sandbox;
    fill(sandbox);
    const std::string cache = sandbox.path("cache/cache.db");
    const std::string trials = sandbox.run({"cache", "verify"}).out;
    for (const std::string command : {"export", "report"}) {
        for (const std::string suffix : {"", "-wal", "-shm", "-journal"}) {
            CAPTURE(command);
            CAPTURE(suffix);
            const Ended ended = sandbox.run({command, "--json", "-o", cache + suffix});
            CHECK(ended.code == 2);
            const std::string message = ended.json()["error"]["message"];
            CHECK(message.starts_with(cache + suffix + ": cannot be written: is a database"));
            CHECK(sandbox.run({"cache", "verify"}).out == trials);
        }
    }
    CHECK(export_to(sandbox, "w-wal").code == 0);
}
