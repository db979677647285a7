#include "runtime/nvrtc/nvrtc.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/nvrtc/locations.h"
#include "tests/support/fake_machine.h"

namespace hone::runtime {
namespace {

namespace fs = std::filesystem;
using test::FakeMachine;
using test::ScopedVariable;

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// A folder with empty files, removed at the end.
class Folder {
  public:
    explicit Folder(const std::vector<std::string>& files)
        : root_(fs::temp_directory_path() / ("nvrtc_test_" + std::to_string(getpid()))) {
        for (const std::string& file : files) {
            fs::create_directories((root_ / file).parent_path());
            std::ofstream(root_ / file).put('\n');
        }
    }
    ~Folder() { fs::remove_all(root_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    [[nodiscard]] std::string path(const std::string& file = "") const { return (root_ / file).string(); }

  private:
    fs::path root_;
};

std::ptrdiff_t position(const std::vector<std::string>& list, const std::string& item) {
    const auto at = std::find(list.begin(), list.end(), item);
    return at == list.end() ? -1 : at - list.begin();
}

TEST_CASE("a library named by hand is the only one tried") {
    CHECK(nvrtc_locations({.nvrtc_library = "/x/libnvrtc.so.13"}) ==
          std::vector<std::string>{"/x/libnvrtc.so.13"});
}

TEST_CASE("the loader's path comes before toolkits, those before Python's packages") {
    const Folder folder({"cuda/lib64/libnvrtc.so.13",
                         "venv/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                         "venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
                         "home/.local/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"});
    const auto locations = nvrtc_locations(
        {.cuda_home = folder.path("cuda"), .virtual_env = folder.path("venv"), .home = folder.path("home")});
    CHECK(locations[0] == "libnvrtc.so.13");
    CHECK(locations[1] == "libnvrtc.so.12");
    const auto toolkit = position(locations, folder.path("cuda/lib64/libnvrtc.so.13"));
    const std::string packages = "lib/python3.11/site-packages/nvidia/";
    const auto wheel13 = position(locations, folder.path("venv/" + packages + "cu13/lib/libnvrtc.so.13"));
    const auto wheel12 =
        position(locations, folder.path("venv/" + packages + "cuda_nvrtc/lib/libnvrtc.so.12"));
    const auto user =
        position(locations,
                 folder.path("home/.local/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"));
    CHECK(1 < toolkit);
    CHECK(toolkit < wheel13);
    CHECK(wheel13 < wheel12);
    CHECK(wheel12 < user);
}

TEST_CASE("a toolkit that the environment names is listed even when it is empty") {
    const auto locations = nvrtc_locations({.cuda_home = "/nowhere/cuda"});
    CHECK(position(locations, "/nowhere/cuda/lib64/libnvrtc.so.13") > 0);
}

TEST_CASE("relative folders in the environment are not looked into") {
    for (const std::string& location : nvrtc_locations({.cuda_home = "cuda", .virtual_env = ".venv"})) {
        CHECK((location.front() == '/' || !contains(location, "/")));
    }
}

TEST_CASE("a missing NVRTC is reported with every place and what to do") {
    const ScopedVariable variable("HONE_NVRTC_LIBRARY", "/nowhere/libnvrtc.so.13");
    try {
        static_cast<void>(Nvrtc::load());
        FAIL("loaded");
    } catch (const LibraryError& error) {
        CHECK(contains(error.what(), "/nowhere/libnvrtc.so.13"));
        CHECK(contains(error.hint(), "HONE_NVRTC_LIBRARY"));
    }
}

TEST_CASE("an NVRTC before 12.0 is refused with its version") {
    const FakeMachine machine("nvrtc:version=11.8");
    CHECK_THROWS_WITH_AS(static_cast<void>(Nvrtc::load()),
                         doctest::Contains("is version 11.8, needs at least 12.0"), LibraryError);
}

TEST_CASE("a library that is not NVRTC lacks its functions") {
    const ScopedVariable variable("HONE_NVRTC_LIBRARY", HONE_FAKE_NVML);
    CHECK_THROWS_WITH_AS(static_cast<void>(Nvrtc::load()), doctest::Contains("has no nvrtcVersion"),
                         LibraryError);
}

TEST_CASE("an architecture that this NVRTC does not know is refused with those it knows") {
    const FakeMachine machine("nvrtc:version=12.4:archs=75+80+90");
    const auto nvrtc = Nvrtc::load();
    CHECK(nvrtc->supports(Arch{9, 0, true}));
    CHECK_FALSE(nvrtc->supports(Arch{10, 0, true}));
    CHECK_THROWS_WITH_AS(static_cast<void>(nvrtc->compile("", "x.cu", {}, {"--gpu-architecture=sm_100a"})),
                         "x.cu: NVRTC 12.4 cannot compile for sm_100a; it supports sm_75 sm_80 sm_90",
                         NvrtcError);
}

// From here on the real compiler, which every machine that builds Hone has.

TEST_CASE("the toolkit's NVRTC compiles a kernel with headers from memory") {
    const auto nvrtc = Nvrtc::load();
    const std::vector<Nvrtc::Header> headers = {{"folder/two.h", "constexpr float two = 2.0f;"}};
    const std::string source =
        "#include \"folder/two.h\"\n"
        "extern \"C\" __global__ void twice(float* x) { x[threadIdx.x] *= two; }\n";
    const auto output =
        nvrtc->compile(source, "test/twice.cu", headers, {"--gpu-architecture=sm_90a", "--ptxas-options=-v"});
    REQUIRE(output.cubin.size() > 4);
    CHECK(output.cubin[0] == std::byte{0x7f});  // an ELF file
    CHECK(contains(output.log, "Compiling entry function 'twice'"));
}

TEST_CASE("a compile error carries the first error line and the whole log") {
    const auto nvrtc = Nvrtc::load();
    try {
        static_cast<void>(nvrtc->compile("extern \"C\" __global__ void k() { nonsense; }", "test/bad.cu", {},
                                         {"--gpu-architecture=sm_80"}));
        FAIL("compiled");
    } catch (const NvrtcError& error) {
        CHECK(contains(error.what(), "test/bad.cu: "));
        CHECK(contains(error.what(), "\"nonsense\" is undefined"));
        CHECK(contains(error.log(), "1 error detected"));
    }
}

TEST_CASE("files of the working directory cannot be included") {
    const Folder folder({"test/planted.h", "planted.h"});
    const fs::path former = fs::current_path();
    fs::current_path(folder.path());
    const auto nvrtc = Nvrtc::load();
    const auto compiles = [&](const std::string& include) {
        try {
            static_cast<void>(nvrtc->compile("#include \"" + include + "\"\n", "test/x.cu", {},
                                             {"--gpu-architecture=sm_80"}));
        } catch (const NvrtcError& error) {
            CHECK(contains(error.log(), "could not open source file"));
            return false;
        }
        return true;
    };
    CHECK_FALSE(compiles("planted.h"));
    CHECK_FALSE(compiles("test/planted.h"));
    fs::current_path(former);
}

}  // namespace
}  // namespace hone::runtime
