#include "checkpoints/read/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "checkpoints/error.h"
#include "runtime/system/strict_json.h"
#include "runtime/system/text_file.h"

namespace hone::checkpoints {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_index_bytes = std::size_t{64} << 20;
constexpr std::string_view single_name = "model.safetensors";
constexpr std::string_view index_name = "model.safetensors.index.json";
constexpr std::string_view extension = ".safetensors";

/// A name that can only be a file of the index's own folder.
void require_plain_name(const std::string& name, const fs::path& index) {
    const bool plain = name.size() > extension.size() && name.ends_with(extension) && name.front() != '.' &&
                       name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
    if (plain) return;
    throw CheckpointError(
        fmt::format("{}: weight_map names the file {}; allowed are names that end in {}, without folders and "
                    "no '.' in front",
                    index.string(), shown(name), extension));
}

}  // namespace

Checkpoint Checkpoint::open(const fs::path& path) {
    Checkpoint checkpoint;
    checkpoint.path_ = path;
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
        checkpoint.open_file(path);
        return checkpoint;
    }
    const bool single = runtime::has_entry(path / single_name);
    const bool sharded = runtime::has_entry(path / index_name);
    if (single == sharded) {
        throw CheckpointError(fmt::format("{}: has {} {} {} {}; one of them makes a checkpoint",
                                          path.string(), single ? "both" : "neither", single_name,
                                          single ? "and" : "nor", index_name));
    }
    if (single) {
        checkpoint.open_file(path / single_name);
    } else {
        checkpoint.sharded_ = true;
        checkpoint.open_shards(path / index_name);
    }
    return checkpoint;
}

void Checkpoint::open_file(const fs::path& file) {
    const auto [opened, _] = files_.emplace(file.filename().string(), SafetensorsFile::open(file));
    for (const auto& [name, tensor] : opened->second.contents().tensors)
        tensors_.emplace_hint(tensors_.end(), name, &tensor);
}

void Checkpoint::open_shards(const fs::path& index) {
    const nlohmann::json root =
        runtime::parse_json_object(runtime::read_text_file(index, max_index_bytes), index.string());
    const auto map = root.find("weight_map");
    if (map == root.end() || !map->is_object() || map->empty())
        throw CheckpointError(fmt::format("{}: no object weight_map with tensors in it", index.string()));
    for (const auto& [name, value] : map->items()) {
        if (!value.is_string()) {
            throw CheckpointError(
                fmt::format("{}: weight_map: the file of {} is no text", index.string(), shown(name)));
        }
        const auto& shard = value.get_ref<const std::string&>();
        auto file = files_.find(shard);
        if (file == files_.end()) {
            require_plain_name(shard, index);
            file = files_.emplace(shard, SafetensorsFile::open(index.parent_path() / shard)).first;
        }
        const auto& held = file->second.contents().tensors;
        const auto tensor = held.find(name);
        if (tensor == held.end()) {
            throw CheckpointError(fmt::format("{}: weight_map says that {} is in {}, which does not have it",
                                              index.string(), shown(name), shard));
        }
        tensors_.emplace(name, &tensor->second);
    }
}

const StoredTensor* Checkpoint::find(std::string_view name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : found->second;
}

const StoredTensor& Checkpoint::at(std::string_view name) const {
    if (const StoredTensor* tensor = find(name)) return *tensor;
    throw CheckpointError(fmt::format("{}: no tensor {}", path_.string(), shown(name)));
}

const std::string& Checkpoint::file_of(std::string_view name) const {
    const StoredTensor* const tensor = &at(name);
    const auto file = std::ranges::find_if(files_, [&](const auto& entry) {
        const auto& held = entry.second.contents().tensors;
        const auto found = held.find(name);
        return found != held.end() && &found->second == tensor;
    });
    return file->first;
}

fs::path Checkpoint::folder() const {
    std::error_code ignored;
    if (fs::is_directory(path_, ignored)) return path_;
    return path_.has_parent_path() ? path_.parent_path() : fs::path(".");
}

}  // namespace hone::checkpoints
