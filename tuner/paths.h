// Where the files are that Hone was shipped with and reads at run time: models/*.yaml, plans/*.yaml,
// recorded/*. Called by the tuner and the CLI. What dispatch needs is embedded instead (cache/packaged.h).
#pragma once

#include <filesystem>

namespace hone::tuner {

/// The first of: `override_dir`, when it is not empty (the environment variable HONE_DATA_DIR; it need not
/// exist, so that the error which follows names what the user asked for); share/hone beside the folder of
/// `program`; configs/ of the source tree that Hone was built from. Empty when none of the two last ones
/// exists.
[[nodiscard]] std::filesystem::path find_data_dir(const std::filesystem::path& override_dir,
                                                  const std::filesystem::path& program);

/// find_data_dir for this process.
[[nodiscard]] std::filesystem::path data_dir();

}  // namespace hone::tuner
