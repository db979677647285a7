#include "runtime/system/shared_library.h"

#include <doctest/doctest.h>

#include <array>
#include <string>

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

TEST_CASE("a library that was never opened has no symbols") {
    const SharedLibrary library;
    CHECK_FALSE(library);
    CHECK(library.symbol("nvmlInit_v2") == nullptr);
}

}  // namespace
}  // namespace hone::runtime
