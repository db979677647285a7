// Layers that `hone quantize` has packed: tensors as they are.
#include <fmt/format.h>

#include "checkpoints/error.h"
#include "checkpoints/pack/layer_source.h"
#include "checkpoints/pack/packed_tensors.h"
#include "checkpoints/pack/weight_format.h"
#include "checkpoints/read/layer_tensors.h"

namespace hone::checkpoints {
namespace {

constexpr std::int64_t most_rows =
    1 << 20;  // as check() of a PackedShape has it, before anything is multiplied
constexpr std::int64_t most_columns = 1 << 18;

class PackedLayers : public LayerSource {
  public:
    PackedLayers(const Checkpoint& checkpoint, const QuantizationConfig& config)
        : checkpoint_(checkpoint),
          format_(weight_format(config)),
          input_order_(config.boolean("input_order").value_or(false)),
          dtype_(config.text({"dtype"}) == "fp16" ? Dtype::fp16 : Dtype::bf16) {
        for (const auto& [layer, extents] : config.find("layers")->items())
            layers_.push_back(outline_of(layer, extents, config));
        if (layers_.empty()) config.refuse("layers", "an object with [out, in] by name, at least one");
    }

    std::string kind() const override { return "hone"; }
    Dtype dtype() const override { return dtype_; }
    const std::vector<LayerOutline>& layers() const override { return layers_; }

    PackedLayer pack(const LayerOutline& layer) const override {
        PackedLayer packed{.weight = {.shape = layer.shape}, .input_order = {}, .notes = {}};
        packed.weight.codes = bytes_of_part(layer, ".codes");
        packed.weight.scales = bytes_of_part(layer, ".scales");
        if (layer.shape.zeros) packed.weight.zeros = bytes_of_part(layer, ".zeros");
        if (layer.input_order) packed.input_order = order_of(layer);
        return packed;
    }

  private:
    LayerOutline outline_of(const std::string& layer, const nlohmann::json& extents,
                            const QuantizationConfig& config) const {
        const auto extent = [&](std::size_t i, std::int64_t most) {
            const bool is_number =
                extents.is_array() && extents.size() == 2 && extents[i].is_number_unsigned();
            const std::uint64_t number = is_number ? extents[i].get<std::uint64_t>() : 0;
            if (number >= 1 && number <= static_cast<std::uint64_t>(most))
                return static_cast<std::int64_t>(number);
            throw CheckpointError(fmt::format(
                "{}: layers: {} is {}; allowed: [out, in], 1 to {} rows and 1 to {} columns", config.place(),
                shown(layer), shown(extents.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)),
                most_rows, most_columns));
        };
        LayerOutline outline{.name = layer,
                             .tensors = {},
                             .shape = {.format = *format_.format,
                                       .out = extent(0, most_rows),
                                       .in = extent(1, most_columns),
                                       .group = format_.group,
                                       .zeros = format_.zeros,
                                       .scale_dtype = dtype_},
                             .input_order = input_order_};
        outline.shape.one_scale = has_one_scale(outline);
        check_shape(outline);
        for (const TensorOutline& part : packed_outlines(outline)) {
            check_part(part);
            outline.tensors.push_back(part.name);
        }
        return outline;
    }

    bool has_one_scale(const LayerOutline& layer) const {
        const QuantFormat format = layer.shape.format;
        const bool may_have = (format == QuantFormat::w8a8 || format == QuantFormat::fp8) &&
                              layer.shape.group == 0 && layer.shape.out > 1;
        return may_have && checkpoint_.at(layer.name + ".scales").shape == std::vector<std::uint64_t>{1};
    }

    void check_part(const TensorOutline& part) const {
        const StoredTensor& tensor = checkpoint_.at(part.name);
        require_type(tensor, part.type);
        if (tensor.shape == part.shape) return;
        throw CheckpointError(
            fmt::format("{}: shape {}; needed is {}", tensor.place, shown(tensor.shape), shown(part.shape)));
    }

    std::vector<std::uint8_t> bytes_of_part(const LayerOutline& layer, const char* part) const {
        const StoredTensor& tensor = checkpoint_.at(layer.name + part);
        std::vector<std::uint8_t> bytes(tensor.size_bytes);
        tensor.read_at(0, std::as_writable_bytes(std::span(bytes)));
        return bytes;
    }

    /// A permutation of the columns.
    std::vector<std::int32_t> order_of(const LayerOutline& layer) const {
        const StoredTensor& tensor = checkpoint_.at(layer.name + ".input_order");
        std::vector<std::int32_t> order(static_cast<std::size_t>(layer.shape.in));
        tensor.read_at(0, std::as_writable_bytes(std::span(order)));
        std::vector<bool> seen(order.size());
        for (const std::int32_t column : order) {
            const bool is_new =
                column >= 0 && column < layer.shape.in && !seen[static_cast<std::size_t>(column)];
            if (is_new) {
                seen[static_cast<std::size_t>(column)] = true;
                continue;
            }
            throw CheckpointError(fmt::format("{}: has {} twice or out of 0 to {}; needed is a permutation",
                                              tensor.place, column, layer.shape.in - 1));
        }
        return order;
    }

    const Checkpoint& checkpoint_;
    WeightFormat format_;
    bool input_order_;
    Dtype dtype_;
    std::vector<LayerOutline> layers_;
};

}  // namespace

std::unique_ptr<LayerSource> packed_layers(const Checkpoint& checkpoint, const QuantizationConfig& config) {
    return std::make_unique<PackedLayers>(checkpoint, config);
}

}  // namespace hone::checkpoints
