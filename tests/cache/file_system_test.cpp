#include "cache/file_system.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "support.h"

using namespace hone::cache;
using namespace hone::cache::test;

TEST_CASE("network file systems are known by the number that statfs gives") {
    for (const std::int64_t type : {0x6969L, 0x517BL, 0xFE534D42L, 0xFF534D42L, 0x0BD00BD0L, 0x47504653L,
                                    0x65735546L, 0x01021997L, 0x5346414FL, 0x19830326L, 0x00C36400L}) {
        CHECK(is_network_file_system(type));
        CHECK(is_network_file_system(
            static_cast<std::int32_t>(type)));  // where f_type is a signed 32-bit integer
    }
    for (const std::int64_t local :
         {0xEF53L /* ext4 */, 0x58465342L /* xfs */, 0x9123683EL /* btrfs */, 0x01021994L /* tmpfs */,
          0x794C7630L /* overlay */, 0x2FC12FC1L /* zfs */, 0L}) {
        CHECK_FALSE(is_network_file_system(local));
    }
}

TEST_CASE("files and directories are private whatever the umask") {
    const TemporaryDirectory directory;
    CHECK(in_child([&] {
              ::umask(0);
              create_private_directory(directory / "open/a/b");
              create_private_file(directory / "open/a/b/file");
              ::umask(0777);
              create_private_directory(directory / "closed/a/b");
              create_private_file(directory / "closed/a/b/file");
          }) == "");
    for (const char* name : {"open", "open/a", "open/a/b", "closed", "closed/a", "closed/a/b"}) {
        struct stat status {};
        REQUIRE(::lstat((directory / name).c_str(), &status) == 0);
        CHECK((status.st_mode & 07777) == 0700);
    }
    for (const char* name : {"open/a/b/file", "closed/a/b/file"}) {
        struct stat status {};
        REQUIRE(::lstat((directory / name).c_str(), &status) == 0);
        CHECK((status.st_mode & 07777) == 0600);
    }
}

TEST_CASE("a name that is too long is refused before any of its folders is made") {
    const TemporaryDirectory directory;
    std::filesystem::path deep = directory.path();
    for (int i = 0; i < 2100; ++i) deep /= "d";
    CHECK_THROWS_WITH_AS(create_private_directory(deep), doctest::Contains("File name too long"), CacheError);
    CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("creating a private file leaves an existing one as it is") {
    const TemporaryDirectory directory;
    write_file(directory / "file", "content");
    const std::string before = listing(directory.path());
    create_private_file(directory / "file");
    CHECK(listing(directory.path()) == before);
}

TEST_CASE("a file's version changes with its content") {
    const TemporaryDirectory directory;
    CHECK(version_of(directory / "none") == FileVersion{});
    write_file(directory / "file", "a");
    const FileVersion first = version_of(directory / "file");
    CHECK(first == version_of(directory / "file"));
    write_file(directory / "file", "ab");
    CHECK_FALSE(first == version_of(directory / "file"));
}

TEST_CASE("a folder above the cache that everybody may write makes it unsafe, but with the sticky bit") {
    const TemporaryDirectory directory;
    const auto parent = directory / "parent";
    create_private_directory(parent / "own");
    const auto opened = [&] { return open_error(parent / "own" / "cache.db"); };
    CHECK(opened() == "");
    REQUIRE(::chmod(parent.c_str(), 0777) == 0);
    CHECK(opened() == "unsafe_permissions");
    REQUIRE(::chmod(parent.c_str(), 01777) == 0);
    CHECK(opened() == "");
}

TEST_CASE("a folder above the cache that belongs to somebody else makes it unsafe") {
    const TemporaryDirectory directory;
    const auto parent = directory / "parent";
    create_private_directory(parent / "own");
    if (::chown(parent.c_str(), 12345, 12345) != 0) {
        MESSAGE("skipped: only root can give a folder away");
        return;
    }
    CHECK(open_error(parent / "own" / "cache.db") == "unsafe_permissions");
}
