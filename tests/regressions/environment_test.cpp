// No layer reads the environment by a way that a program with more rights than its caller must not take.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

namespace fs = std::filesystem;

TEST_CASE("every variable is read by secure_getenv") {
    const std::regex plain(R"((^|[^_a-z])getenv\s*\()");
    int files = 0;
    for (const char* layer :
         {"kernel_templates", "cache", "runtime", "checkpoints", "models", "tuner", "decoder", "cli"}) {
        for (const auto& entry : fs::recursive_directory_iterator(fs::path(HONE_SOURCE_DIR) / layer)) {
            const std::string extension = entry.path().extension().string();
            if (extension != ".cpp" && extension != ".h") continue;
            std::ifstream stream(entry.path());
            const std::string text{std::istreambuf_iterator<char>(stream), {}};
            CAPTURE(entry.path().string());
            CHECK_FALSE(std::regex_search(text, plain));
            ++files;
        }
    }
    CHECK(files > 100);
}
