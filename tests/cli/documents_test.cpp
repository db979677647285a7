// Every fenced block in README.md and docs/ is real: a snippet of a file in the tree, a command that runs
// here, or a list of paths that exist.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/cli/made_checkpoints.h"
#include "tests/cli/program.h"

using namespace hone::test;
namespace fs = std::filesystem;

namespace {

struct Block {
    fs::path file;
    int line = 0;
    std::string kind;  ///< word after the fence: "sh", "cpp", ...
    std::vector<std::string> lines;
};

std::string read(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
}

std::string trimmed(const std::string& text) {
    const std::size_t first = text.find_first_not_of(" \t");
    return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<Block> blocks_of(const fs::path& file) {
    std::vector<Block> blocks;
    std::istringstream text(read(file));
    std::string line;
    bool inside = false;
    for (int number = 1; std::getline(text, line); ++number) {
        if (trimmed(line).starts_with("```")) {
            inside = !inside;
            if (inside) blocks.push_back({file, number, trimmed(line).substr(3), {}});
        } else if (inside) {
            blocks.back().lines.push_back(line);
        }
    }
    return blocks;
}

/// The text outside of code blocks.
std::string prose_of(const fs::path& file) {
    std::string prose;
    std::istringstream text(read(file));
    std::string line;
    bool inside = false;
    while (std::getline(text, line)) {
        if (trimmed(line).starts_with("```")) inside = !inside;
        if (!inside) prose += line + '\n';
    }
    return prose;
}

std::vector<fs::path> documents() {
    std::vector<fs::path> files{fs::path(HONE_SOURCE_DIR) / "README.md"};
    if (const fs::path docs = fs::path(HONE_SOURCE_DIR) / "docs"; fs::is_directory(docs)) {
        for (const auto& entry : fs::recursive_directory_iterator(docs)) {
            if (entry.path().extension() == ".md") files.push_back(entry.path());
        }
    }
    std::sort(files.begin(), files.end());
    return files;
}

/// Lines without indentation and without empty ones: how a snippet is compared.
std::string normal_form(const std::vector<std::string>& lines) {
    std::string text = "\n";
    for (const std::string& line : lines) {
        if (const std::string body = trimmed(line); !body.empty()) text += body + "\n";
    }
    return text;
}

/// Where a snippet may come from: everything that is built, tested, or read at run time.
const std::vector<std::string>& sources() {
    static const std::vector<std::string> texts = [] {
        std::vector<std::string> all;
        for (const char* folder : {"examples", "tests", "kernel_templates", "cache", "runtime", "tuner",
                                   "bench", "configs", "cmake", "bindings"}) {
            const fs::path root = fs::path(HONE_SOURCE_DIR) / folder;
            if (!fs::is_directory(root)) continue;
            for (const auto& entry : fs::recursive_directory_iterator(root)) {
                constexpr std::uintmax_t too_large = 1 << 20;
                if (entry.is_regular_file() && entry.file_size() < too_large)
                    all.push_back(normal_form(lines_of(read(entry.path()))));
            }
        }
        return all;
    }();
    return texts;
}

bool is_snippet(const Block& block) {
    const std::string wanted = normal_form(block.lines);
    return std::any_of(sources().begin(), sources().end(),
                       [&](const std::string& text) { return text.find(wanted) != std::string::npos; });
}

/// Lines of a program of examples/, all of which tests/python/examples_test.py and decoder_test.py run.
bool is_python_example(const Block& block) {
    const std::string wanted = normal_form(block.lines);
    const auto programs = fs::recursive_directory_iterator(fs::path(HONE_SOURCE_DIR) / "examples");
    return std::any_of(begin(programs), end(programs), [&](const fs::directory_entry& entry) {
        return entry.path().extension() == ".py" &&
               normal_form(lines_of(read(entry.path()))).find(wanted) != std::string::npos;
    });
}

/// A form with "..." for what is left out: its member names have to be known to some source.
bool is_form(const Block& block) {
    std::string text;
    for (const std::string& line : block.lines) text += line + '\n';
    if (text.find("...") == std::string::npos) return false;
    const std::regex member("\"([a-z_0-9]+)\"\\s*:");
    for (std::sregex_iterator found(text.begin(), text.end(), member), end; found != end; ++found) {
        const std::string name = (*found)[1];
        const bool known = std::any_of(sources().begin(), sources().end(), [&](const std::string& source) {
            return source.find('"' + name + '"') != std::string::npos ||
                   source.find("\\\"" + name + "\\\"") != std::string::npos;
        });
        if (!known) return false;
    }
    return true;
}

/// Words of a shell line; double quotes group.
Sandbox::Words words_of(const std::string& line) {
    Sandbox::Words words;
    std::string word;
    bool quoted = false;
    bool any = false;
    for (const char c : line + " ") {
        if (c == '"') {
            quoted = !quoted;
            any = true;
        } else if (c == ' ' && !quoted) {
            if (!word.empty() || any) words.push_back(word);
            word.clear();
            any = false;
        } else {
            word += c;
        }
    }
    return words;
}

/// Commands that other tests run: the bootstrap's, CMake's, the wheel's, the archive's.
bool runs_elsewhere(const std::string& command) {
    constexpr std::array<std::string_view, 13> elsewhere{"./hone score",
                                                         "./hone test",
                                                         "./hone generate",
                                                         "git clone ",
                                                         "cmake ",
                                                         "ctest ",
                                                         "cd ",
                                                         "clang-format ",
                                                         "python3 python/build_wheel.py",
                                                         "pip install ",
                                                         "cpack ",
                                                         "tar xzf hone-",
                                                         "hone-0.1.0-linux-x86_64/bin/hone "};
    return std::any_of(elsewhere.begin(), elsewhere.end(),
                       [&](std::string_view start) { return command.starts_with(start); });
}

void check_commands(const Block& block, Sandbox& sandbox) {
    for (const std::string& line : block.lines) {
        const std::string command = trimmed(line.substr(0, line.find(" #")));
        if (command.empty() || command.starts_with('#') || runs_elsewhere(command)) continue;
        CAPTURE(command);
        Sandbox::Words words = words_of(command);
        const bool is_hone = words.front() == "./hone" || words.front() == "hone";
        CHECK(is_hone);
        if (!is_hone) continue;
        words.erase(words.begin());
        if (words.front() == "tune" || words.front() == "compile") {  // the same command, less work
            const bool says_sizes = command.find("--tokens") != std::string::npos ||
                                    command.find("--captured") != std::string::npos;
            if (!says_sizes) words.insert(words.end(), {"--tokens", "16"});
            if (words.front() == "tune" && command.find("--effort") == std::string::npos) {
                words.insert(words.end(), {"--effort", "quick"});
            }
        }
        const Ended ended = sandbox.run(words);
        INFO(ended.err);
        CHECK(ended.code == 0);
    }
}

/// shard-3.db, as another machine has left it.
void write_cache_of_a_shard(const Sandbox& sandbox) {
    Sandbox machine;
    machine.use_fake_gpus();
    REQUIRE(machine.run({"tune", "llama-3-8b", "--tokens", "16", "--shard", "3/8"}).code == 0);
    sandbox.write("shard-3.db", machine.read("cache/cache.db"));
}

void check_paths(const Block& block) {
    for (const std::string& line : block.lines) {
        const std::string path = trimmed(line).substr(0, trimmed(line).find(' '));
        if (path.empty()) continue;
        CAPTURE(path);
        CHECK(fs::exists(fs::path(HONE_SOURCE_DIR) / path));
    }
}

}  // namespace

TEST_CASE("every code block in the documents is real") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    sandbox.write("config.json",
                  R"({"hidden_size":64,"intermediate_size":128,"num_attention_heads":4,"num_hidden_layers":2,
        "vocab_size":100,"rms_norm_eps":1e-5,"torch_dtype":"bfloat16"})");
    write_checkpoint(sandbox.path("checkpoint"), small_model());
    write_cache_of_a_shard(sandbox);
    sandbox.write("engine.json",  // as a process with HONE_CAPTURE leaves it
                  R"({"schema": "hone.capture/1", "problems": [{"calls": 7, "gpu": "NVIDIA H200",
        "problem": "rmsnorm dtype=bf16 output=same residual=no hidden=4096 rows=16"}]})");
    for (const fs::path& file : documents()) {
        // What is generated is compared with the declarations by generate.check.
        if (read(file).find("`./hone generate`. -->") != std::string::npos) continue;
        for (const Block& block : blocks_of(file)) {
            CAPTURE(block.file.string());
            CAPTURE(block.line);
            CAPTURE(block.kind);
            if (block.kind == "sh") {
                check_commands(block, sandbox);
            } else if (block.kind == "tree") {
                check_paths(block);
            } else if (block.kind == "python") {
                CHECK(is_python_example(block));
            } else if (block.kind == "output") {
                CHECK_FALSE(block.lines.empty());  // stands between the markers of a generated table
            } else {
                CHECK((is_snippet(block) || is_form(block)));
            }
        }
    }
}

TEST_CASE("links between documents lead somewhere") {
    for (const fs::path& file : documents()) {
        const std::string text = prose_of(file);
        for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1)) {
            std::string target = text.substr(at + 2, text.find(')', at) - at - 2);
            if (target.starts_with("http") || target.starts_with('#')) continue;
            target = target.substr(0, target.find('#'));
            CAPTURE(file.string());
            CAPTURE(target);
            CHECK(fs::exists(file.parent_path() / target));
        }
    }
}
