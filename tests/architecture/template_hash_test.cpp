// The embed tool (cmake/tools), run as a program on made-up trees.
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "cmake/tools/normalize.h"

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// What a command prints, errors too.
std::string output_of(const std::string& command) {
    std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string output;
    std::array<char, 256> buffer{};
    while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr)
        output += buffer.data();
    pclose(pipe);
    return output;
}

std::vector<std::string> lines_of(const std::string& command) {
    std::istringstream text(output_of(command));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
}

/// A kernel_templates folder in a temporary place.
class Tree {
  public:
    Tree() {
        std::string pattern = (fs::temp_directory_path() / "hone-embed-XXXXXX").string();
        REQUIRE(mkdtemp(pattern.data()) != nullptr);
        root_ = pattern;
        write("device/math.cuh", "#pragma once\n__device__ float twice(float x) { return 2 * x; }\n");
        write("device/reduce.cuh", "#pragma once\n#include \"device/math.cuh\"\n");
        write("norm/rows.cu",
              "#include \"device/reduce.cuh\"\n#include \"hone_constants.h\"\nvoid rows() {}\n");
        write("norm/rows_plan.cpp",
              "#include \"kernel_templates/norm/grid.h\"\n#include \"kernel_templates/kit/launches.h\"\n"
              "#include \"kernel_templates/norm/declaration.h\"\nint threads = 256;\n");
        write("norm/grid.h", "int ceil_div(int a, int b);\n");
        write("norm/grid.cpp", "int ceil_div(int a, int b) { return (a + b - 1) / b; }\n");
        write("device/reduce_plan.cpp", "int lanes = 32;\n");
        write("family.h", "struct Plan {};\n");
        write("kit/launches.h", "int launches();\n");
        write("norm/declaration.h", "int fields();\n");
        write("norm/family.cpp", "");
    }
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;
    ~Tree() { fs::remove_all(root_); }

    void write(const fs::path& file, std::string_view text) const {
        fs::create_directories((root_ / file).parent_path());
        std::ofstream(root_ / file, std::ios::binary) << text;
    }

    /// What the tool generates from the tree, or its error message.
    [[nodiscard]] std::string embed() const {
        const fs::path output = root_ / "generated.cpp";
        const std::string message =
            output_of(std::string(HONE_EMBED) + " templates " + root_.string() + " " + output.string() +
                      " device/math.cuh device/reduce.cuh norm/rows.cu norm/family.cpp");
        return message.empty() ? text_of(output) : message;
    }

    /// The hash of norm/rows.cu: the only text of 32 hex digits in quotes.
    [[nodiscard]] std::string hash() const {
        const std::string generated = embed();
        for (std::size_t at = generated.find('"'); at != std::string::npos;
             at = generated.find('"', at + 1)) {
            const std::string_view rest = std::string_view(generated).substr(at + 1);
            if (rest.find_first_not_of("0123456789abcdef") == 32 && rest[32] == '"')
                return std::string(rest.substr(0, 32));
        }
        return {};
    }

  private:
    fs::path root_;
};

}  // namespace

TEST_CASE("comments and white space do not change a template's hash") {
    const Tree tree;
    const std::string before = tree.hash();
    REQUIRE(before.size() == 32);
    tree.write("norm/rows.cu",
               "// the rows\n#include \"device/reduce.cuh\"\n\n#include \"hone_constants.h\"\nvoid rows( ) "
               "{\n} /* end */");
    tree.write("device/math.cuh",
               "#pragma once\n__device__ float twice( float x )\n{\n\treturn 2 * x; // fast\n}\n");
    tree.write("norm/rows_plan.cpp",
               "#include \"kernel_templates/norm/grid.h\"\n#include \"kernel_templates/kit/launches.h\"\n"
               "#include \"kernel_templates/norm/declaration.h\"\nint threads=256; // a warp's multiple\n");
    CHECK(tree.hash() == before);
}

TEST_CASE("the template, a header of a header, and the launch plan each change the hash") {
    const Tree tree;
    const std::string before = tree.hash();
    SUBCASE("template") { tree.write("norm/rows.cu", "#include \"device/reduce.cuh\"\nvoid other() {}\n"); }
    SUBCASE("header that is included by a header") {
        tree.write("device/math.cuh", "#pragma once\n__device__ float twice(float x) { return 3 * x; }\n");
    }
    SUBCASE("launch plan") { tree.write("norm/rows_plan.cpp", "int threads = 512;\n"); }
    SUBCASE("launch plan beside a header") { tree.write("device/reduce_plan.cpp", "int lanes = 16;\n"); }
    SUBCASE("launch plan in a header alone") {
        tree.write("device/math_plan.h", "#include \"kernel_templates/norm/shape.h\"\n");
        tree.write("norm/shape.h", "struct Shape {};\n");
        const std::string with_header = tree.hash();
        CHECK(with_header != before);
        tree.write("norm/shape.h", "struct Shape { int rows; };\n");
        CHECK(tree.hash() != with_header);
    }
    SUBCASE("host header of the launch plan") {
        tree.write("norm/grid.h", "int ceil_div(int a, int b = 1);\n");
    }
    SUBCASE("source of a host header of the launch plan") {
        tree.write("norm/grid.cpp", "int ceil_div(int a, int b) { return a / b; }\n");
    }
    SUBCASE("a string's white space") {
        tree.write("norm/rows_plan.cpp", "int threads = 256; auto name = \"a b\";\n");
        const std::string spaced = tree.hash();
        tree.write("norm/rows_plan.cpp", "int threads = 256; auto name = \"ab\";\n");
        CHECK(tree.hash() != spaced);
    }
    CHECK(tree.hash() != before);
}

TEST_CASE("preference, the contract, the kit and declarations do not change a template's hash") {
    const Tree tree;
    const std::string before = tree.hash();
    SUBCASE("tunables, constraints, predictions and fallbacks of the variant") {
        tree.write("norm/rows.cpp", "double predict_us() { return 4; }\n");
    }
    SUBCASE("the family") { tree.write("norm/family.cpp", "double bytes() { return 4; }\n"); }
    SUBCASE("the contract") { tree.write("family.h", "struct Plan { int launches = 0; };\n"); }
    SUBCASE("the kit") { tree.write("kit/launches.h", "int launches(int);\n"); }
    SUBCASE("a declaration") { tree.write("norm/declaration.h", "int fields(int);\n"); }
    CHECK(tree.hash() == before);
}

TEST_CASE(
    "no launch plan of this tree reaches preference: tunables, constraints, costs, fallbacks, tolerances") {
    const fs::path root = fs::path(HONE_SOURCE_DIR) / "kernel_templates";
    const std::array<std::string_view, 7> preference{"predict",    "fallback",  "Tunable", "tunables_of",
                                                     "Constraint", "Tolerance", "best_of"};
    int plans = 0;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
        if (entry.path().extension() != ".cu") continue;
        for (const std::string& file : lines_of(std::string(HONE_EMBED) + " closure " + root.string() + " " +
                                                fs::relative(entry.path(), root).string())) {
            const std::string text = normalized(text_of(root / file));
            plans += file.ends_with("plan.cpp") || file.ends_with("plan.h") ? 1 : 0;
            for (const std::string_view word : preference) {
                CAPTURE(file);
                CAPTURE(word);
                CHECK(text.find(word) == std::string::npos);
            }
        }
    }
    CHECK(plans > 20);
}

TEST_CASE("a folder with a family.cpp is a family") {
    CHECK(Tree().embed().find("extern const Family norm_family;") != std::string::npos);
}

TEST_CASE("an include that names no embedded file is an error of the build") {
    const Tree tree;
    tree.write("device/reduce.cuh", "#include \"math.cuh\"\n");
    const std::string message = tree.embed();
    CHECK(message.find("device/reduce.cuh") != std::string::npos);
    CHECK(message.find("#include \"math.cuh\" names no file") != std::string::npos);
}

TEST_CASE("what stands between two tokens does not count") {
    const bool holds = rc::check("separators", [] {
        const auto tokens = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
            "int", "x", "1'000", "'\"'", "\"// no comment\"", "R\"(\n /* )\"", "+", "{", "}"));
        std::string plain;
        std::string formatted;
        for (const std::string& token : tokens) {
            plain += token + ' ';
            formatted += token + *rc::gen::element<std::string>(" ", "\n\t", " /* ' */ ", " // \"\n", "/**/");
        }
        RC_ASSERT(normalized(formatted) == normalized(plain));
    });
    CHECK(holds);
}
