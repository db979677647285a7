// Where the files are that Hone was shipped with and reads at run time: models/*.yaml and recorded/*.jsonl.
// Called by the tuner and the CLI. What dispatch needs is embedded instead (cache/packaged.h).
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace hone::tuner {

/// The first of: `override_dir`, when it is not empty (the environment variable HONE_DATA_DIR; it need not
/// exist, so that the error which follows names what the user asked for); share/hone beside the folder of
/// `program`; configs/ of the source tree that Hone was built from. Empty when none of the two last ones
/// exists.
[[nodiscard]] std::filesystem::path find_data_dir(const std::filesystem::path& override_dir,
                                                  const std::filesystem::path& program);

/// find_data_dir for this process.
[[nodiscard]] std::filesystem::path data_dir();

/// Files of data_dir()/<folder>/ with this extension (".yaml"), sorted by name; empty when there are none.
[[nodiscard]] std::vector<std::filesystem::path> config_files(std::string_view folder,
                                                              std::string_view extension);

}  // namespace hone::tuner
