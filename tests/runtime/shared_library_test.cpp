#include "runtime/system/shared_library.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <string>

#include "tests/support/scratch.h"

namespace hone::runtime {
namespace {

std::string message_for(std::span<const std::string> candidates) {
    try {
        static_cast<void>(SharedLibrary::open_first("The thing", candidates, "Install the thing."));
    } catch (const LibraryError& error) {
        CHECK(error.hint() == "Install the thing.");
        return error.what();
    }
    return {};
}

TEST_CASE("a missing library is reported with every place tried") {
    const std::array<std::string, 2> candidates = {"libdoes-not-exist.so.1", "/nowhere/libthing.so"};
    const std::string message = message_for(candidates);
    CHECK(message.find("The thing was not found") != std::string::npos);
    CHECK(message.find("libdoes-not-exist.so.1: ") != std::string::npos);
    CHECK(message.find("/nowhere/libthing.so: ") != std::string::npos);
}

TEST_CASE("a relative path is refused, not opened from the working directory") {
    const std::array<std::string, 3> candidates = {"./libm.so.6", "folder/libm.so.6", ""};
    const std::string message = message_for(candidates);
    CHECK(message.find("./libm.so.6: refused") != std::string::npos);
    CHECK(message.find("folder/libm.so.6: refused") != std::string::npos);
}

TEST_CASE("the first library that opens is taken, and says where it is") {
    const std::array<std::string, 2> candidates = {"/nowhere/libthing.so", HONE_FAKE_NVML};
    const SharedLibrary library = SharedLibrary::open_first("The thing", candidates, "");
    CHECK(library.path() == HONE_FAKE_NVML);
    CHECK(library.symbol("nvmlInit_v2") != nullptr);
    CHECK(library.symbol("no_such_function") == nullptr);
}

TEST_CASE("what the loader would wait for or die of is not given to it") {
    const test::Scratch scratch;
    const std::string pipe = scratch.path("pipe.so").string();
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    std::filesystem::copy_file(HONE_FAKE_NVML, scratch.path("short.so"));
    const std::uintmax_t bytes = std::filesystem::file_size(HONE_FAKE_NVML);
    const std::string cut_off = scratch.path("short.so").string();
    for (const std::uintmax_t left : {bytes / 2, std::uintmax_t{4096}, std::uintmax_t{100}}) {
        std::filesystem::resize_file(cut_off, left);
        const std::string message = message_for(std::array<std::string, 3>{pipe, cut_off, "/tmp"});
        CHECK(message.find(pipe + ": is no regular file") != std::string::npos);
        CHECK(message.find("/tmp: is no regular file") != std::string::npos);
        if (left > 4000)
            CHECK(message.find(cut_off + ": is cut off: it has " + std::to_string(left) + " of at least") !=
                  std::string::npos);
    }
}

TEST_CASE("a library that was never opened has no symbols") {
    const SharedLibrary library;
    CHECK_FALSE(library);
    CHECK(library.symbol("nvmlInit_v2") == nullptr);
}

}  // namespace
}  // namespace hone::runtime
