// What was measured, read from files, for programs that fit and judge by it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <vector>

#include "cache/bundle.h"
#include "runtime/system/text_file.h"
#include "tuner/measure/recorded.h"

namespace hone::bench {

/// Trials of an exported file. Throws as read_text_file() and read_bundle() do.
inline std::vector<cache::Trial> trials_of(const std::filesystem::path& bundle) {
    constexpr std::size_t most_bytes = std::size_t{256} << 20;
    return cache::read_bundle(runtime::read_text_file(bundle, most_bytes), bundle.string());
}

inline std::vector<std::filesystem::path> files_by_name(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(folder)) files.push_back(file.path());
    std::ranges::sort(files);
    return files;
}

/// The sweeps of a source tree, configs/recorded.
inline std::vector<tuner::Recording> recordings_of_tree(const std::filesystem::path& tree) {
    std::vector<tuner::Recording> recordings;
    for (const auto& file : files_by_name(tree / "configs/recorded"))
        recordings.push_back(tuner::read_recording(file));
    return recordings;
}

/// The races that ship with a source tree, configs/tuned.
inline std::vector<cache::Trial> races_of_tree(const std::filesystem::path& tree) {
    std::vector<cache::Trial> races;
    for (const auto& file : files_by_name(tree / "configs/tuned"))
        std::ranges::move(trials_of(file), std::back_inserter(races));
    return races;
}

}  // namespace hone::bench
