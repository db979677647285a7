#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/architecture/include_rules.h"

using hone::architecture::violations;
using hone::architecture::violations_below;

namespace {

bool is_refused(const char* path, const char* text) { return violations(path, text).size() == 1; }
bool is_fine(const char* path, const char* text) { return violations(path, text).empty(); }

}  // namespace

TEST_CASE("no file of this tree includes against the direction of the layers") {
    for (const std::string& violation : violations_below(HONE_SOURCE_DIR)) FAIL_CHECK(violation);
}

TEST_CASE("the check sees this tree") {
    CHECK(std::filesystem::exists(std::filesystem::path(HONE_SOURCE_DIR) / "kernel_templates" / "catalog.h"));
}

TEST_CASE("an include arrow to the right is refused, to the left it is fine") {
    CHECK(is_refused("kernel_templates/x.cpp", "#include \"cache/cache.h\"\n"));
    CHECK(is_refused("cache/x.cpp", "#include \"runtime/compile/compiler.h\"\n"));
    CHECK(is_refused("cache/deep/er/x.cpp", "#include <hone/hone.h>\n"));
    CHECK(is_refused("runtime/x.h", "#include \"tuner/search/tuner.h\"\n"));
    CHECK(is_refused("runtime/x.cpp", "#include \"checkpoints/read/checkpoint.h\"\n"));
    CHECK(is_refused("checkpoints/read/x.cpp", "#include \"tuner/errors.h\"\n"));
    CHECK(is_fine("checkpoints/read/x.cpp", "#include \"runtime/system/text_file.h\"\n"));
    CHECK(is_refused("checkpoints/x.cpp", "#include \"decoder/error.h\"\n"));
    CHECK(is_refused("tuner/x.cpp", "#include \"decoder/error.h\"\n"));
    CHECK(is_refused("decoder/x.cpp", "#include \"tuner/errors.h\"\n"));
    CHECK(is_fine("decoder/tokenizer/x.cpp", "#include \"runtime/system/text_file.h\"\n"));
    CHECK(is_refused("tuner/x.h", "#include \"tests/support/fake.h\"\n"));
    CHECK(is_fine("tuner/x.cpp", "#include \"runtime/compile/compiler.h\"\n#include \"cache/cache.h\"\n"));
    CHECK(is_fine("tests/cache/x_test.cpp", "#include \"tuner/search/tuner.h\"\n"));
}

TEST_CASE("a relative path cannot hide the direction") {
    CHECK(is_refused("cache/x.cpp", "#include \"../tuner/tuner.h\"\n"));
    CHECK(is_refused("cache/x.cpp", "#  include   \"../tuner/tuner.h\"\n"));
}

TEST_CASE("comments and strings are not includes") {
    CHECK(is_fine("cache/x.cpp", "// #include \"tuner/search/tuner.h\"\n"));
    CHECK(is_fine("cache/x.cpp", "/*\n#include \"tuner/search/tuner.h\"\n*/\n"));
    CHECK(is_fine("cache/x.cpp", "const char* text = R\"(\n#include \"tuner/search/tuner.h\"\n)\";\n"));
    CHECK(is_refused("cache/x.cpp", "const int n = 1'000; /* \" */\n#include \"tuner/search/tuner.h\"\n"));
}

TEST_CASE("a violation names file and line") {
    const std::vector<std::string> found =
        violations("cache/x.cpp", "/* a\n b */\n#include \"tuner/search/tuner.h\"\n");
    REQUIRE(found.size() == 1);
    CHECK(found[0] == "cache/x.cpp:3: includes tuner/search/tuner.h: cache/ must not know tuner/");
}

TEST_CASE("a third-party interface stays in its folder") {
    CHECK(is_refused("runtime/x.cpp", "#include <sqlite3.h>\n"));
    CHECK(is_refused("cache/x.cpp", "#include <cuda.h>\n"));
    CHECK(is_refused("tuner/x.cpp", "#include <nvrtc.h>\n"));
    CHECK(is_refused("tests/tuner/x_test.cpp", "#include <cuda.h>\n"));
    CHECK(is_refused("runtime/x.cpp", "#include <yaml-cpp/yaml.h>\n"));
    CHECK(is_refused("tuner/x.cpp", "#include <yaml-cpp/yaml.h>\n"));
    CHECK(is_refused("runtime/x.cpp", "#include <CLI/CLI.hpp>\n"));
    CHECK(is_refused("tuner/x.cpp", "#include <doctest/doctest.h>\n"));
    CHECK(is_refused("tuner/x.cpp", "#include <pcre2.h>\n"));
    CHECK(is_refused("runtime/x.cpp", "#include <utf8proc.h>\n"));
    CHECK(is_refused("checkpoints/x.cpp", "#include <sentencepiece_processor.h>\n"));
    CHECK(is_refused("decoder/serve/x.cpp", "#include <httplib.h>\n"));
    CHECK(is_fine("decoder/text/x.cpp", "#include <pcre2.h>\n#include <utf8proc.h>\n"));
    CHECK(is_fine("cache/x.cpp", "#include <sqlite3.h>\n"));
    CHECK(is_fine("runtime/cuda/x.h", "#include <cuda.h>\n#include <nvrtc.h>\n"));
    CHECK(is_fine("cli/x.cpp", "#include <CLI/CLI.hpp>\n"));
}

TEST_CASE("kernel_templates uses the standard library alone, and its device code not even that") {
    CHECK(is_refused("kernel_templates/x.cpp", "#include <fmt/format.h>\n"));
    CHECK(is_refused("kernel_templates/rmsnorm/family.cpp", "#include <dlfcn.h>\n"));
    CHECK(is_refused("kernel_templates/rmsnorm/block.cu", "#include <cuda_fp16.h>\n"));
    CHECK(is_refused("kernel_templates/device/math.cuh", "#include <cstdint>\n"));
    CHECK(is_fine("kernel_templates/x.cpp", "#include <cmath>\n#include \"kernel_templates/family.h\"\n"));
    CHECK(is_fine("kernel_templates/rmsnorm/block.cu", "#include \"device/reduce.cuh\"\n"));
}

TEST_CASE("installed headers can be installed") {
    CHECK(is_refused("runtime/hone/hone.h", "#include \"runtime/cuda/launcher.h\"\n"));
    CHECK(is_refused("runtime/hone/hone.h", "#include \"cache/cache.h\"\n"));
    CHECK(is_fine("runtime/hone/hone.h",
                  "#include <hone/error.h>\n#include <cstdint>\n#include \"kernel_templates/dtype.h\"\n"));
}
