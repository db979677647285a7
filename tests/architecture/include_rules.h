// The rules of docs/architecture.md about who includes whom, over one file at a time.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hone::architecture {

/// What is wrong with the #includes of `text`, one sentence each ("cache/merge.cpp:12: includes ..."). `path`
/// is relative to the repository's root: its first folder is the layer.
[[nodiscard]] std::vector<std::string> violations(const std::filesystem::path& path, std::string_view text);

/// The same for every source file of the layers, tests, bench, examples and python below `root`.
[[nodiscard]] std::vector<std::string> violations_below(const std::filesystem::path& root);

}  // namespace hone::architecture
