#include "tuner/models/known_models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernel_templates/text.h"
#include "tuner/data_files.h"
#include "tuner/errors.h"

namespace hone::tuner {
namespace {

/// Not one that a shell would take for an option or a command: completions list them.
bool is_plain(std::string_view name) {
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";
    return name.find_first_not_of(letters) == std::string_view::npos && !name.starts_with('-');
}

}  // namespace

std::vector<std::string> known_models() {
    std::vector<std::string> names;
    for (const auto& file : config_files("models", ".yaml")) {
        if (const std::string name = file.stem().string(); is_plain(name)) names.push_back(name);
    }
    return names;
}

models::Model read_model(const std::string& name_or_path) {
    if (name_or_path.empty()) throw ConfigError("the model's name is empty");
    for (const auto& file : config_files("models", ".yaml")) {
        if (file.stem() == name_or_path) return models::read_model_file(file, name_or_path);
    }
    const std::filesystem::path path(name_or_path);
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) return models::read_model_folder(path);
    if (std::filesystem::exists(path, error)) return models::read_model_file(path, name_or_path);
    const std::vector<std::string> known = known_models();
    if (known.empty())
        throw ConfigError(fmt::format(
            "no model '{}': none is known by name, since {} models/*.yaml; HONE_DATA_DIR names a folder that "
            "has, and a path to a Hugging Face config.json works too",
            name_or_path, data_dir().empty() ? "no data folder has" : data_dir().string() + " has no"));
    const std::vector<std::string_view> names(known.begin(), known.end());
    throw ConfigError(
        fmt::format("no model '{}'{}: known models are {}; a path to a Hugging Face config.json works too",
                    name_or_path, did_you_mean(name_or_path, names), fmt::join(known, ", ")));
}

}  // namespace hone::tuner
