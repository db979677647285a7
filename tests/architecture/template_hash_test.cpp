// The embed tool (cmake/tools), run as a program on made-up trees.
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "cmake/tools/normalize.h"
#include "cmake/tools/sha256.h"

namespace {

namespace fs = std::filesystem;

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
        write("norm/rows.cpp", "#include \"kernel_templates/norm/grid.h\"\nint threads = 256;\n");
        write("norm/grid.h", "int ceil_div(int a, int b);\n");
        write("norm/grid.cpp", "int ceil_div(int a, int b) { return (a + b - 1) / b; }\n");
        write("device/reduce.cpp", "int lanes = 32;\n");
        write("family.h", "struct Plan {};\n");
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
        const std::string output = (root_ / "generated.cpp").string();
        const std::string command = std::string(HONE_EMBED) + " templates " + root_.string() + " " + output +
                                    " device/math.cuh device/reduce.cuh norm/rows.cu norm/family.cpp 2>&1";
        std::FILE* pipe = popen(command.c_str(), "r");
        REQUIRE(pipe != nullptr);
        std::string message;
        std::array<char, 256> buffer{};
        while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr)
            message += buffer.data();
        if (pclose(pipe) != 0) return message;
        std::ifstream file(output, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
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

TEST_CASE("SHA-256 gives the digests of FIPS 180-4") {
    CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(sha256_hex(std::string(1000000, 'a')) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("comments and white space do not change a template's hash") {
    const Tree tree;
    const std::string before = tree.hash();
    REQUIRE(before.size() == 32);
    tree.write("norm/rows.cu",
               "// the rows\n#include \"device/reduce.cuh\"\n\n#include \"hone_constants.h\"\nvoid rows( ) "
               "{\n} /* end */");
    tree.write("device/math.cuh",
               "#pragma once\n__device__ float twice( float x )\n{\n\treturn 2 * x; // fast\n}\n");
    tree.write("norm/rows.cpp",
               "#include \"kernel_templates/norm/grid.h\"\nint threads=256; // a warp's multiple\n");
    CHECK(tree.hash() == before);
}

TEST_CASE("the template, a header of a header, and the launch plan each change the hash") {
    const Tree tree;
    const std::string before = tree.hash();
    SUBCASE("template") { tree.write("norm/rows.cu", "#include \"device/reduce.cuh\"\nvoid other() {}\n"); }
    SUBCASE("header that is included by a header") {
        tree.write("device/math.cuh", "#pragma once\n__device__ float twice(float x) { return 3 * x; }\n");
    }
    SUBCASE("launch plan") { tree.write("norm/rows.cpp", "int threads = 512;\n"); }
    SUBCASE("launch plan beside a header") { tree.write("device/reduce.cpp", "int lanes = 16;\n"); }
    SUBCASE("host header of the launch plan") {
        tree.write("norm/grid.h", "int ceil_div(int a, int b = 1);\n");
    }
    SUBCASE("source of a host header of the launch plan") {
        tree.write("norm/grid.cpp", "int ceil_div(int a, int b) { return a / b; }\n");
    }
    SUBCASE("a string's white space") {
        tree.write("norm/rows.cpp", "int threads = 256; auto name = \"a b\";\n");
        const std::string spaced = tree.hash();
        tree.write("norm/rows.cpp", "int threads = 256; auto name = \"ab\";\n");
        CHECK(tree.hash() != spaced);
    }
    CHECK(tree.hash() != before);
}

TEST_CASE("host code out of the plan's reach, and the contract, do not change a template's hash") {
    const Tree tree;
    tree.write("norm/rows.cpp", "#include \"kernel_templates/family.h\"\nint threads = 256;\n");
    const std::string before = tree.hash();
    tree.write("norm/family.cpp", "double bytes() { return 4; }\n");
    tree.write("family.h", "struct Plan { int launches = 0; };\n");
    CHECK(tree.hash() == before);
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
