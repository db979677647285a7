// A model's tensors by name, whether they stand in one file or in many: model.safetensors, or the shards that
// model.safetensors.index.json lists. Only files of the checkpoint's own folder are ever opened. Reading
// keeps no state: const access from many threads is fine.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoints/files/safetensors.h"

namespace hone::checkpoints {

class Checkpoint {
  public:
    /// A folder, or a single .safetensors file. All headers are read and checked, no tensor is. Throws
    /// CheckpointError: for a folder with neither of the two or both, an index that names a file outside of
    /// the folder or a tensor that its shard does not have, and whatever SafetensorsFile::open refuses.
    [[nodiscard]] static Checkpoint open(const std::filesystem::path& path);

    /// nullptr when there is none. Tensors live as long as the checkpoint, and stay when it is moved.
    [[nodiscard]] const StoredTensor* find(std::string_view name) const;
    /// Throws CheckpointError when there is none.
    [[nodiscard]] const StoredTensor& at(std::string_view name) const;
    /// All tensors by name; where there are shards, those that the index lists.
    [[nodiscard]] const std::map<std::string, const StoredTensor*, std::less<>>& tensors() const {
        return tensors_;
    }
    /// Name of the file, without folders, that has the tensor: "model-00001-of-00002.safetensors". Throws
    /// CheckpointError when there is no such tensor.
    [[nodiscard]] const std::string& file_of(std::string_view name) const;
    /// The folder's or the file's, as given.
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    /// The one that the files are in, and whose config.json describes them.
    [[nodiscard]] std::filesystem::path folder() const;
    /// It has the file that lists its tensors, and not only one of them.
    [[nodiscard]] bool is_sharded() const { return sharded_; }

  private:
    Checkpoint() = default;
    void open_shards(const std::filesystem::path& index);
    void open_file(const std::filesystem::path& file);

    std::filesystem::path path_;
    bool sharded_ = false;
    std::map<std::string, SafetensorsFile, std::less<>> files_;  ///< by file name
    std::map<std::string, const StoredTensor*, std::less<>> tensors_;
};

}  // namespace hone::checkpoints
