#include "tuner/data_files.h"

#include <stdlib.h>

#include <filesystem>
#include <string>

#include <doctest/doctest.h>

namespace fs = std::filesystem;
using hone::tuner::find_data_dir;

TEST_CASE("HONE_DATA_DIR goes before everything, even when it does not exist") {
    CHECK(find_data_dir("/does/not/exist", "/usr/bin/hone") == "/does/not/exist");
}

TEST_CASE("an installed program uses the data beside it") {
    std::string prefix = (fs::temp_directory_path() / "hone-paths-XXXXXX").string();
    REQUIRE(mkdtemp(prefix.data()) != nullptr);
    const fs::path data = fs::path(prefix) / "share" / "hone";
    fs::create_directories(data / "models");
    CHECK(find_data_dir("", fs::path(prefix) / "bin" / "hone") == data);
    fs::remove_all(prefix);
}

TEST_CASE("a program in its build tree uses the source tree's configs") {
    const fs::path configs = fs::path(HONE_SOURCE_DIR) / "configs";
    const fs::path found = find_data_dir("", "/nowhere/bin/hone");
    CHECK(found == (fs::is_directory(configs) ? configs : fs::path()));
}
