#include "tests/architecture/include_rules.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>

#include "cmake/tools/normalize.h"

namespace hone::architecture {
namespace {

namespace fs = std::filesystem;

/// From left to right. The tuner and the decoder stand beside each other.
constexpr std::array<std::string_view, 7> layers{"kernel_templates", "cache", "runtime", "checkpoints",
                                                 "models",           "tuner", "decoder"};
constexpr std::array<std::string_view, 4> users{"tests", "bench", "examples", "python"};
constexpr std::array<std::string_view, 5> extensions{".h", ".cpp", ".cu", ".cuh", ".c"};

/// A third-party header (or a folder of them, ending in '/') and the folders that may include it.
struct ThirdParty {
    std::string_view header;
    std::vector<std::string_view> folders;
};

const std::vector<ThirdParty>& third_party() {
    static const std::vector<ThirdParty> rules{
        {"sqlite3.h", {"cache", "tests/cache", "tests/campaign", "tests/fuzz", "tests/regressions"}},
        {"xxhash.h", {"cache", "tests/cache"}},
        {"cuda.h", {"runtime", "tests/runtime", "tests/fake_driver", "bench", "examples"}},
        {"nvrtc.h", {"runtime", "tests/runtime", "tests/fake_driver", "bench"}},
        {"nvml.h", {"runtime", "tests/runtime", "tests/fake_driver"}},
        {"cuda_runtime.h", {"bench", "examples"}},
        {"cuda_runtime_api.h", {"bench", "examples"}},
        {"yaml-cpp/", {"models", "tests/tuner"}},
        {"CLI/", {"cli"}},
        {"zlib.h", {"tuner", "tests/cli"}},
        {"pcre2.h", {"decoder"}},
        {"utf8proc.h", {"decoder", "tests/decoder"}},
        {"sentencepiece_processor.h", {"decoder/sentencepiece"}},
        {"httplib.h", {"decoder/http"}},
        {"doctest/", {"tests"}},
        {"rapidcheck.h", {"tests"}},
        {"rapidcheck/", {"tests"}},
    };
    return rules;
}

std::string first_folder(std::string_view path) { return std::string(path.substr(0, path.find('/'))); }

bool is_below(const fs::path& path, std::string_view folder) {
    return path.generic_string().starts_with(std::string(folder) + '/');
}

/// Place in the layer order; users of the layers stand right of all of them.
std::optional<std::size_t> rank(std::string_view folder) {
    const auto found = std::ranges::find(layers, folder);
    if (found != layers.end()) return static_cast<std::size_t>(found - layers.begin());
    if (std::ranges::find(users, folder) != users.end()) return layers.size();
    return std::nullopt;
}

/// <vector>, <cmath>: the standard library's headers have no extension and no folder.
bool is_standard(const Include& include) {
    return !include.quoted && include.path.find_first_of("./") == std::string::npos;
}

/// The folder that an include path leads to; the public headers live in runtime/hone.
std::string target_folder(const Include& include) {
    const std::string folder = first_folder(include.path);
    return folder == "hone" ? "runtime" : folder;
}

std::string direction_violation(std::string_view layer, const Include& include) {
    const std::optional<std::size_t> from = rank(layer);
    const std::optional<std::size_t> to = rank(target_folder(include));
    if (include.path.find("..") != std::string::npos) return "includes by a relative path; start at the root";
    const bool apart = layer == "decoder" && target_folder(include) == "tuner";
    if (apart || (from && to && *to > *from))
        return std::string(layer) + "/ must not know " + target_folder(include) + "/";
    return {};
}

std::string third_party_violation(const fs::path& path, const Include& include) {
    for (const ThirdParty& rule : third_party()) {
        const bool matches =
            rule.header.ends_with('/') ? include.path.starts_with(rule.header) : include.path == rule.header;
        if (!matches) continue;
        if (std::ranges::any_of(rule.folders,
                                [&](std::string_view folder) { return is_below(path, folder); }))
            return {};
        return std::string(rule.header) + " belongs to " + std::string(rule.folders.front()) + "/";
    }
    return {};
}

/// kernel_templates/: host code is the standard library alone; device code brings its own prelude, because
/// NVRTC has to compile it on machines without a toolkit.
std::string template_violation(const fs::path& path, const Include& include) {
    const bool device = path.extension() == ".cu" || path.extension() == ".cuh";
    if (device && !include.quoted) return "device code includes nothing but files below kernel_templates/";
    if (!device && !include.quoted && !is_standard(include))
        return "kernel_templates/ uses the standard library alone";
    return {};
}

/// runtime/hone/ is installed with the few headers of other layers that its interface needs
/// (cmake/install.cmake).
std::string installed_header_violation(const Include& include) {
    const bool installed = include.path.starts_with("hone/") || include.path == "kernel_templates/dtype.h" ||
                           include.path == "kernel_templates/enums.h";
    return installed || is_standard(include) ? ""
                                             : "an installed header cannot include what is not installed";
}

std::string violation(const fs::path& path, const Include& include) {
    const std::string layer = first_folder(path.generic_string());
    if (std::string text = direction_violation(layer, include); !text.empty()) return text;
    if (std::string text = third_party_violation(path, include); !text.empty()) return text;
    if (layer == "kernel_templates") return template_violation(path, include);
    if (is_below(path, "runtime/hone") && path.extension() == ".h")
        return installed_header_violation(include);
    return {};
}

}  // namespace

std::vector<std::string> violations(const fs::path& path, std::string_view text) {
    std::vector<std::string> found;
    for (const Include& include : includes(text)) {
        const std::string problem = violation(path, include);
        if (problem.empty()) continue;
        found.push_back(path.generic_string() + ":" + std::to_string(include.line) + ": includes " +
                        include.path + ": " + problem);
    }
    return found;
}

std::vector<std::string> violations_below(const fs::path& root) {
    std::vector<std::string> found;
    std::vector<std::string_view> folders(layers.begin(), layers.end());
    folders.insert(folders.end(), users.begin(), users.end());
    for (const std::string_view folder : folders) {
        if (!fs::is_directory(root / folder)) continue;
        for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
            const std::string extension = entry.path().extension().string();
            if (!entry.is_regular_file() || std::ranges::find(extensions, extension) == extensions.end())
                continue;
            std::ifstream file(entry.path(), std::ios::binary);
            const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
            std::ranges::move(violations(fs::relative(entry.path(), root), text), std::back_inserter(found));
        }
    }
    return found;
}

}  // namespace hone::architecture
