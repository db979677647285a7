// The models that Hone knows by name, and any other by its file. The files are those that Hone was shipped
// with: configs/models/*.yaml.
#pragma once

#include <string>
#include <vector>

#include "models/model.h"

namespace hone::tuner {

/// Ascending; files whose names have other characters than letters, digits and . _ + - are left out.
[[nodiscard]] std::vector<std::string> known_models();

/// A known model, a config.json, or the folder of one. Throws InputError (file, line, key) for an unreadable
/// model and for sizes that make no sense, ConfigError naming those that are known where there is none.
[[nodiscard]] models::Model read_model(const std::string& name_or_path);

}  // namespace hone::tuner
