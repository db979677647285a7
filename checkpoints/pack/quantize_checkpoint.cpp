#include "checkpoints/pack/quantize_checkpoint.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoints/error.h"
#include "checkpoints/files/output_folder.h"
#include "checkpoints/files/safetensors_writer.h"
#include "checkpoints/pack/model_config.h"
#include "checkpoints/pack/packed_tensors.h"
#include "runtime/system/text_file.h"

namespace hone::checkpoints {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* single_file = "model.safetensors";
constexpr const char* index_file = "model.safetensors.index.json";
/// Files beside the weights that a model is run with.
constexpr std::array<const char*, 10> companions{"generation_config.json",
                                                 "tokenizer.json",
                                                 "tokenizer_config.json",
                                                 "tokenizer.model",
                                                 "vocab.json",
                                                 "merges.txt",
                                                 "added_tokens.json",
                                                 "special_tokens_map.json",
                                                 "chat_template.jinja",
                                                 "chat_template.json"};
constexpr std::size_t max_companion_bytes = std::size_t{96} << 20;    // as much as the decoder reads of any
const std::map<std::string, std::string> metadata{{"format", "pt"}};  // without it some loaders refuse

/// What a file of the output is made of.
struct OutputFile {
    std::vector<const LayerOutline*> layers;
    std::vector<std::string> copied;
};

std::int64_t bytes_in(const Checkpoint& checkpoint, const std::vector<std::string>& tensors) {
    std::int64_t bytes = 0;
    for (const std::string& name : tensors)
        bytes += static_cast<std::int64_t>(checkpoint.at(name).size_bytes);
    return bytes;
}

/// What a reader has to know besides the tensors.
json config_of(const LayerSource& source) {
    const PackedShape& shape = source.layers().front().shape;
    json layers = json::object();
    for (const LayerOutline& layer : source.layers()) layers[layer.name] = {layer.shape.out, layer.shape.in};
    return {{"quant_method", "hone"},        {"layout", packed_layout_version},
            {"format", name(shape.format)},  {"group", shape.group},
            {"zeros", shape.zeros},          {"input_order", source.layers().front().input_order},
            {"dtype", name(source.dtype())}, {"layers", std::move(layers)}};
}

class Quantization {
  public:
    Quantization(const Checkpoint& checkpoint, const LayerSource& source,
                 const QuantizeProgressSink& progress, const std::atomic<bool>& stop)
        : checkpoint_(checkpoint), source_(source), sink_(progress), stop_(stop) {
        progress_.layers_total = source.layers().size();
        for (const LayerOutline& layer : source.layers())
            progress_.bytes_total += bytes_in(checkpoint, layer.tensors);
        plan_files();
    }

    std::optional<QuantizeReport> run(const fs::path& output) {
        OutputFolder folder(output);
        // First: one that cannot be read is said before the weights, which may take hours.
        for (const char* name : companions) copy_companion(folder, name);
        for (const auto& [name, file] : files_) write_file(folder.path() / name, file);
        if (stop_) return std::nullopt;
        if (checkpoint_.is_sharded()) folder.write_text(index_file, index().dump(2) + '\n');
        json config = model_config(checkpoint_);
        config["quantization_config"] = config_of(source_);
        folder.write_text("config.json", config.dump(2) + '\n');
        folder.publish();
        return std::move(report_);
    }

  private:
    [[nodiscard]] std::string output_file_of(const std::string& tensor) const {
        return checkpoint_.is_sharded() ? checkpoint_.file_of(tensor) : single_file;
    }

    void copy_companion(const OutputFolder& folder, const char* name) const {
        const fs::path file = checkpoint_.folder() / name;
        if (runtime::has_entry(file))
            folder.write_text(name, runtime::read_text_file(file, max_companion_bytes));
    }

    void plan_files() {
        std::set<std::string_view> consumed;
        for (const LayerOutline& layer : source_.layers()) {
            consumed.insert(layer.tensors.begin(), layer.tensors.end());
            const std::string file = output_file_of(layer.tensors.front());
            files_[file].layers.push_back(&layer);
            for (const TensorOutline& part : packed_outlines(layer)) file_of_.emplace(part.name, file);
        }
        for (const auto& [name, _] : checkpoint_.tensors()) {
            if (consumed.contains(name)) continue;
            const std::string file = output_file_of(name);
            files_[file].copied.push_back(name);
            if (file_of_.emplace(name, file).second) continue;
            throw CheckpointError(fmt::format("{}: has the name of a tensor that a packed layer needs",
                                              checkpoint_.at(name).place));
        }
    }

    void write_file(const fs::path& path, const OutputFile& file) {
        std::vector<TensorOutline> outlines;
        for (const LayerOutline* layer : file.layers) {
            for (TensorOutline& part : packed_outlines(*layer)) outlines.push_back(std::move(part));
        }
        for (const std::string& name : file.copied) {
            const StoredTensor& tensor = checkpoint_.at(name);
            outlines.push_back({name, tensor.type, tensor.shape});
        }
        SafetensorsWriter writer(path, outlines, metadata);
        for (const LayerOutline* layer : file.layers) {
            if (stop_) return;
            write_layer(writer, *layer);
        }
        for (const std::string& name : file.copied) {
            if (stop_) return;
            const StoredTensor& tensor = checkpoint_.at(name);
            writer.copy(name, tensor);
            ++report_.copied_tensors;
            report_.copied_bytes += static_cast<std::int64_t>(tensor.size_bytes);
        }
        writer.publish();
    }

    void write_layer(SafetensorsWriter& writer, const LayerOutline& layer) {
        progress_.current = layer.name;
        sink_(progress_);
        PackedLayer packed = pack_layer(source_, layer);
        LayerReport report{.name = layer.name,
                           .shape = layer.shape,
                           .loss = packed.weight.loss,
                           .source_bytes = bytes_in(checkpoint_, layer.tensors),
                           .notes = std::move(packed.notes)};
        const std::vector<TensorOutline> outlines = packed_outlines(layer);
        const std::vector<std::span<const std::byte>> parts = packed_parts(packed);
        for (std::size_t i = 0; i < parts.size(); ++i) {
            writer.write(outlines[i].name, parts[i]);
            report.bytes += static_cast<std::int64_t>(parts[i].size());
        }
        ++progress_.layers_done;
        progress_.bytes_done += report.source_bytes;
        report_.layers.push_back(std::move(report));
    }

    [[nodiscard]] json index() const {
        return {{"metadata", {{"total_size", report_.bytes()}}}, {"weight_map", file_of_}};
    }

    const Checkpoint& checkpoint_;
    const LayerSource& source_;
    const QuantizeProgressSink& sink_;
    const std::atomic<bool>& stop_;
    std::map<std::string, OutputFile> files_;
    std::map<std::string, std::string> file_of_;  ///< the output file of each tensor
    QuantizeProgress progress_;
    QuantizeReport report_;
};

}  // namespace

std::int64_t QuantizeReport::source_bytes() const {
    std::int64_t sum = copied_bytes;
    for (const LayerReport& layer : layers) sum += layer.source_bytes;
    return sum;
}

std::int64_t QuantizeReport::bytes() const {
    std::int64_t sum = copied_bytes;
    for (const LayerReport& layer : layers) sum += layer.bytes;
    return sum;
}

double QuantizeReport::relative_error() const {
    double errors = 0;
    double elements = 0;
    for (const LayerReport& layer : layers) {
        const double count = static_cast<double>(layer.shape.out) * static_cast<double>(layer.shape.in);
        errors += layer.loss.relative_l2 * layer.loss.relative_l2 * count;
        elements += count;
    }
    return elements > 0 ? std::sqrt(errors / elements) : 0;
}

std::optional<QuantizeReport> quantize_checkpoint(const Checkpoint& checkpoint, const LayerSource& source,
                                                  const fs::path& output,
                                                  const QuantizeProgressSink& progress,
                                                  const std::atomic<bool>& stop) {
    return Quantization(checkpoint, source, progress, stop).run(output);
}

}  // namespace hone::checkpoints
