// Writes a checkpoint anew with its linear layers packed: `hone quantize`, without options and output.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/pack/layer_source.h"
#include "checkpoints/read/checkpoint.h"

namespace hone::checkpoints {

struct LayerReport {
    std::string name;
    PackedShape shape;
    QuantLoss loss;
    std::int64_t source_bytes = 0;  ///< all tensors that it was made of
    std::int64_t bytes = 0;
    std::vector<std::string> notes;
};

struct QuantizeReport {
    std::vector<LayerReport> layers;
    std::int64_t copied_tensors = 0;
    std::int64_t copied_bytes = 0;

    [[nodiscard]] std::int64_t source_bytes() const;  ///< with what was copied
    [[nodiscard]] std::int64_t bytes() const;
    /// The relative error over all layers: the root of its mean square, where each layer counts by its
    /// elements.
    [[nodiscard]] double relative_error() const;
};

struct QuantizeProgress {
    std::size_t layers_done = 0;
    std::size_t layers_total = 0;
    std::int64_t bytes_done = 0;  ///< bytes of the layers' source tensors
    std::int64_t bytes_total = 0;
    std::string current;  ///< the layer that is next
};
using QuantizeProgressSink = std::function<void(const QuantizeProgress&)>;

/// Makes the folder `output`, whole or not at all: files as the checkpoint's are cut, of packed layers
/// (packed_tensors.h) and copies of all other tensors, its config.json with how to read them, and the files
/// of its tokenizer, of up to 96 MiB. One layer is in memory at a time. nullopt: `stop` was set before it was
/// done. Throws CheckpointError for layers that cannot be packed and an output that is there, InputError and
/// WriteError where it cannot be written.
[[nodiscard]] std::optional<QuantizeReport> quantize_checkpoint(const Checkpoint& checkpoint,
                                                                const LayerSource& source,
                                                                const std::filesystem::path& output,
                                                                const QuantizeProgressSink& progress,
                                                                const std::atomic<bool>& stop);

}  // namespace hone::checkpoints
